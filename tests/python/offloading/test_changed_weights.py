# tests/python/offloading/test_changed_weights.py: no result is stale, however a weight was written.
"""A write is counted if PyTorch's version of the tensor goes up or the tensor gets another storage."""

from __future__ import annotations

import copy
import ctypes
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import torch_graft
from optimized_net import Net
from other_process import OtherProcess, scaled_in_place

pytestmark = [pytest.mark.any_driver, pytest.mark.one_mode]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def _in_place(model: Net) -> None:
    with torch.no_grad():
        model.conv.weight.mul_(2)


def _an_element(model: Net) -> None:
    with torch.no_grad():
        model.head.weight[0, 0] += 5


def _through_a_view(model: Net) -> None:
    model.head.weight.detach().view(-1)[:8].zero_()


def _loaded(model: Net) -> None:
    model.load_state_dict(Net().state_dict())


def _assigned(model: Net) -> None:
    model.load_state_dict(Net().state_dict(), assign=True)


def _another_storage(model: Net) -> None:
    model.conv.weight.data = torch.randn_like(model.conv.weight)


def _set(model: Net) -> None:
    with torch.no_grad():
        model.head.bias.set_(torch.full((5,), 3.0))


def _replaced(model: Net) -> None:
    model.conv.weight = nn.Parameter(torch.randn_like(model.conv.weight))


def _a_buffer(model: Net) -> None:
    model.norm.running_mean.add_(1)


def _stepped(make: Callable[..., torch.optim.Optimizer], **options: Any) -> Callable[[Net], None]:
    def change(model: Net) -> None:
        optimizer = make(model.parameters(), lr=0.1, **options)
        for one in model.parameters():
            one.grad = torch.ones_like(one)
        optimizer.step()
        model.zero_grad()

    return change


def _initialised(model: Net) -> None:
    nn.init.orthogonal_(model.head.weight)


def _averaged(model: Net) -> None:
    torch.nn.utils.vector_to_parameters(
        torch.cat([one.detach().flatten() for one in model.parameters()]) * 0.5, model.parameters()
    )


COUNTED: dict[str, Callable[[Net], None]] = {
    "in place": _in_place,
    "an element": _an_element,
    "through a view": _through_a_view,
    "load_state_dict": _loaded,
    "load_state_dict(assign=True)": _assigned,
    "another storage": _another_storage,
    "set_": _set,
    "another parameter": _replaced,
    "a buffer": _a_buffer,
    "SGD": _stepped(torch.optim.SGD),
    "Adam of many tensors": _stepped(torch.optim.Adam, foreach=True),
    "nn.init": _initialised,
    "vector_to_parameters": _averaged,
}


def _data(model: Net) -> None:
    model.conv.weight.data.mul_(2)


def _numpy(model: Net) -> None:
    model.head.weight.detach().numpy()[2] = 7


def _from_c(model: Net) -> None:
    bias = model.head.bias
    ctypes.memset(bias.data_ptr(), 0, bias.numel() * bias.element_size())


def _dlpack(model: Net) -> None:
    torch.from_dlpack(model.norm.weight.detach()).neg_()


def _numpy_of_a_buffer(model: Net) -> None:
    model.norm.running_var.numpy()[:] *= 4


def _through_the_storage(model: Net) -> None:
    model.conv.weight.untyped_storage().fill_(0)


def _in_another_process(model: Net) -> None:
    with OtherProcess() as other:
        other.ask(scaled_in_place, model.head.weight.detach(), 2.0)


UNCOUNTED: dict[str, Callable[[Net], None]] = {
    ".data": _data,
    "numpy": _numpy,
    "C": _from_c,
    "DLPack": _dlpack,
    "numpy of a buffer": _numpy_of_a_buffer,
    "the storage": _through_the_storage,
    "fused AdamW": _stepped(torch.optim.AdamW, fused=True),
    "another process": _in_another_process,
}


def check_changed(
    change: Callable[[Net], None], model: Net, offloaded: nn.Module, x: torch.Tensor
) -> None:
    with torch.no_grad():
        for _ in range(2):
            assert_close(offloaded(x), model(x), rtol=1e-4, atol=1e-4)
        before = offloaded(x)
    change(model)
    with torch.no_grad():
        for _ in range(2):
            assert_close(offloaded(x), model(x), rtol=1e-4, atol=1e-4)
        assert not torch.equal(offloaded(x), before)


@pytest.mark.parametrize("how", COUNTED)
@pytest.mark.parametrize("uncounted", ["checksum", "ignore"])
def test_counted_writes_are_seen(how: str, uncounted: str, device: str) -> None:
    model = Net().eval()
    offloaded = torch_graft.optimize(model, device=device, uncounted_writes=uncounted)
    check_changed(COUNTED[how], model, offloaded, torch.randn(2, 3, 8, 8))


@pytest.mark.parametrize("how", UNCOUNTED)
@pytest.mark.parametrize("uncounted", ["checksum", "copy"])
def test_uncounted_writes_are_seen(how: str, uncounted: str, device: str) -> None:
    model = Net().eval()
    if how == "another process":
        model.share_memory()
    offloaded = torch_graft.optimize(model, device=device, uncounted_writes=uncounted)
    versions = [one._version for one in (*model.parameters(), *model.buffers())]
    check_changed(UNCOUNTED[how], model, offloaded, torch.randn(2, 3, 8, 8))
    assert [one._version for one in (*model.parameters(), *model.buffers())] == versions


def test_all_ways_one_after_the_other(device: str) -> None:
    model = Net().eval()
    offloaded = torch_graft.optimize(model, device=device)
    for how, change in {**COUNTED, **UNCOUNTED}.items():
        if how != "another process":
            change(model)
            x = torch.randn(2, 3, 8, 8)
            with torch.no_grad():
                assert_close(offloaded(x), model(x), rtol=1e-4, atol=1e-4, msg=how)


def test_without_checksums_uncounted_writes_are_not_looked_for(device: str) -> None:
    """Shows that the checksums, and nothing else, see such a write."""
    model = Net().eval()
    offloaded = torch_graft.optimize(model, device=device, uncounted_writes="ignore")
    x = torch.randn(2, 3, 8, 8)
    before = offloaded(x)
    model.conv.weight.data.mul_(2)
    assert torch.equal(offloaded(x), before)


def test_only_what_changed_is_copied(device: str) -> None:
    model = Net().eval()
    offloaded = torch_graft.optimize(model, device=device)
    x, weights = torch.randn(2, 3, 8, 8), offloaded._graft_runner.weights

    def copied() -> int:
        before = weights.refreshed
        offloaded(x)
        return int(offloaded._graft_runner.weights.refreshed - before)

    offloaded(x)
    tensors = len([*model.parameters(), *model.buffers()])
    assert offloaded._graft_runner.weights.refreshed == len(weights) == tensors
    assert copied() == 0
    model.head.bias.data.add_(1)
    assert copied() == 1
    model.train()
    assert copied() == 0
    assert copied() == 0, "running statistics that came back are not sent again"


def test_each_bit_counts() -> None:
    """Also in the last bytes of a tensor, in one without gaps, and in one that is a part of another."""
    from torch_graft import _C

    def refreshed(copies: _C.DeviceCopies) -> int:
        return int(copies.refresh())

    sizes = [1, 3, 1023, 2**18, 2**18 + 1, 3 * 2**19 + 7]
    for host in (*(torch.zeros(size) for size in sizes), torch.zeros(64, 64)[::2, 3:9].detach()):
        copies = _C.DeviceCopies("checksum", False)
        copy_ = torch.empty_like(host, device="graft")
        copies.add(host, copy_, True)
        assert refreshed(copies) == 1
        assert refreshed(copies) == 0
        flat = host.reshape(-1) if not host.is_contiguous() else host.view(-1)
        for place in {0, flat.numel() // 2, flat.numel() - 1}:
            index = torch.unravel_index(torch.tensor(place), host.shape)
            address = host.data_ptr() + 4 * sum(
                int(i) * stride for i, stride in zip(index, host.stride(), strict=True)
            )
            ctypes.memset(address, 1, 1)
            assert refreshed(copies) == 1
            assert torch.equal(copy_.cpu(), host)
        assert refreshed(copies) == 0


def test_a_weight_that_is_gone_is_let_go(device: str) -> None:
    model = Net().eval()
    offloaded = torch_graft.optimize(model, device=device)
    x, weight = torch.randn(2, 3, 8, 8), model.conv.weight
    offloaded(x)
    count = len(offloaded._graft_runner.weights)
    held = sys.getrefcount(weight)
    model.conv.weight = nn.Parameter(copy.deepcopy(weight.detach()))
    offloaded(x)
    assert len(offloaded._graft_runner.weights) == count
    assert sys.getrefcount(weight) < held

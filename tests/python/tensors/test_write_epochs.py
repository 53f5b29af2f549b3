# tests/python/tensors/test_write_epochs.py: every way of writing a tensor is seen by who watches its memory.
from __future__ import annotations

import io
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
import torch
from torch import nn

from torch_graft import _C

pytestmark = [pytest.mark.both_modes, pytest.mark.any_driver]

DEVICE = "graft"


def tensor() -> torch.Tensor:
    return torch.arange(1, 65, dtype=torch.float32, device=DEVICE)


def watched(*tensors: torch.Tensor) -> _C.TensorWatch:
    watch = _C.TensorWatch(list(tensors))
    assert not watch.unchanged()
    watch.look()
    assert watch.unchanged()
    assert watch.trusted()
    return watch


def _stepped(make: Callable[..., torch.optim.Optimizer], **options: object) -> Callable[..., None]:
    def write(w: torch.Tensor) -> None:
        parameter = nn.Parameter(w)
        parameter.grad = torch.ones_like(w)
        make([parameter], lr=0.1, **options).step()

    return write


def _loaded(w: torch.Tensor) -> None:
    module = nn.Module()
    module.register_parameter("w", nn.Parameter(w))
    module.load_state_dict({"w": torch.zeros(64)})


def _without_versions(w: torch.Tensor) -> None:
    with torch.inference_mode():
        w.mul_(2)


def _on_another_stream(w: torch.Tensor) -> None:
    side = torch.Stream(DEVICE)
    with side:
        w.add_(1)
    side.synchronize()


def _through_numpy(w: torch.Tensor) -> None:
    host = w.cpu()
    host.numpy()[0] = 7
    w.copy_(host)


def _under_a_preserved_version(w: torch.Tensor) -> None:
    with torch.autograd._unsafe_preserve_version_counter(w):
        w.add_(1)


def _storage(w: torch.Tensor) -> None:
    w.untyped_storage().copy_(torch.zeros(256, dtype=torch.uint8).untyped_storage())


def _aliased(w: torch.Tensor) -> None:
    torch.empty(0, device=DEVICE).set_(w.untyped_storage(), 5, (3,), (2,)).zero_()


WAYS: dict[str, Callable[[torch.Tensor], object]] = {
    "add_": lambda w: w.add_(1),
    "data": lambda w: w.data.mul_(2),
    "another thread": lambda w: ThreadPoolExecutor(1).submit(w.add_, 1).result(),
    "detach": lambda w: w.detach().zero_(),
    "item": lambda w: w.__setitem__(3, 4.0),
    "view": lambda w: w.view(8, 8)[2:, ::2].fill_(1),
    "transposed": lambda w: w.view(8, 8).t().mul_(2),
    "bits": lambda w: w.view(torch.int32).bitwise_not_(),
    "masked": lambda w: w.masked_fill_(w > 3, 0),
    "index": lambda w: w.index_put_((torch.tensor([1], device=DEVICE),), w[:1] * 0),
    "scatter": lambda w: w.scatter_(0, torch.tensor([1], device=DEVICE), 9.0),
    "out": lambda w: torch.add(w, 1, out=w),
    "out of a product": lambda w: torch.mm(
        torch.ones(8, 8, device=DEVICE), torch.ones(8, 8, device=DEVICE), out=w.view(8, 8)
    ),
    "out of a reduction": lambda w: torch.sum(torch.ones(64, 4, device=DEVICE), 1, out=w),
    "random": lambda w: w.normal_(),
    "uniform": lambda w: nn.init.uniform_(w),
    "sort": lambda w: torch.sort(
        w.clone(), out=(w, torch.empty(64, dtype=torch.int64, device=DEVICE))
    ),
    "cumsum": lambda w: w.cumsum_(0),
    "copy from the host": lambda w: w.copy_(torch.zeros(64)),
    "copy from pinned memory": lambda w: w.copy_(torch.zeros(64).pin_memory(), non_blocking=True),
    "copy on the device": lambda w: w.copy_(torch.zeros(64, device=DEVICE)),
    "copy with a cast": lambda w: w.copy_(torch.zeros(64, device=DEVICE, dtype=torch.float16)),
    "foreach": lambda w: torch._foreach_add_([w], 1),
    "foreach copy": lambda w: torch._foreach_copy_([w], [torch.zeros(64, device=DEVICE)]),
    "sgd": _stepped(torch.optim.SGD, foreach=False),
    "foreach sgd": _stepped(torch.optim.SGD, foreach=True),
    "fused sgd": _stepped(torch.optim.SGD, fused=True),
    "fused adamw": _stepped(torch.optim.AdamW, fused=True),
    "adam": _stepped(torch.optim.Adam),
    "load_state_dict": _loaded,
    "inference_mode": _without_versions,
    "numpy": _through_numpy,
    "no version": _under_a_preserved_version,
    "another stream": _on_another_stream,
    "storage": _storage,
    "set_": _aliased,
    "dlpack": lambda w: torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(w)).add_(1),
    "fallback": lambda w: torch.special.gammaincc(w, w, out=w),
    "clip": lambda w: w.clamp_(0, 2),
    "swap of the storage's memory": lambda w: w.untyped_storage().resize_(512),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_write_is_seen(way: str) -> None:
    other = tensor()
    w = tensor()
    watch, beside = watched(w), watched(other)
    WAYS[way](w)
    assert not watch.unchanged()
    assert beside.unchanged(), "a write elsewhere is none here"
    watch.look()
    assert watch.unchanged() or not watch.trusted()


READS: dict[str, Callable[[torch.Tensor], object]] = {
    "print": repr,
    "product": lambda w: w.view(8, 8) @ w.view(8, 8),
    "sum": lambda w: w.sum(),
    "pointwise": lambda w: w + 1,
    "copy": lambda w: (w.cpu(), w.clone(), w.half()),
    "item": lambda w: w[3].item(),
    "optimizer of another": lambda w: _stepped(torch.optim.AdamW, fused=True)(w.clone()),
    "convolution": lambda w: torch.conv2d(w.view(1, 1, 8, 8), w[:9].view(1, 1, 3, 3)),
    "gradient": lambda w: (w.clone().requires_grad_() * w).sum().backward(),
}


@pytest.mark.parametrize("way", READS)
def test_reads_are_none(way: str) -> None:
    w = tensor()
    watch = watched(w)
    READS[way](w)
    assert watch.unchanged()


@pytest.mark.parametrize("way", ["data", "set_", "resize"])
def test_other_memory_is_another_value(way: str) -> None:
    w = nn.Parameter(tensor())
    watch = watched(w)
    if way == "data":
        w.data = w.data.clone()
    elif way == "set_":
        with torch.no_grad():
            w.set_(w.clone())
    else:  # as FSDP does
        size = w.untyped_storage().size()
        w.untyped_storage().resize_(0)
        w.untyped_storage().resize_(size)
    assert not watch.unchanged()


def test_another_view_of_the_same_memory_is_another_value() -> None:
    w = nn.Parameter(tensor().view(8, 8))
    watch = watched(w)
    w.data = w.data.t()
    assert not watch.unchanged()


def test_a_replay_writes_and_a_capture_does_not() -> None:
    w, x = tensor(), tensor()
    graph = torch.accelerator.Graph()
    w.add_(x)
    torch.accelerator.synchronize()
    watch, beside = watched(w), watched(x)
    side = torch.Stream(DEVICE)
    with side, graph:
        w.add_(x)
    assert watch.unchanged()
    graph.replay()
    assert not watch.unchanged()
    assert beside.unchanged()


def test_memory_that_was_given_back_is_somebody_elses() -> None:
    w = nn.Parameter(tensor())
    watch = watched(w)
    address = w.data_ptr()
    first = w.data
    w.data = torch.empty(0, device=DEVICE)
    del first
    w.data = torch.empty(64, device=DEVICE)  # often the same memory
    assert not watch.unchanged()
    watch.look()
    assert watch.unchanged() or not watch.trusted() or w.data_ptr() != address


def test_memory_of_others_is_not_trusted() -> None:
    w = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(tensor()))
    watch = _C.TensorWatch([w])
    watch.look()
    assert not watch.trusted()
    assert not watch.unchanged()


def test_empty_tensors_never_change() -> None:
    w = torch.empty(0, 3, device=DEVICE)
    watch = watched(w)
    w.add_(1)
    assert watch.unchanged()


def test_memory_sent_to_another_process_is_not_trusted() -> None:
    w, other = tensor(), tensor()
    watch, beside = watched(w), watched(other)
    sent = _C.share_storage(w.untyped_storage())
    if sent is None:  # the driver gives other processes no handles
        assert watch.unchanged()
        return
    assert not watch.unchanged()
    assert not watch.trusted()
    watch.look()
    assert not watch.unchanged()
    later = _C.TensorWatch([w])
    later.look()
    assert not later.trusted()
    assert beside.unchanged()
    _C.receive_storage(sent[1], False)


def test_saving_reads() -> None:
    w = tensor()
    watch = watched(w)
    torch.save({"w": w}, io.BytesIO())
    assert watch.unchanged() or not watch.trusted()


def _broadcast(rank: int, port: int) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("graft", rank=rank, world_size=1)
    try:
        w, other = tensor(), tensor()
        watch, beside = watched(w), watched(other)
        for collective in (
            torch.distributed.all_reduce,
            lambda t: torch.distributed.broadcast(t, 0),
        ):
            collective(w)
            torch.accelerator.synchronize()
        gathered = torch.empty(64, device=DEVICE)
        there = watched(gathered)
        torch.distributed.all_gather_into_tensor(gathered, other)
        assert not there.unchanged()
        assert beside.unchanged()
        del watch
    finally:
        torch.distributed.destroy_process_group()


def test_collectives_write() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    _broadcast(0, port)


def test_numpy_has_no_view_of_device_memory() -> None:
    with pytest.raises(TypeError):
        numpy.asarray(tensor())


class Doubling:
    """A PreparedGraph over Python functions: x + 2 * w, with 2 * w prepared."""

    def __init__(self) -> None:
        self.prepared = _C.PreparedGraph(
            lambda inputs: [inputs[0] * 2], lambda inputs: [inputs[0] + inputs[2]], [1]
        )

    def __call__(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        [result] = self.prepared([x, w])
        return result

    @property
    def preparations(self) -> int:
        return self.prepared.preparations


def test_weights_are_prepared_when_they_change() -> None:
    graph, x, w = Doubling(), tensor(), tensor()
    for _ in range(3):
        assert torch.equal(graph(x, w), x + 2 * w)
    assert graph.preparations == 1
    w.data.mul_(3)
    for _ in range(3):
        assert torch.equal(graph(x, w), x + 2 * w)
    assert graph.preparations == 2
    other = w.clone()
    assert torch.equal(graph(x, other), x + 2 * other)
    assert graph.preparations == 3


@pytest.mark.parametrize("way", WAYS)
def test_prepared_weights_are_never_stale(way: str) -> None:
    graph, x, w = Doubling(), tensor(), tensor()
    graph(x, w)
    WAYS[way](w)
    if w.numel() == 64 and not w.isnan().any():
        assert torch.equal(graph(x, w), x + 2 * w)


def test_untrusted_weights_are_prepared_at_each_call() -> None:
    graph, x = Doubling(), tensor()
    w = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(tensor()))
    for _ in range(3):
        assert torch.equal(graph(x, w), x + 2 * w)
    assert graph.preparations == 3


def test_other_streams_wait_for_prepared_weights() -> None:
    graph, x, w = Doubling(), tensor(), tensor()
    writer, reader = torch.Stream(DEVICE), torch.Stream(DEVICE)
    torch.accelerator.synchronize()  # the tensors' first values come from another stream
    for step in range(20):
        with writer:
            w.fill_(step)  # only who prepares waits for it
        with reader:
            found = graph(x, w)
        here = graph(x, w)
        torch.accelerator.synchronize()
        assert torch.equal(found, x + 2 * step)
        assert torch.equal(here, found)
    assert graph.preparations == 20


def test_a_captured_call_prepares_at_each_replay() -> None:
    graph, x, w = Doubling(), tensor(), tensor()
    graph(x, w)
    captured = torch.accelerator.Graph()
    side = torch.Stream(DEVICE)
    torch.accelerator.synchronize()
    with side, captured:
        result = graph(x, w)
    for step in range(3):
        w.fill_(step)
        torch.accelerator.synchronize()
        captured.replay()
        torch.accelerator.synchronize()
        assert torch.equal(result, x + 2 * step)
    assert torch.equal(graph(x, w), x + 4)

    graph, x, w = Doubling(), tensor(), tensor()
    done = threading.Event()

    def write() -> None:
        for step in range(200):
            w.fill_(step)
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    while not done.is_set():
        graph(x, w)
    thread.join()
    assert torch.equal(graph(x, w), x + 2 * 199)


def test_too_few_inputs_are_an_error() -> None:
    with pytest.raises(IndexError, match="more tensors than the 1 given"):
        Doubling().prepared([tensor()])


def test_integers_among_the_inputs_count_for_nothing() -> None:
    prepared = _C.PreparedGraph(lambda inputs: [inputs[0] * 2], lambda inputs: inputs, [1])
    x, w = tensor(), tensor()
    kinds = [int, torch.Tensor, type(None), torch.Tensor, torch.Tensor]
    assert [type(one) for one in prepared([3, x, None, w])] == kinds
    assert torch.equal(prepared([3, x, None, w])[-1], w * 2)

"""Tensors of the slot: how they are made and moved, views, writes in place, lists, other layouts."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from places import neighbours


def test_moving_by_name() -> None:
    x = torch.arange(6.0)
    assert x.ve().device == torch.device("ve", 0)
    assert x.ve(1).device == x.ve("ve:1").device == torch.device("ve", 1)
    assert x.ve().is_ve
    assert not x.is_ve
    with torch.ve.device(1):
        assert x.ve().device == torch.device("ve", 1)
    there = x.ve()
    assert there.ve() is there
    assert_close(there.cpu(), x)
    assert x.to("ve", torch.float16).dtype == torch.float16


def test_modules_move() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).ve(1)
    assert {p.device for p in (*net.parameters(), *net.buffers())} == {torch.device("ve", 1)}
    assert net.to("ve:0")[0].weight.is_ve
    assert net.cpu()[0].weight.device.type == "cpu"


def test_storages_move() -> None:
    x = torch.arange(4.0)
    there = x.untyped_storage().ve(1)
    assert there.is_ve
    assert there.device == torch.device("ve", 1)
    assert not x.untyped_storage().is_ve
    assert there.ve(1) is there
    assert there.ve(0).cpu().tolist() == x.untyped_storage().tolist()
    assert torch.ones(0).untyped_storage().ve().nbytes() == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert x.storage().ve().is_ve
    found = torch.empty(0, device="ve:1").set_(there, 0, (4,), (1,))
    assert_close(found.cpu(), x)


def test_packed_sequences_move() -> None:
    packed = nn.utils.rnn.pack_sequence([torch.ones(3, 2), torch.zeros(2, 2)])
    there = packed.ve()
    assert there.is_ve
    assert not packed.is_ve
    net = nn.GRU(2, 3)
    wanted, _ = net(packed)
    got, _ = net.ve()(there)
    assert_close(got.data.cpu(), wanted.data)


def test_copies_between_all_places() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    for source in ["ve:0", *neighbours()]:
        for target in ["ve:0", *neighbours()]:
            for non_blocking in (False, True):
                there = x.to(source)
                moved = there.t().to(target, non_blocking=non_blocking)
                if source != "cpu":  # what comes to pinned memory may still be under way
                    torch.get_device_module(torch.device(source)).synchronize()
                assert moved.device == torch.device(target)
                assert_close(moved.cpu(), x.t())
                into = torch.zeros(4, 3, dtype=torch.float64, device=target)
                into.copy_(there.t(), non_blocking=non_blocking)
                assert_close(into.cpu(), x.t().double())


def test_views_share_memory() -> None:
    x = torch.arange(12.0, device="ve").reshape(3, 4)
    flat = torch.arange(12.0).reshape(3, 4)
    for one in (x, flat):
        one.t()[1:].mul_(2)
        one[1] = 7
        one[:, 0] += 1
        one.view(-1)[8:].zero_()
        one.diagonal().sub_(3)
        one[one > 5] = 0
    assert_close(x.cpu(), flat)
    assert x.t()._is_view()
    assert x[1:].untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    parts = torch.zeros(40, 3, device="ve").split(1)
    for number, part in enumerate(parts):
        part.fill_(number)
    assert parts[0]._base.sum() == 3 * sum(range(40))


def test_many_views_of_one_tensor_stay_views() -> None:
    base = torch.zeros(40, 4, device="ve")
    torch._foreach_add_(list(base.unbind()), 2)
    assert_close(base.cpu(), torch.full((40, 4), 2.0))
    singles = [torch.ones(3, device="ve") for _ in range(40)]
    torch._foreach_mul_(singles, singles[::-1])
    torch._foreach_add_([*singles, *(one[:1] for one in singles)], 1)
    assert all(one.tolist() == [3, 2, 2] for one in singles)
    total = torch.cat([one[1:] for one in singles])
    assert total.sum() == 160


def test_writes_to_lists_are_counted() -> None:
    x = torch.ones(3, device="ve", requires_grad=True)
    y = x.exp()  # whose gradient is made of y itself
    with torch.no_grad():
        torch._foreach_add_([y, torch.ones(3, device="ve:1")], 1)
    assert y._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with torch.inference_mode():
        frozen = torch.ones(2, device="ve")
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        torch._foreach_add_([frozen], 1)


def test_lists_of_several_devices() -> None:
    pair = [torch.ones(2, device="ve:0"), torch.ones(2, device="ve:1")]
    assert [str(one.device) for one in torch._foreach_add(pair, pair)] == ["ve:0", "ve:1"]
    torch._foreach_copy_(pair, [torch.zeros(2, device="ve:1"), torch.zeros(2, device="ve:0")])
    assert [one.tolist() for one in pair] == [[0, 0], [0, 0]]


def test_lists_that_are_returned() -> None:
    parts = [torch.full((2,), float(i), device="ve") for i in range(20)]
    assert [one.tolist() for one in torch._foreach_add(parts, 1)] == [
        [i + 1.0] * 2 for i in range(20)
    ]
    norms = torch._foreach_norm(parts)
    assert all(one.is_ve for one in norms)
    values, places = torch.stack(parts).max(0)
    assert values.is_ve
    assert places.tolist() == [19, 19]


def test_out_arguments() -> None:
    x = torch.ones(2, 3, device="ve")
    out = torch.empty(0, device="ve")
    assert torch.add(x, 1, out=out) is out
    assert out.shape == (2, 3)
    turned = torch.empty(3, 2, device="ve").t()
    torch.mul(x, 3, out=turned)
    assert turned.stride() == (1, 2)
    assert turned.tolist() == [[3.0] * 3] * 2
    values, places = torch.empty(0, device="ve"), torch.empty(0, dtype=torch.long, device="ve")
    torch.max(x, 1, out=(values, places))
    assert values.tolist() == [1, 1]


def test_resizing_and_other_storages() -> None:
    x = torch.ones(3, device="ve")
    view = x[1:]
    x.resize_(1000).fill_(5)
    assert x.untyped_storage().nbytes() == 4000
    assert view.tolist() == [5, 5]
    y = torch.zeros(5, device="ve")
    x.set_(y)
    x.fill_(9)
    assert y.tolist() == [9] * 5
    x.data = torch.full((2,), 4.0, device="ve")
    assert x.tolist() == [4, 4]
    assert torch.empty(0, device="ve").set_(y.untyped_storage(), 1, (2,), (2,)).tolist() == [9, 9]
    y.set_()
    assert y.numel() == 0


def test_lazy_bits_and_lazy_clones() -> None:
    x = torch.tensor([1 + 2j, 3 - 1j])
    y = x.ve()
    assert y.conj().is_conj()
    assert y.conj().imag.is_neg()
    assert_close((y.conj() * 2).cpu(), x.conj() * 2)
    assert_close(y.conj().imag.clone().cpu(), x.conj().imag)
    a = torch.ones(4, device="ve")
    b = torch._lazy_clone(a)
    b.add_(1)
    a.mul_(5)
    c = torch._lazy_clone(a)
    a.zero_()
    assert (a[0], b[0], c[0]) == (0, 2, 5)
    mean, var = torch.zeros(4, device="ve"), torch.ones(4, device="ve")
    kept = torch._lazy_clone(mean)
    nn.functional.batch_norm(torch.rand(5, 4, device="ve") + 3, mean, var, training=True)
    assert mean.min() > 0
    assert kept.tolist() == [0] * 4


def test_sparse_tensors() -> None:
    x = torch.eye(4).to_sparse()
    y = x.ve()
    assert y.layout == torch.sparse_coo
    assert y.device == torch.device("ve", 0)
    other = torch.arange(8.0).reshape(4, 2)
    assert_close((y @ other.ve()).cpu(), x @ other)
    assert (y + y).coalesce().values().tolist() == [2] * 4
    y.mul_(3)
    assert y.to_dense().trace() == 12
    made = torch.sparse_coo_tensor(torch.tensor([[0, 2]]), torch.ones(2), (3,), device="ve")
    assert made.to("ve:1").device == torch.device("ve", 1)
    assert made.cpu().to_dense().tolist() == [1, 0, 1]
    assert "device='ve:0'" in repr(made)


@pytest.mark.filterwarnings("ignore:torch.quantize")
def test_quantized_tensors() -> None:
    x = torch.rand(2, 4)
    q = torch.quantize_per_tensor(x.ve(), 0.1, 3, torch.quint8)
    assert q.is_ve
    assert_close(
        q.dequantize().cpu(), torch.quantize_per_tensor(x, 0.1, 3, torch.quint8).dequantize()
    )
    scales, points = torch.tensor([0.1, 0.2]), torch.tensor([0, 1])
    c = torch.quantize_per_channel(x.ve(), scales.ve(), points.ve(), 0, torch.qint8)
    assert c.q_per_channel_scales().is_ve
    assert c.int_repr().is_ve
    wanted = torch.quantize_per_channel(x, scales, points, 0, torch.qint8)
    assert_close(c.cpu().dequantize(), wanted.dequantize())


def test_jagged_nested_tensors() -> None:
    nested = torch.nested.nested_tensor(
        [torch.ones(2), torch.ones(3)], device="ve", layout=torch.jagged
    )
    assert [one.sum().item() for one in (nested * 2).unbind()] == [4, 6]


def test_default_device() -> None:
    torch.set_default_device("ve")
    try:
        assert torch.ones(3).is_ve
        assert nn.Linear(2, 2).weight.is_ve
        assert torch.rand(2).is_ve
    finally:
        torch.set_default_device(None)
    with torch.device("ve:1"):
        assert torch.zeros(2).device == torch.device("ve", 1)


def test_inference_tensors_and_subclasses() -> None:
    with torch.inference_mode():
        x = torch.ones(3, device="ve")
        assert x[1:].is_inference()
        x[1:].add_(1)
    assert x.tolist() == [1, 2, 2]

    class Named(torch.Tensor):
        pass

    assert type(torch.ones(3, device="ve").as_subclass(Named) + 1) is Named


def test_data_loader_with_pinned_memory() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(8.0))
    batches = torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True)
    assert [batch.to("ve", non_blocking=True).sum().item() for (batch,) in batches] == [6, 22]


MIXED: dict[str, Any] = {
    "add": lambda a, b: a + b, "mm": lambda a, b: a @ b, "cat": lambda a, b: torch.cat([a, b]),
    "where": lambda a, b: torch.where(a > 0, a, b), "linear": nn.functional.linear,
    "foreach": lambda a, b: torch._foreach_add([a], [b]), "add_": lambda a, b: a.add_(b),
    "out": lambda a, b: torch.add(a, a, out=b), "addmm": lambda a, b: torch.addmm(a, a, b),
    "gather": lambda a, b: a.gather(0, b.long()), "max": torch.maximum, "lerp": lambda a, b: torch.lerp(a, b, 0.5),
    "stack": lambda a, b: torch.stack([a, b]), "bmm": lambda a, b: torch.bmm(a[None], b[None]),
    "index_add": lambda a, b: a.index_add(0, torch.zeros(2, dtype=torch.long, device=a.device), b),
    "batch_norm": lambda a, b: nn.functional.batch_norm(a, b[0], b[1], training=True),
    "masked_fill": lambda a, b: a.masked_fill(b > 0, 1.0), "mse": nn.functional.mse_loss,
    "embedding": lambda a, b: nn.functional.embedding(a.long().clamp(0, 1), b),
}  # fmt: skip


@pytest.mark.parametrize("name", MIXED)
@pytest.mark.parametrize("turned", [False, True])
def test_tensors_of_several_devices_are_refused(name: str, turned: bool) -> None:
    for place in neighbours():
        pair = [torch.ones(2, 2, device="ve:0"), torch.ones(2, 2, device=place)]
        with pytest.raises((RuntimeError, ValueError), match="device") as raised:
            MIXED[name](*(reversed(pair) if turned else pair))
        text = str(raised.value)
        assert "graft:6" not in text
        assert place.startswith("graft") or "graft" not in text, f"{place}: {text}"


def test_numbers_of_the_cpu_join() -> None:
    x = torch.ones(2, device="ve")
    assert (x + torch.tensor(2.0)).tolist() == [3, 3]
    assert x[torch.tensor([1])].tolist() == [1]


def test_late_errors_and_lack_of_memory_name_the_slots_device() -> None:
    with pytest.raises(RuntimeError, match=r"out of range on ve:1"):
        torch.ones(3, device="ve:1")[torch.tensor([5], device="ve:1")].cpu()
    with pytest.raises(torch.OutOfMemoryError, match=r"ve:1 \(driver 'host'\)") as raised:
        torch.empty(1 << 45, dtype=torch.uint8, device="ve:1")
    assert "graft:" not in str(raised.value)
    assert torch.ones(2, device="ve:1").sum() == 2

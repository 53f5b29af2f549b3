# tests/python/quantization/test_tensors.py: quantized tensors and what PyTorch's operators do with
# them, against the CPU.
from __future__ import annotations

import copy
import io
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from quantized_cases import QUIET, native, numbers
from sandbox import NAME

pytestmark = QUIET
DTYPES = [torch.qint8, torch.quint8, torch.qint32]
Function = Callable[[torch.Tensor], torch.Tensor]


def pair(
    *sizes: int, dtype: torch.dtype = torch.quint8, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """A quantized tensor on the CPU and its like on the device."""
    zero = {torch.qint8: -3, torch.quint8: 117, torch.qint32: 5}[dtype]
    host = torch.quantize_per_tensor(numbers(*sizes, seed=seed), 0.07, zero, dtype)
    return host, host.to(NAME)


def assert_same(actual: torch.Tensor, expected: torch.Tensor, steps: int = 0) -> None:
    """Integers that differ by at most so many steps, and stand for the same numbers."""
    assert (actual.device.type, actual.dtype) == (NAME, expected.dtype)
    assert actual.qscheme() == expected.qscheme()
    if expected.qscheme() == torch.per_tensor_affine:
        assert actual.q_scale() == pytest.approx(expected.q_scale(), rel=1e-6)
        assert actual.q_zero_point() == expected.q_zero_point()
    else:
        assert_close(actual.q_per_channel_scales().cpu(), expected.q_per_channel_scales())
        assert_close(actual.q_per_channel_zero_points().cpu(), expected.q_per_channel_zero_points())
        assert actual.q_per_channel_axis() == expected.q_per_channel_axis()
    wanted = expected.int_repr().cpu().long()
    assert_close(actual.int_repr().cpu().long(), wanted, atol=steps, rtol=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_become_the_integers_of_the_cpu_and_come_back(dtype: torch.dtype) -> None:
    x = numbers(5, 3, 7)
    for layout in (x, x.transpose(0, 2), x[:, 1:]):
        expected = torch.quantize_per_tensor(layout, 0.05, 7, dtype)
        on_device = layout.to(NAME)
        with native():
            actual = torch.quantize_per_tensor(on_device, 0.05, 7, dtype)
            back = actual.dequantize()
        assert_same(actual, expected)
        assert_close(back.cpu(), expected.dequantize())


def test_what_lies_outside_the_range_is_bounded() -> None:
    x = torch.tensor([1e30, -1e30, float("inf"), float("-inf"), 0.0])
    for dtype, low, high in ((torch.qint8, -128, 127), (torch.quint8, 0, 255)):
        found = torch.quantize_per_tensor(x.to(NAME), 0.1, 3, dtype).int_repr().tolist()
        assert found == [high, low, high, low, 3]
    wide = torch.quantize_per_tensor(x[:2].to(NAME), 0.1, 3, torch.qint32).int_repr().tolist()
    assert wide == [2**31 - 1, -(2**31)]


@pytest.mark.parametrize("axis", [0, 1, 3])
def test_channels_have_scales_of_their_own(axis: int) -> None:
    x = numbers(4, 6, 2, 3)
    count = x.size(axis)
    scales, zeros = torch.linspace(0.02, 0.3, count), torch.arange(count) * 5 - 7
    last = [x.contiguous(memory_format=torch.channels_last)] if axis < 2 else []
    for layout in (x, *last):
        for zero_points, dtype in ((zeros, torch.qint8), (zeros * 0.3 + 20, torch.quint8)):
            expected = torch.quantize_per_channel(layout, scales, zero_points, axis, dtype)
            on_device = [t.to(NAME) for t in (layout, scales, zero_points)]
            with native():
                actual = torch.quantize_per_channel(*on_device, axis, dtype)
                back = actual.dequantize()
            assert_same(actual, expected)
            assert_close(back.cpu(), expected.dequantize())
            assert actual.q_per_channel_scales().device.type == NAME


def test_scales_on_another_device_are_refused() -> None:
    if NAME == "cpu":
        return
    with pytest.raises(RuntimeError, match="same device"):
        torch.quantize_per_channel(
            numbers(2, 3).to(NAME), torch.ones(2), torch.zeros(2, dtype=torch.long), 0, torch.qint8
        )


@pytest.mark.parametrize("dtype", [torch.qint8, torch.quint8])
@pytest.mark.parametrize("reduce_range", [False, True])
@pytest.mark.parametrize("unit", [1, 1e-3, 1e-7], ids=["plain", "small", "below the least scale"])
def test_the_scale_may_follow_from_the_range(
    dtype: torch.dtype, reduce_range: bool, unit: float
) -> None:
    x = numbers(9, 4) * unit
    expected = torch.quantize_per_tensor_dynamic(x, dtype, reduce_range)
    with native():
        assert_same(torch.quantize_per_tensor_dynamic(x.to(NAME), dtype, reduce_range), expected)
        assert torch._choose_qparams_per_tensor(
            x.to(NAME), reduce_range
        ) == torch._choose_qparams_per_tensor(x, reduce_range)


def test_scales_come_as_tensors_and_tensors_in_lists() -> None:
    x = numbers(6)
    scale, zero = torch.tensor(0.2), torch.tensor(4)
    assert_same(torch.quantize_per_tensor(x.to(NAME), scale.to(NAME), zero.to(NAME), torch.quint8),
                torch.quantize_per_tensor(x, scale, zero, torch.quint8))  # fmt: skip
    scales, zeros = torch.tensor([0.1, 0.3]), torch.tensor([2, 9])
    expected = torch.quantize_per_tensor([x, x + 1], scales, zeros, torch.quint8)
    with native():
        found = torch.quantize_per_tensor(
            [x.to(NAME), x.to(NAME) + 1], scales.to(NAME), zeros.to(NAME), torch.quint8
        )
        restored = torch.dequantize(found)
    for a, b, c in zip(found, expected, restored, strict=True):
        assert_same(a, b)
        assert_close(c.cpu(), b.dequantize())


def test_integers_become_quantized_tensors() -> None:
    for dtype in (torch.int8, torch.uint8, torch.int32):
        x = torch.arange(12).reshape(3, 4).to(dtype)
        assert_same(
            torch._make_per_tensor_quantized_tensor(x.to(NAME), 0.5, 3),
            torch._make_per_tensor_quantized_tensor(x, 0.5, 3),
        )
        scales, zeros = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 2, 3])
        assert_same(torch._make_per_channel_quantized_tensor(x.to(NAME), scales.to(NAME), zeros.to(NAME), 0),
                    torch._make_per_channel_quantized_tensor(x, scales, zeros, 0))  # fmt: skip


def test_quantized_tensors_move_between_devices(second: str) -> None:
    host, near = pair(4, 5, dtype=torch.qint8)
    assert_same(near.to(second), host)
    assert near.to(second).device == torch.device(second if NAME != "cpu" else "cpu")
    assert torch.equal(near.cpu().int_repr(), host.int_repr())
    scales, zeros = torch.tensor([0.1, 0.2, 0.3, 0.4]), torch.arange(4)
    channels = torch.quantize_per_channel(numbers(4, 5), scales, zeros, 0, torch.qint8)
    moved = channels.to(NAME).to(second)
    assert_same(moved, channels)
    assert moved.q_per_channel_scales().device == moved.device
    assert moved.cpu().q_per_channel_scales().device.type == "cpu"
    assert torch.equal(moved.cpu().int_repr(), channels.int_repr())


def test_copies_are_independent() -> None:
    host, near = pair(3, 4)
    for copied in (near.clone(), copy.deepcopy(near)):
        assert_same(copied, host)
        copied.fill_(1.0)
        assert_same(near, host)
    assert near.equal(near.clone())
    assert not near.equal(pair(3, 4, seed=1)[1])
    assert not near.equal(torch.quantize_per_tensor(near.dequantize(), 0.08, 117, torch.quint8))


def test_copy_takes_numbers_and_the_meaning_of_integers() -> None:
    host, near = pair(3, 4)
    x = numbers(3, 4, seed=3)
    assert_same(near.copy_(x.to(NAME)), host.copy_(x))
    assert_same(near.copy_(x), host)
    other = torch.quantize_per_tensor(x, 0.2, 9, torch.quint8)
    assert_same(near.copy_(other.to(NAME)), host.copy_(other))
    with pytest.raises(RuntimeError, match="use dequantize"):
        torch.empty(3, 4, device=NAME).copy_(near)
    with pytest.raises(RuntimeError, match=r"dtype|scalar_type"):
        near.copy_(pair(3, 4, dtype=torch.qint8)[1])


VIEWS: list[Function] = [
    lambda q: q.transpose(0, 2), lambda q: q[1:, :, ::2], lambda q: q.permute(1, 2, 0), lambda q: q.reshape(6, -1),
    lambda q: q.unsqueeze(1).squeeze(1), lambda q: q.flatten(1), lambda q: q.select(1, 2), lambda q: q.view(2, 3, 2, 2),
    lambda q: q.expand(5, 2, 3, 4)[2], lambda q: q.unfold(2, 2, 1), lambda q: q.flip(0, 2),
    lambda q: q.index_select(2, torch.tensor([3, 0], device=q.device)), lambda q: q.transpose(0, 1).contiguous(),
    lambda q: q[torch.tensor([1, 0, 1], device=q.device)],
    lambda q: torch.empty_like(q).copy_(q), lambda q: torch.cat([q, q[:1]]), lambda q: torch.stack([q, q]).select(0, 1),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(VIEWS)))
def test_rearranging_keeps_integers_and_scale(case: int) -> None:
    host, near = pair(2, 3, 4)
    with native():
        found = VIEWS[case](near)
    assert_same(found, VIEWS[case](host))


ACTIVATIONS: list[Function] = [
    torch.relu, lambda q: q.clone().relu_(), lambda q: torch.clamp(q, -1, 2.3), lambda q: F.hardtanh(q, -2, 2),
    lambda q: F.leaky_relu(q, 0.2), torch.sigmoid, torch.tanh, F.hardsigmoid, F.gelu, lambda q: F.threshold(q, 0.5, 0.0),
    lambda q: F.max_pool2d(q, 3, 2, 1), lambda q: F.max_pool1d(q[0], 3), lambda q: F.avg_pool2d(q, 2),
    lambda q: F.adaptive_avg_pool2d(q, 3), lambda q: F.adaptive_avg_pool2d(q, 1), lambda q: q.mean((2, 3)),
    lambda q: F.interpolate(q, scale_factor=2, mode="nearest"),
    lambda q: F.interpolate(q, size=(5, 5), mode="bilinear", align_corners=False),
    lambda q: torch.ops.quantized.hardswish(q, 0.05, 90), lambda q: torch.ops.quantized.elu(q, 0.05, 90, 0.7),
    lambda q: torch.ops.quantized.celu(q, 0.05, 90, 0.7), lambda q: torch.ops.quantized.sigmoid(q, 0.01, 2),
    lambda q: torch.ops.quantized.relu6(q), lambda q: torch.ops.quantized.leaky_relu(q, 0.1, False, 0.05, 90),
    lambda q: torch.ops.quantized.softmax(q, 1, 0.01, 2),
    lambda q: torch.ops.quantized.batch_norm2d(q, *(t.to(q.device) for t in CHANNELS), 1e-5, 0.1, 100),
    lambda q: torch.ops.quantized.batch_norm2d_relu(q, *(t.to(q.device) for t in CHANNELS), 1e-5, 0.1, 3),
    lambda q: torch.ops.quantized.layer_norm(q, [8], None, None, 1e-5, 0.05, 120),
    lambda q: torch.ops.quantized.group_norm(q, 3, *(t.to(q.device) for t in CHANNELS[:2]), 1e-5, 0.05, 120),
    lambda q: torch.ops.quantized.instance_norm(q, None, None, 1e-5, 0.05, 120),
]  # fmt: skip
CHANNELS = [numbers(6, seed=s) for s in (1, 2, 3)] + [numbers(6, seed=4).abs() + 0.5]


@pytest.mark.parametrize("case", range(len(ACTIVATIONS)))
def test_functions_of_quantized_tensors(case: int) -> None:
    host, near = pair(2, 6, 8, 8)
    with native():
        found = ACTIVATIONS[case](near)
    assert_same(found, ACTIVATIONS[case](host), steps=1)


@pytest.mark.parametrize("name", ["add", "add_relu", "mul", "mul_relu"])
@pytest.mark.parametrize("dtype", [torch.qint8, torch.quint8])
def test_arithmetic_in_a_given_scale(name: str, dtype: torch.dtype) -> None:
    a, near_a = pair(3, 4, dtype=dtype)
    b, near_b = pair(3, 4, dtype=dtype, seed=1)
    operator = getattr(torch.ops.quantized, name)
    with native():
        found = operator(near_a, near_b, 0.11, 20)
        spread = operator(near_a, near_b[:1], 0.11, 20)
    assert_same(found, operator(a, b, 0.11, 20), steps=1)
    assert_same(spread[:1], found[:1].cpu())


@pytest.mark.parametrize("name", ["cat", "cat_relu"])
def test_joining_in_a_given_scale(name: str) -> None:
    a, near_a = pair(2, 3, 4)
    b = torch.quantize_per_tensor(numbers(2, 2, 4, seed=1), 0.2, 9, torch.quint8)
    operator = getattr(torch.ops.quantized, name)
    with native():
        found = operator([near_a, b.to(NAME)], 1, 0.1, 50)
    assert_same(found, operator([a, b], 1, 0.1, 50), steps=1)


def test_integers_are_ordered_as_their_numbers() -> None:
    host, near = pair(3, 9)
    for choose in (
        lambda q: q.topk(4),
        lambda q: q.topk(2, 0, largest=False),
        lambda q: q.sort(1),
        lambda q: q.sort(0, True),
    ):
        with native():
            values, places = choose(near)
        assert_same(values, choose(host)[0])
        assert places.device.type == NAME
    for compare in (torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge):
        other = pair(3, 9, seed=1)
        with native():
            found = [compare(near, other[1]), compare(near, 0.7)]
        assert torch.equal(
            torch.stack(found).cpu(), torch.stack([compare(host, other[0]), compare(host, 0.7)])
        )


def test_what_has_no_kernel_falls_back_and_is_counted() -> None:
    if NAME == "cpu":
        return
    host, near = pair(3, 5)
    fallback = torch.get_device_module(NAME).fallback
    fallback.reset()
    assert_same(torch.ops.quantized.add(near, 1.5), torch.ops.quantized.add(host, 1.5))
    assert fallback.counts()["quantized::add.Scalar"].calls == 1
    fallback.reset()


def test_numbers_are_printed() -> None:
    text = repr(
        torch.quantize_per_tensor(torch.tensor([1.0, 2.0], device=NAME), 0.5, 3, torch.quint8)
    )
    assert "[1., 2.]" in text
    assert "scale=0.5, zero_point=3" in text


def test_files_keep_quantized_tensors(tmp_path: Path) -> None:
    scales, zeros = torch.tensor([0.1, 0.2]), torch.tensor([1, 2])
    for host in (
        pair(2, 3)[0],
        torch.quantize_per_channel(numbers(2, 3), scales, zeros, 0, torch.qint8),
    ):
        path = tmp_path / "quantized.pt"
        torch.save(host.to(NAME), path)
        assert_same(torch.load(path), host)
        assert torch.equal(torch.load(path, map_location="cpu").int_repr(), host.int_repr())
        buffer = io.BytesIO()
        torch.save(host, buffer)
        buffer.seek(0)
        assert_same(torch.load(buffer, map_location=NAME), host)


def test_empty_and_resized_tensors() -> None:
    host, near = pair(0, 3)
    assert_same(near, host)
    assert near.dequantize().shape == torch.relu(near).shape == (0, 3)
    empty = torch._empty_affine_quantized(
        [2, 3], scale=0.5, zero_point=2, dtype=torch.qint8, device=NAME
    )
    assert empty.q_scale() == 0.5
    assert empty.int_repr().shape == (2, 3)
    assert empty.resize_(4, 4).int_repr().shape == (4, 4)
    channels = torch._empty_per_channel_affine_quantized(
        [2, 3], scales=torch.ones(2, device=NAME), zero_points=torch.zeros(2, device=NAME, dtype=torch.long), axis=0,
        dtype=torch.qint8, device=NAME)  # fmt: skip
    assert channels.qscheme() == torch.per_channel_affine

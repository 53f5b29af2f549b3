# tests/python/quantization/test_fake.py: fake quantization, its gradients and observers, and
# products of int8 matrices, against the CPU.
from __future__ import annotations

import pytest
import torch
from torch.ao import quantization as ao
from torch.testing import assert_close

from quantized_cases import native, numbers
from sandbox import NAME


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_one_scale_for_all(dtype: torch.dtype) -> None:
    x, up = numbers(6, 5, dtype=dtype), numbers(6, 5, seed=1, dtype=dtype)
    results = []
    for device in ("cpu", NAME):
        leaf = x.detach().to(device).requires_grad_()
        scale, zero = (
            torch.tensor(0.05, device=device),
            torch.tensor(3, dtype=torch.int32, device=device),
        )
        with native(device):
            y = torch.fake_quantize_per_tensor_affine(leaf, 0.05, 3, -60, 70)
            y.backward(up.to(device))
            tensors = torch.fake_quantize_per_tensor_affine(leaf, scale, zero, -60, 70)
        results.append([y.detach().cpu(), leaf.grad.cpu(), tensors.detach().cpu()])
    assert_close(results[1], results[0])
    assert results[0][1].eq(0).any()


def test_infinite_and_missing_numbers() -> None:
    x = torch.tensor([float("inf"), float("-inf"), float("nan"), 1e30, 0.04])
    y = torch.fake_quantize_per_tensor_affine(x.to(NAME), 0.1, 0, -128, 127)
    assert_close(y.cpu(), torch.tensor([12.7, -12.8, -12.8, 12.7, 0.0]))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("zero_type", [torch.int32, torch.float32, torch.float16])
def test_one_scale_for_each_channel(axis: int, zero_type: torch.dtype) -> None:
    for x in (numbers(3, 4, 5), numbers(5, 4, 3).transpose(0, 2)):
        count = x.size(axis)
        scales = torch.linspace(0.02, 0.1, count)
        zeros = (torch.arange(count) * 7).to(zero_type) + (
            0.25 if zero_type.is_floating_point else 0
        )
        results = []
        for device in ("cpu", NAME):
            leaf = x.detach().to(device).requires_grad_()
            given = scales.to(device), zeros.to(device)
            with native(device):
                y = torch.fake_quantize_per_channel_affine(leaf, *given, axis, -50, 60)
                y.backward(torch.ones_like(y))
            results.append([y.detach().cpu(), leaf.grad.cpu()])
        assert_close(results[1], results[0])


def test_scales_and_zero_points_learn() -> None:
    x, up = numbers(4, 3, 5), numbers(4, 3, 5, seed=1)
    cases = [
        (torch._fake_quantize_learnable_per_tensor_affine, torch.tensor([0.05]), torch.tensor([3.0]), ()),
        (torch._fake_quantize_learnable_per_channel_affine, torch.linspace(0.02, 0.1, 3), torch.tensor([0.0, 3, -2]), (1,)),
    ]  # fmt: skip
    for function, scale, zero, axis in cases:
        results = []
        for device in ("cpu", NAME):
            leaves = [t.detach().to(device).requires_grad_() for t in (x, scale, zero)]
            with native(device):
                y = function(*leaves, *axis, -40, 50, 0.5)
                y.backward(up.to(device))
            results.append([y.detach().cpu(), *(leaf.grad.cpu() for leaf in leaves)])
        assert_close(results[1], results[0], rtol=1e-4, atol=1e-4)
        assert all(gradient.ne(0).any() for gradient in results[0][1:])


def observed(
    device: str, symmetric: bool, channels: bool, switches: list[tuple[int, int]]
) -> list[torch.Tensor]:
    """The observer's state and the results after one call with each pair of switches."""
    empty = torch.empty(0, device=device)
    start = (
        [empty.clone(), empty.clone()]
        if channels
        else [torch.tensor(v, device=device) for v in (torch.inf, -torch.inf)]
    )
    scale, zero = torch.ones(1, device=device), torch.zeros(1, dtype=torch.int32, device=device)
    kept = []
    for seed, (observer_on, quantizer_on) in enumerate(switches):
        x = numbers(3, 4, 2, seed=seed).to(device)
        on = [torch.tensor([switch], device=device) for switch in (observer_on, quantizer_on)]
        y, mask = torch._fused_moving_avg_obs_fq_helper(
            x, *on, *start, scale, zero, 0.3, -128, 127, 0, channels, symmetric
        )
        kept += [t.clone().cpu() for t in (y, mask, *start, scale, zero)]
    return kept


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("channels", [False, True])
def test_observers_follow_the_range(symmetric: bool, channels: bool) -> None:
    # PyTorch leaves the new scales of channels as they are found until the quantizer is on.
    switches = [(1, int(channels)), (1, 1), (0, 1), (1, 1), (0, 0)]
    expected = observed("cpu", symmetric, channels, switches)
    with native():
        found = observed(NAME, symmetric, channels, switches)
    assert_close(found, expected)


OBSERVERS = [
    ao.MinMaxObserver, ao.MovingAverageMinMaxObserver, ao.PerChannelMinMaxObserver,
    ao.MovingAveragePerChannelMinMaxObserver, ao.HistogramObserver,
]  # fmt: skip


@pytest.mark.parametrize("kind", OBSERVERS)
def test_observers_choose_as_on_the_cpu(kind: type[ao.ObserverBase]) -> None:
    chosen = []
    for device in ("cpu", NAME):
        observer = kind().to(device)
        for seed in range(3):
            observer(numbers(6, 8, seed=seed).to(device))
        chosen.append([t.cpu() for t in observer.calculate_qparams()])
        loaded = kind().to(device)
        loaded.load_state_dict(observer.state_dict())
        chosen.append([t.cpu() for t in loaded.calculate_qparams()])
    for found in chosen[1:]:
        assert_close(found, chosen[0])


def test_an_observer_needs_no_answer_from_the_device() -> None:
    if NAME == "cpu":
        return
    module = ao.FusedMovingAvgObsFakeQuantize().to(NAME)
    x = numbers(4, 4).to(NAME)
    for _ in range(2):
        module(x)
    device = torch.get_device_module(NAME)
    before = device.statistics()["launches"]
    device.set_sync_debug_mode("error")
    try:
        module(x)
        with pytest.raises(RuntimeError, match="synchroniz"):
            x.tolist()  # what waits is told
    finally:
        device.set_sync_debug_mode("default")
    assert device.statistics()["launches"] > before


@pytest.mark.parametrize("left", [torch.int8, torch.uint8])
def test_products_of_bytes_are_exact(left: torch.dtype) -> None:
    draw = torch.Generator().manual_seed(0)
    for m, k, n in ((1, 1, 1), (17, 32, 16), (33, 700, 24)):
        low = 0 if left == torch.uint8 else -128
        a = torch.randint(low, low + 256, (m, k), generator=draw).to(left)
        b = torch.randint(-128, 128, (n, k), generator=draw).to(torch.int8)
        expected = (a.long() @ b.long().t()).int()
        with native():
            found = torch._int_mm(a.to(NAME), b.to(NAME).t())
            plain = torch._int_mm(a.to(NAME), b.t().contiguous().to(NAME))
        assert_close(found.cpu(), expected, rtol=0, atol=0)
        assert_close(plain.cpu(), expected, rtol=0, atol=0)


def test_products_of_bytes_write_where_they_are_told() -> None:
    a, b = (
        torch.ones(4, 8, dtype=torch.int8, device=NAME),
        torch.ones(8, 8, dtype=torch.int8, device=NAME),
    )
    out = torch.empty(4, 8, dtype=torch.int32, device=NAME)
    assert torch._int_mm(a, b, out=out) is out
    assert out.cpu().eq(8).all()
    with pytest.raises(RuntimeError, match="dimension 2"):
        torch._int_mm(a[0], b)
    with pytest.raises(RuntimeError, match="needs to match"):
        torch._int_mm(a, b[:4])
    with pytest.raises(RuntimeError, match="int8"):
        torch._int_mm(a.short(), b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_floats_times_packed_bytes(dtype: torch.dtype) -> None:
    x = numbers(5, 32, dtype=dtype)
    weight = torch.randint(-128, 128, (16, 32), generator=torch.Generator().manual_seed(0)).to(
        torch.int8
    )
    scales = numbers(16, seed=2, dtype=dtype).abs() / 100
    with native():
        found = torch._weight_int8pack_mm(x.to(NAME), weight.to(NAME), scales.to(NAME))
    expected = (x.double() @ weight.double().t()) * scales.double()
    tolerance = 2e-2 if dtype == torch.bfloat16 else 1e-5
    assert_close(found.cpu().double(), expected, rtol=tolerance, atol=tolerance)

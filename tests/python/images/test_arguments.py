"""Pools, convolutions and padding with wrong or extreme arguments: as the CPU, and no memory damaged."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

aten = torch.ops.aten
INF = float("inf")
Call = Callable[[str], Any]


def ones(d: str, *sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(sizes, dtype=dtype, device=d)


def longs(d: str, *sizes: int) -> torch.Tensor:
    return torch.zeros(sizes, dtype=torch.int64, device=d)


def unpool(d: str, out: torch.Tensor | None, dims: int = 3, indices: torch.Tensor | None = None):
    indices = longs(d, 1, 1, *[2] * dims) if indices is None else indices
    x = ones(d, 1, 1, *[2] * dims)
    sizes = {"stride": [2] * 3, "padding": [0] * 3} if dims == 3 else {}
    function = aten.max_unpool3d if dims == 3 else aten.max_unpool2d
    return function.out(x, indices, [4] * dims, **sizes, out=x if out is None else out)


def volumes(d: str, out: torch.dtype, indices: torch.dtype):
    return aten.max_pool3d_with_indices.out(
        ones(d, 1, 1, 4, 4, 4),
        [2] * 3,
        out=ones(d, 0, dtype=out),
        indices=ones(d, 0, dtype=indices),
    )


def transposed(d: str, kernel=(3, 3), dtype=torch.float32, channels=2, **arguments: Any):
    weight = ones(d, 2, channels, *kernel, dtype=dtype)
    image = ones(d, 1, 2, *[5] * len(kernel), dtype=dtype)
    function = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}[len(kernel)]
    return function(image, weight, **arguments)


def message(call: Call, d: str) -> tuple[type, str] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(d)
    except Exception as error:
        return type(error), str(error).split("\n")[0]
    return None


# The CPU's refusal in the CPU's words.
ALIKE: dict[str, Call] = {
    "max_pool3d into doubles": lambda d: volumes(d, torch.float64, torch.int64),
    "max_pool3d with float indices": lambda d: volumes(d, torch.float32, torch.float32),
    "max_unpool2d into doubles": lambda d: unpool(d, ones(d, 0, dtype=torch.float64), 2),
    "max_unpool3d into doubles": lambda d: unpool(d, ones(d, 0, dtype=torch.float64)),
    "max_unpool3d into its indices": lambda d: unpool(d, i := longs(d, 1, 1, 2, 2, 2), 3, i),
    "max_unpool3d into an expanded tensor": lambda d: unpool(d, ones(d, 1).expand(2, 3)),
    "adaptive_avg_pool3d of nothing into floats": lambda d: aten.adaptive_avg_pool3d.out(
        ones(d, 1, 2, 6, 6, dtype=torch.bfloat16), [0, 2, 2], out=ones(d, 0)
    ),
    "avg_pool2d's gradient in doubles": lambda d: aten.avg_pool2d_backward(
        ones(d, 1, 1, 2, 2, dtype=torch.float64), ones(d, 1, 1, 4, 4), [2], [], [0], False, True, None
    ),
    "max_pool3d's gradient in doubles": lambda d: aten.max_pool3d_with_indices_backward(
        ones(d, 1, 1, 2, 2, 2, dtype=torch.float64), ones(d, 1, 1, 4, 4, 4), [2], [], [0], [1],
        False, longs(d, 1, 1, 2, 2, 2),
    ),
    "max_pool2d's gradient, half indices": lambda d: aten.max_pool2d_with_indices_backward(
        ones(d, 1, 2, 1, 1), ones(d, 1, 2, 1, 3), [1, 3], [], [0], [1], False,
        ones(d, 1, 2, 1, 1, dtype=torch.float16),
    ),
    "fractional_max_pool2d, samples of no size": lambda d: aten.fractional_max_pool2d(
        ones(d, 1, 3, 9, 9), [2, 2], [4, 4], ones(d, 1, 3, 0)
    ),
    "fractional_max_pool3d, samples of no size": lambda d: aten.fractional_max_pool3d(
        ones(d, 2, 3, 5, 5, 5), [2] * 3, [2] * 3, ones(d, 2, 3, 0)
    ),
    "fractional_max_pool3d, samples of few planes": lambda d: aten.fractional_max_pool3d(
        ones(d, 2, 3, 5, 5, 5), [2] * 3, [2] * 3, ones(d, 1, 3, 3)
    ),
    "fractional_max_pool2d, double samples": lambda d: aten.fractional_max_pool2d(
        ones(d, 1, 3, 9, 9), [2, 2], [4, 4], ones(d, 1, 3, 2, dtype=torch.float64)
    ),
    "reflection_pad1d into one element": lambda d: aten.reflection_pad1d.out(
        ones(d, 3, 4, 5), [1, 1], out=ones(d, 1).expand(3, 4, 7)
    ),
    "replication_pad1d into one row": lambda d: aten.replication_pad1d.out(
        ones(d, 3, 4, 5), [0, 0], out=ones(d, 1, 4, 1).expand(3, 4, 5)
    ),
    "conv2d without a kernel": lambda d: F.conv2d(ones(d, 1, 2, 5, 5), ones(d, 2, 2, 0, 3)),
    "conv_transpose2d without a kernel": lambda d: transposed(d, (3, 0)),
    "conv_transpose2d without channels": lambda d: transposed(d, channels=0),
    "conv_transpose2d, wide output padding": lambda d: transposed(d, stride=2, output_padding=2),
    "conv_transpose2d in groups, the same": lambda d: transposed(
        d, stride=2, output_padding=2, groups=2
    ),
    "conv_transpose3d, the same": lambda d: transposed(
        d, (3, 3, 3), stride=(3, 2, 1), output_padding=(2, 2, 4), dilation=(4, 4, 4)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ALIKE)
def test_arguments_that_do_not_fit_are_refused(device, name):
    expected = message(ALIKE[name], "cpu")
    assert expected is not None, "the CPU takes it"
    assert message(ALIKE[name], device) == expected
    assert (ones(device, 3) + 1).tolist() == [2, 2, 2]


# Where the CPU reads or writes memory that is not there, or has other words.
REFUSED: dict[str, Call] = {
    "max_pool2d's gradient, fewer images": lambda d: aten.max_pool2d_with_indices_backward(
        ones(d, 1, 1, 2, 2), ones(d, 3, 1, 4, 4), [2], [], [0], [1], False, longs(d, 1, 1, 2, 2)
    ),
    "max_pool3d's gradient, fewer images": lambda d: aten.max_pool3d_with_indices_backward(
        ones(d, 1, 1, 2, 2, 2), ones(d, 3, 1, 4, 4, 4), [2], [], [0], [1], False,
        longs(d, 1, 1, 2, 2, 2),
    ),
    "avg_pool2d's gradient, fewer images": lambda d: aten.avg_pool2d_backward(
        ones(d, 1, 1, 2, 2), ones(d, 3, 1, 4, 4), [2], [], [0], False, True, None
    ),
    "adaptive_avg_pool2d's gradient, fewer planes": lambda d: aten._adaptive_avg_pool2d_backward(
        ones(d, 1, 1, 2, 2), ones(d, 1, 3, 4, 4)
    ),
    "adaptive_avg_pool3d's gradient, a number": lambda d: aten._adaptive_avg_pool3d_backward(
        ones(d), ones(d)
    ),
    "adaptive_max_pool2d's gradient, fewer images": lambda d: aten.adaptive_max_pool2d_backward(
        ones(d, 1, 1, 2, 2), ones(d, 3, 1, 4, 4), longs(d, 1, 1, 2, 2)
    ),
    "fractional_max_pool2d's gradient, no output size": lambda d: aten.fractional_max_pool2d_backward(
        ones(d, 1, 3, 2, 3), ones(d, 1, 3, 9, 9), [3, 3], [], longs(d, 1, 3, 2, 3)
    ),
    "fractional_max_pool2d's gradient, two dtypes": lambda d: aten.fractional_max_pool2d_backward(
        ones(d, 1, 3, 2, 2), ones(d, 1, 3, 9, 9, dtype=torch.float64), [3, 3], [2, 2],
        longs(d, 1, 3, 2, 2),
    ),
    "fractional_max_pool2d, kernel 2^63 - 1": lambda d: aten.fractional_max_pool2d(
        ones(d, 1, 3, 9, 9), [2**63 - 1, 2], [4, 4], ones(d, 1, 3, 2) / 2
    ),
    "max_unpool2d into its input": lambda d: unpool(d, None, 2),
    "max_unpool3d into its input": lambda d: unpool(d, None),
    "reflection_pad1d into its input": lambda d: aten.reflection_pad1d.out(
        x := ones(d, 1, 3, 9), [2, 2], out=x
    ),
    "conv_transpose2d, dilation 2^63 - 1": lambda d: transposed(d, dilation=(2, 2**63 - 1)),
    "conv_transpose3d, dilation 2^63 - 1": lambda d: transposed(
        d, (4, 5, 6), stride=(3, 2, 1), padding=(1, 2, 3), output_padding=(2, 3, 1),
        dilation=(2, 2**63 - 1, 4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore")
def test_arguments_that_the_cpu_takes_on_trust_are_refused(device, name):
    with pytest.raises(RuntimeError):
        REFUSED[name](device)
    assert (ones(device, 3) + 1).tolist() == [2, 2, 2]


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("index", [16, -2, 2**40])
def test_bad_positions_of_maxima_are_reported(device, module, index, channels_last):
    x = ones(device, 2, 3, 4, 4)
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
    indices = longs(device, 2, 3, 2, 2) + index

    def waited() -> None:
        gradient = ones(device, 2, 3, 2, 2)
        aten.max_pool2d_with_indices_backward(gradient, x, [2], [], [0], [1], False, indices)
        module.synchronize()

    with pytest.raises((RuntimeError, IndexError)):
        waited()


def test_samples_beyond_the_input_are_reported(device, module):
    """A sample of 2^26 rounds the begin of a window up, to one element beyond the last one."""

    def waited(place: str) -> None:
        samples = ones(place, 1, 1, 2) * 2**26
        aten.fractional_max_pool2d(ones(place, 1, 1, 17, 17), [2, 2], [9, 9], samples)
        module.synchronize()

    for place in ("cpu", device):
        with pytest.raises((RuntimeError, IndexError)):
            waited(place)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.int8])
@pytest.mark.parametrize("pool", [F.max_pool1d, F.max_pool2d, F.max_pool3d])
def test_a_window_without_elements_gives_the_lowest_number(device, pool, dtype):
    """Padding 1 and dilation 2 of one element: the window has its taps on both sides of it."""
    dims = int(pool.__name__[-2])
    x = torch.full([1, 2] + [1] * dims, 3, dtype=dtype)
    lowest = -INF if dtype.is_floating_point else torch.iinfo(dtype).min
    found = pool(x.to(device), 2, 1, 1, 2, return_indices=True)
    assert found[0].cpu().eq(lowest).all()
    assert found[1].cpu().eq(-1).all()


@pytest.mark.parametrize("pool", [F.max_pool2d, F.max_pool3d])
@pytest.mark.parametrize("size", [1, 3])
def test_a_window_without_elements_has_no_gradient(device, module, pool, size):
    dims = int(pool.__name__[-2])
    x = ones(device, 2, 3, *[1] * (dims - 1), size).requires_grad_()
    pool(x, 2, 1, 1, 2).sum().backward()
    module.synchronize()
    assert x.grad is not None
    assert x.grad.eq(0).all()


def test_a_fractional_window_without_elements(device):
    x, samples = torch.rand(1, 3, 9, 9), torch.rand(1, 3, 2)
    for kernel in ([-1, 5], [0, 0], [2, -3]):
        expected = aten.fractional_max_pool2d(x, kernel, [4, 4], samples)
        found = aten.fractional_max_pool2d(x.to(device), kernel, [4, 4], samples.to(device))
        assert found[0].cpu().equal(expected[0])
        assert found[1].cpu().equal(expected[1])
    smallest = F.fractional_max_pool2d(x.to(device), -(2**63), output_ratio=(0.5, 0.5))
    assert smallest.cpu().eq(-INF).all()


def test_adaptive_averages_without_elements_make_no_maps(device):
    found = F.adaptive_avg_pool3d(ones(device, 1, 2, 3, 3, 3), [2**31 - 1, 2, 0])
    assert found.shape == (1, 2, 2**31 - 1, 2, 0)


def test_padding_by_nothing_may_write_its_input(device):
    x = torch.rand(1, 3, 9, device=device)
    kept = x.clone()
    assert aten.reflection_pad1d.out(x, [0, 0], out=x).equal(kept)


@pytest.mark.parametrize("stride", [17, 100])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_transposed_convolution_of_large_strides(device, stride, dtype):
    """oneDNN crashes for these, on the CPU too."""
    image = torch.randn(1, 4, 3, 2).to(dtype)
    weight = torch.randn(4, 8, 3, 2).to(dtype)
    found = F.conv_transpose2d(image.to(device), weight.to(device), stride=stride, dilation=(2, 3))
    expected = F.conv_transpose2d(image.float(), weight.float(), stride=stride, dilation=(2, 3))
    torch.testing.assert_close(found.cpu().float(), expected, rtol=2e-2, atol=2e-2)

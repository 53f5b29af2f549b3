"""Convolutions of float16 and bfloat16 images: against float64, and about as fast as float32."""

import time

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

# name: (function, sizes of images, of weights, options)
CASES = {
    "plain": (F.conv2d, (2, 16, 9, 9), (32, 16, 3, 3), {"padding": 1}),
    "strided": (F.conv2d, (1, 3, 12, 10), (8, 3, 3, 3), {"stride": 2, "padding": 1}),
    "grouped": (F.conv2d, (2, 8, 9, 9), (12, 4, 3, 3), {"groups": 2, "dilation": 2}),
    "depthwise": (F.conv2d, (2, 8, 7, 7), (8, 1, 3, 3), {"groups": 8, "padding": 1}),
    "one pixel": (F.conv2d, (1, 16, 1, 1), (4, 16, 1, 1), {}),
    "lines": (F.conv1d, (3, 5, 20), (7, 5, 3), {"padding": 1}),
    "volumes": (F.conv3d, (1, 4, 5, 6, 7), (6, 4, 3, 3, 3), {"padding": 1}),
    "transposed": (F.conv_transpose2d, (2, 6, 5, 5), (6, 4, 3, 3), {"stride": 2, "padding": 1}),
}
LOOSE = {torch.float16: 4e-3, torch.bfloat16: 3e-2}


def drawn(sizes, seed, dtype):
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed)).to(dtype)


def results(function, x, weight, bias, options):
    """The images, and the gradients of all three for the same slopes."""
    leaves = [
        t.clone(memory_format=torch.preserve_format).requires_grad_() for t in (x, weight, bias)
    ]
    y = function(*leaves, **options)
    slopes = drawn(y.shape, 4, torch.bfloat16)  # exact in float16, too
    y.backward(slopes.to(y.device, y.dtype))
    return [y.detach(), *(leaf.grad for leaf in leaves)]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("dtype", LOOSE, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_convolves_as_float64_does(device, native, case, dtype, layout):
    function, sizes, weights, options = CASES[case]
    x, weight = drawn(sizes, 1, dtype), drawn(weights, 2, dtype) * 0.3
    outputs = weights[1] if function is F.conv_transpose2d else weights[0]
    bias = drawn((outputs,), 3, dtype)
    if x.dim() == 4:
        x = x.contiguous(memory_format=layout)
    expected = results(function, x.double(), weight.double(), bias.double(), options)
    found = results(function, *(t.to(device) for t in (x, weight, bias)), options)
    for ours, exact in zip(found, expected, strict=True):
        assert ours.dtype == dtype
        loose = LOOSE[dtype]
        assert_close(ours.cpu().double(), exact, rtol=loose, atol=loose * exact.abs().max().item())


def seconds(call, module):
    call()
    module.synchronize()
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        call()
        module.synchronize()
        best = min(best, time.perf_counter() - start)
    return best


def test_half_images_take_no_slow_reference_path(device, module):
    """oneDNN's reference kernels take hundreds of times as long as its fast ones."""

    def timed(dtype):
        x = torch.ones(4, 32, 28, 28, device=device, dtype=dtype)
        weight = torch.ones(32, 32, 3, 3, device=device, dtype=dtype)
        return seconds(lambda: F.conv2d(x, weight, padding=1), module)

    assert timed(torch.float16) < 40 * timed(torch.float32)

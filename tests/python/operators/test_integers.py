"""Integers against the CPU: sums of products that wrap, what is refused, division by zero."""

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
OTHERS = [torch.bool, torch.complex64]


def numbers(shape, dtype, seed):
    """Over the whole range of the dtype: most sums of products leave it."""
    generator = torch.Generator().manual_seed(seed)
    if dtype not in INTEGERS:
        return torch.randn(shape, generator=generator).to(dtype)
    info = torch.iinfo(dtype)
    return torch.randint(info.min, info.max, shape, generator=generator, dtype=dtype)


def both(call, device, shapes, dtype):
    """Results, or the first lines of errors, on the CPU and on the device."""
    found = []
    for place in ("cpu", device):
        tensors = [numbers(shape, dtype, i).to(place) for i, shape in enumerate(shapes)]
        try:
            found.append(call(*tensors).cpu())
        except RuntimeError as error:
            found.append((type(error), str(error).split("\n")[0]))
    return found


def compare(expected, found):
    if isinstance(expected, tuple):
        assert found == expected
    else:
        assert_close(found, expected, rtol=0, atol=0)


# name -> (call, shapes of input, weight, bias)
CONVOLUTIONS = {
    "one": (F.conv1d, (2, 3, 9), (4, 3, 2), (4,)),
    "two": (F.conv2d, (2, 3, 9, 8), (4, 3, 3, 2), (4,)),
    "three": (F.conv3d, (1, 2, 5, 4, 6), (3, 2, 2, 2, 2), (3,)),
    "many channels": (F.conv2d, (2, 32, 12, 12), (32, 32, 3, 3), (32,)),
    "groups": (lambda *a: F.conv2d(*a, groups=2, stride=2), (2, 4, 9, 8), (6, 2, 3, 2), (6,)),
    "depthwise": (lambda *a: F.conv2d(*a, groups=4, padding=1), (2, 4, 9, 8), (4, 1, 3, 3), (4,)),
    "dilated": (lambda *a: F.conv2d(*a, dilation=2), (2, 3, 9, 8), (4, 3, 2, 2), (4,)),
    "transposed one": (F.conv_transpose1d, (2, 3, 9), (3, 4, 2), (4,)),
    "transposed two": (F.conv_transpose2d, (2, 3, 5, 4), (3, 4, 3, 2), (4,)),
    "transposed three": (F.conv_transpose3d, (1, 2, 5, 4, 6), (2, 3, 2, 2, 2), (3,)),
    "transposed groups": (
        lambda *a: F.conv_transpose2d(*a, groups=2), (2, 4, 5, 4), (4, 3, 3, 2), (6,)
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [*INTEGERS, torch.bool], ids=str)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_wrap(device, native, name, dtype):
    call, *shapes = CONVOLUTIONS[name]
    compare(*both(call, device, shapes, dtype))
    compare(*both(call, device, shapes[:2], dtype))


def test_a_convolution_of_bytes_does_not_saturate(device, native):
    x = torch.full((1, 2, 4, 4), 13, dtype=torch.int8, device=device)
    assert F.conv2d(x, x[..., :2, :2].contiguous()).unique().tolist() == [8 * 169 - 5 * 256]


@pytest.mark.parametrize("mask", [(True, True, True), (False, True, False)])
@pytest.mark.parametrize("dtype", [*INTEGERS, *OTHERS], ids=str)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_gradients_of_convolutions_are_refused(device, rank, dtype, mask):
    shapes = [(1, 1, *[3] * rank), (1, 2, *[4] * rank), (1, 2, *[2] * rank)]
    each = [[1] * rank, [0] * rank, [1] * rank, False, [0] * rank, 1]
    call = torch.ops.aten.convolution_backward
    for place in ("cpu", device):
        tensors = [torch.ones(shape).to(dtype).to(place) for shape in shapes]
        with pytest.raises(NotImplementedError, match="not implemented for"):
            call(*tensors, [1], *each, mask)


PRODUCTS = {
    "mm": (torch.mm, (5, 7), (7, 6)),
    "large mm": (torch.mm, (70, 90), (90, 65)),
    "bmm": (torch.bmm, (3, 5, 7), (3, 7, 6)),
    "mv": (torch.mv, (5, 7), (7,)),
    "dot": (torch.dot, (50,), (50,)),
    "addmm": (lambda *a: torch.addmm(*a, beta=3, alpha=5), (5, 6), (5, 7), (7, 6)),
    "addmv": (lambda *a: torch.addmv(*a, beta=3, alpha=5), (5,), (5, 7), (7,)),
    "addr": (lambda *a: torch.addr(*a, beta=3, alpha=5), (5, 6), (5,), (6,)),
    "baddbmm": (lambda *a: torch.baddbmm(*a, beta=3, alpha=5), (3, 5, 6), (3, 5, 7), (3, 7, 6)),
    "einsum": (lambda a, b: torch.einsum("ij,kj->ik", a, b), (5, 7), (6, 7)),
}


@pytest.mark.parametrize("dtype", [*INTEGERS, torch.bool], ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_wrap(device, name, dtype):
    call, *shapes = PRODUCTS[name]
    compare(*both(call, device, shapes, dtype))


DIVISIONS = {
    "//": lambda a, b: a // b,
    "floor_divide": torch.floor_divide,
    "trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "floor": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "remainder": torch.remainder,
    "fmod": torch.fmod,
    "//=": lambda a, b: a.clone().floor_divide_(b),
}


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("name", DIVISIONS)
def test_division_by_zero(device, native, name, dtype):
    call, module = DIVISIONS[name], torch.graft
    a = torch.tensor([[7, 8], [9, 10]], dtype=dtype, device=device)
    for zero in (0, torch.tensor(0)):  # known on the host: at once
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            call(a, zero)
        assert call(a[:0], zero).shape == (0, 2)
    ones = torch.ones_like(a)
    zeros = [ones.triu(), ones.tril().mT, ones.triu()[0], torch.zeros_like(a[0, 0]), ones[:1] - 1]
    zeros[2] = ones.triu()[1].expand(2, 2)
    for divisor in zeros:
        module.synchronize()
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            call(a, divisor).cpu()
    module.synchronize()
    assert_close(call(a, ones).cpu(), call(a.cpu(), ones.cpu()))
    real = call(a.float(), torch.zeros_like(a).float()).cpu()
    assert_close(real, call(a.cpu().float(), torch.zeros(2, 2)), equal_nan=True)

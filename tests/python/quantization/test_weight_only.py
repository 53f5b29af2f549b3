# tests/python/quantization/test_weight_only.py: products with weights of 8 and 4 bits against
# float64 products over the same dequantized weights.
from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.testing import assert_close

import torch_graft
from quantized_cases import native, numbers
from sandbox import NAME

pytestmark = pytest.mark.any_driver

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
# Sums of float32, and where many rows meet a weight that was rounded to its dtype; the result is.
TOLERANCE = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}


def bytes_of(n: int, k: int) -> torch.Tensor:
    draw = torch.Generator().manual_seed(0)
    return torch.randint(-128, 128, (n, k), generator=draw).to(torch.int8)


def nibbles_of(n: int, k: int) -> torch.Tensor:
    return torch.randint(0, 16, (n, k), generator=torch.Generator().manual_seed(1))


def packed(integers: torch.Tensor, inner: int = 8) -> torch.Tensor:
    pairs = (integers[:, ::2] << 4 | integers[:, 1::2]).to(torch.uint8)
    return torch._convert_weight_to_int4pack(pairs.to(NAME), inner)


def scales_and_zeros(n: int, groups: int, dtype: torch.dtype, zeros: bool = True) -> torch.Tensor:
    scale = numbers(groups, n, seed=2).abs() / 100 + 0.001
    zero = numbers(groups, n, seed=3) / 50 * zeros
    return torch.stack([scale, zero], 2).to(dtype)


def dequantized(integers: torch.Tensor, pairs: torch.Tensor, group: int) -> torch.Tensor:
    wide = pairs.double().repeat_interleave(group, 0)  # [k, n, 2]
    return (integers.double().t() - 8) * wide[..., 0] + wide[..., 1]


def check(found: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> None:
    """An element is within the tolerance times the magnitudes that met in it."""
    assert found.dtype == x.dtype
    expected, met = x.double() @ weight, x.double().abs() @ weight.abs()
    worst = ((found.cpu().double() - expected).abs() / met).max()
    assert worst <= TOLERANCE[x.dtype], worst


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [1, 5, 8, 20, 100])
def test_weights_of_8_bits(m: int, dtype: torch.dtype) -> None:
    for n, k in ((16, 32), (70, 516), (9, 77)):
        x, weight = numbers(m, k, dtype=dtype), bytes_of(n, k)
        for scale_dtype in (dtype, torch.float32):
            scales = (numbers(n, seed=2).abs() / 100 + 0.001).to(scale_dtype)
            with native():
                found = torch._weight_int8pack_mm(x.to(NAME), weight.to(NAME), scales.to(NAME))
            check(found, x, weight.double().t() * scales.double())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("group", [32, 64, 128, 256])
def test_weights_of_4_bits(group: int, dtype: torch.dtype) -> None:
    n, k = 48, 512
    integers = nibbles_of(n, k)
    for m in (1, 2, 8, 20, 100):
        for zeros in (True, False):
            x, pairs = numbers(m, k, dtype=dtype), scales_and_zeros(n, k // group, dtype, zeros)
            with native():
                weight = packed(integers)
                found = torch._weight_int4pack_mm(x.to(NAME), weight, group, pairs.to(NAME))
            check(found, x, dequantized(integers, pairs, group))


def test_one_wrong_scale_is_seen() -> None:
    x, integers = numbers(1, 512), nibbles_of(48, 512)
    pairs = scales_and_zeros(48, 4, torch.float32)
    wrong = pairs.clone()
    wrong[2, 11, 0] *= 1.25
    found = torch._weight_int4pack_mm(x.to(NAME), packed(integers), 128, wrong.to(NAME))
    with pytest.raises(AssertionError):
        check(found, x, dequantized(integers, pairs, 128))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_cpu_agrees(dtype: torch.dtype) -> None:
    def agree(here: torch.Tensor, there: torch.Tensor) -> None:
        tolerance = TOLERANCE[dtype]
        assert_close(here.cpu(), there, rtol=tolerance, atol=tolerance * there.abs().max().item())

    x = numbers(3, 256, dtype=dtype)
    integers, pairs = nibbles_of(64, 256), scales_and_zeros(64, 4, dtype)
    here = torch._weight_int4pack_mm(x.to(NAME), packed(integers), 64, pairs.to(NAME))
    theirs = torch._convert_weight_to_int4pack_for_cpu(integers.int(), 2)
    agree(here, torch._weight_int4pack_mm_for_cpu(x, theirs, 64, pairs))
    weight, scales = bytes_of(64, 256), (numbers(64, seed=2).abs() / 100).to(dtype)
    here = torch._weight_int8pack_mm(x.to(NAME), weight.to(NAME), scales.to(NAME))
    agree(here, torch._weight_int8pack_mm(x, weight, scales))


@pytest.mark.parametrize("inner", [2, 4, 8])
def test_packed_weights_have_the_sizes_of_the_meta_device(inner: int) -> None:
    integers = nibbles_of(16, 256)
    meta = torch._convert_weight_to_int4pack(
        torch.empty(16, 128, dtype=torch.uint8, device="meta"), inner
    )
    weight = packed(integers, inner)
    assert (weight.shape, weight.dtype) == (meta.shape, meta.dtype)
    x, pairs = numbers(2, 256), scales_and_zeros(16, 4, torch.float32)
    found = torch._weight_int4pack_mm(x.to(NAME), weight, 64, pairs.to(NAME))
    check(found, x, dequantized(integers, pairs, 64))


def test_nothing_times_a_weight_is_nothing() -> None:
    weight, pairs = packed(nibbles_of(16, 128)), scales_and_zeros(16, 2, torch.float32).to(NAME)
    none = torch._weight_int4pack_mm(torch.empty(0, 128, device=NAME), weight, 64, pairs)
    assert none.shape == (0, 16)
    x, bytes_ = torch.empty(3, 0, device=NAME), torch.empty(4, 0, dtype=torch.int8, device=NAME)
    assert torch._weight_int8pack_mm(x, bytes_, torch.ones(4, device=NAME)).cpu().eq(0).all()


def test_what_does_not_fit_is_refused() -> None:
    x, weight = torch.ones(2, 128, device=NAME), packed(nibbles_of(16, 128))
    pairs = scales_and_zeros(16, 2, torch.float32).to(NAME)
    mm = torch._weight_int4pack_mm
    refused: list[tuple[str, Callable[[], object]]] = [
        ("32, 64, 128 or 256, got 48", lambda: mm(x, weight, 48, pairs)),
        (r"floating of \[4, 16, 2\]", lambda: mm(x, weight, 32, pairs)),
        ("have 128 columns", lambda: mm(x[:, :64], weight, 64, pairs)),
        ("floating matrix", lambda: mm(x.int(), weight, 64, pairs)),
        ("four dimensions", lambda: mm(x, weight.flatten(), 64, pairs)),
        ("innerKTiles", lambda: packed(nibbles_of(16, 128), 3)),
        ("multiple of 8", lambda: packed(nibbles_of(12, 128))),
        ("uint8 matrix", lambda: torch._convert_weight_to_int4pack(x, 8)),
        ("int8 matrix of 128", lambda: torch._weight_int8pack_mm(x, x, x[0])),
        ("floating vector of 3", lambda: torch._weight_int8pack_mm(x, x[:1].to(torch.int8).expand(3, 128), x[0])),
    ]  # fmt: skip
    for text, call in refused:
        with pytest.raises(RuntimeError, match=text):
            call()


class Layers(torch.nn.Module):
    """A layer of each kind, one behind the other."""

    def __init__(self, k: int = 128) -> None:
        super().__init__()
        self.weight = packed(nibbles_of(64, k))
        self.pairs = scales_and_zeros(64, k // 32, torch.float32).to(NAME)
        self.bytes = bytes_of(24, 64).to(NAME)
        self.scales = (numbers(24, seed=2).abs() / 100).to(NAME)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch._weight_int4pack_mm(x * 2, self.weight, 32, self.pairs)
        return torch._weight_int8pack_mm(y.relu(), self.bytes, self.scales) + 1


@pytest.mark.parametrize("m", [1, 100])
def test_compiled_graphs_have_the_same_numbers(m: int) -> None:
    model, x = Layers().eval(), numbers(m, 128).to(NAME)
    with torch.no_grad():
        expected = model(x).cpu()
        assert_close(torch.compile(model, fullgraph=True)(x).cpu(), expected)
        assert_close(torch_graft.optimize(model, x)(x).cpu(), expected)

"""out= of another dtype than the operator's: results are rounded to the operator's first."""

import itertools

import pytest
import torch
from torch.testing import assert_close

NARROW = [torch.float16, torch.bfloat16]
BINARY = ["add", "sub", "mul", "div", "pow", "maximum", "atan2", "fmod", "remainder", "hypot"]
UNARY = ["exp", "sqrt", "sin", "tanh", "reciprocal", "sigmoid", "erf", "neg", "expm1", "square"]


def operands(dtype, device):
    generator = torch.Generator().manual_seed(5)
    x, y = (torch.rand(3, 40, generator=generator) * 4 + 0.1 for _ in range(2))
    return x.to(dtype).to(device), y.to(dtype).to(device)


def test_sums_beyond_float16(device, native):
    x = torch.full((2,), 33000.0, dtype=torch.float16, device=device)
    for wide in (torch.float32, torch.float64, torch.complex64, torch.bfloat16):
        out = torch.zeros(2, dtype=wide, device=device)
        assert torch.isinf(torch.add(x, x, out=out)).all()
    third = torch.tensor([1.0], dtype=torch.float16, device=device) / 3
    out = torch.zeros(1, dtype=torch.float32, device=device)
    assert torch.mul(third, third, out=out).item() == (third * third).item()


def written(call, device, out):
    """The result in out, or None where the CPU refuses its dtype, and the device in the same words."""
    refusal = ""
    try:
        call("cpu", out.cpu())
    except RuntimeError as error:
        refusal = str(error)
    if not refusal:
        return call(device, out)
    with pytest.raises(RuntimeError) as found:
        call(device, out)
    assert str(found.value) == refusal
    return None


@pytest.mark.parametrize("wide", [torch.float32, torch.float64, torch.complex64], ids=str)
@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.seldom
def test_pointwise(device, native, dtype, wide):
    x, y = operands(dtype, device)
    for layout in (lambda t: t, lambda t: t.mT, lambda t: t[:, ::2]):
        a, b = layout(x), layout(y)
        for name in BINARY + UNARY:
            inputs = (a, b) if name in BINARY else (a,)
            call = getattr(torch, name)
            found = written(
                lambda place, out, c=call, i=inputs: c(*[t.to(place) for t in i], out=out),
                device,
                torch.empty(a.shape, dtype=wide, device=device),
            )
            if found is not None:
                assert_close(found, call(*inputs).to(wide), rtol=0, atol=0, msg=name)


SINGLE = ["erfinv", "log", "acos", "atanh", "tan", "log1p", "sigmoid", "digamma", "rsqrt"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
def test_formulas_in_double(device, native, dtype):
    """What a formula computes in float64 is rounded to the operator's dtype, too."""
    x = (operands(torch.float32, device)[0] / 5).to(dtype)
    double = torch.promote_types(dtype, torch.float64)
    wide = torch.empty(x.shape, dtype=double, device=device)
    for name in SINGLE:
        if dtype.is_complex and name in ("erfinv", "digamma"):
            continue
        found = getattr(torch, name)(x, out=wide)
        assert_close(found, found.to(dtype).to(wide.dtype), rtol=0, atol=0, msg=name)


NUMBERS = {
    "add": lambda x, y, **k: torch.add(x, 0.3, **k),
    "mul": lambda x, y, **k: torch.mul(x, torch.tensor(0.3), **k),
    "alpha": lambda x, y, **k: torch.add(x, y, alpha=0.3, **k),
    "addcmul": lambda x, y, **k: torch.addcmul(x, x, y, value=0.7, **k),
    "lerp": lambda x, y, **k: torch.lerp(x, y, 0.3, **k),
    "clamp": lambda x, y, **k: torch.clamp(x, 0.3, 2.7, **k),
    "pow": lambda x, y, **k: torch.pow(x, 1.5, **k),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_numbers_beside_tensors(device, native, dtype, name):
    x, y = operands(dtype, device)
    call = NUMBERS[name]
    found = written(
        lambda place, out: call(x.to(place), y.to(place), out=out),
        device,
        torch.empty(x.shape, device=device),
    )
    if found is not None:
        assert_close(found, call(x, y).float(), rtol=0, atol=0)


def test_other_dtypes(device, native):
    """What is computed in a wider dtype, or has results of another kind, keeps it."""
    x, y = operands(torch.float16, device)
    wide = torch.empty(x.shape, device=device)
    assert_close(torch.add(x, y.float(), out=wide), x.float() + y.float(), rtol=0, atol=0)
    assert torch.equal(torch.lt(x, y, out=wide), (x < y).float())
    exact = torch.empty(x.shape, dtype=torch.float64, device=device)
    a, b = x.float() / 3, y.float() / 7
    assert_close(torch.add(a, b, out=exact), (a + b).double(), rtol=0, atol=0)
    mantissa, exponent = torch.frexp(x)
    assert_close(mantissa.float() * torch.exp2(exponent.float()), x.float(), rtol=0, atol=0)
    small = torch.full((2,), 100, dtype=torch.int8, device=device)
    assert torch.add(small, small, out=torch.zeros(2, dtype=torch.int32, device=device))[0] == -56


REDUCTIONS = ["sum", "mean", "prod", "amax", "logsumexp", "var", "std", "norm", "nansum", "cumsum"]


@pytest.mark.parametrize(("dtype", "name"), [*itertools.product(NARROW, REDUCTIONS)], ids=str)
def test_reductions(device, name, dtype):
    def found(place):
        x = operands(dtype, place)[0]
        sizes = x.shape if name == "cumsum" else (3,)
        out = torch.empty(sizes, device=place)
        options = {"p": 2} if name == "norm" else {}
        try:
            return getattr(torch, name)(x, dim=1, out=out, **options).cpu()
        except RuntimeError as error:
            return type(error)

    expected, there = found("cpu"), found(device)
    if isinstance(expected, type):
        assert there is expected
    else:
        assert torch.equal(there.to(dtype).float(), there) is torch.equal(
            expected.to(dtype).float(), expected
        )
        assert_close(there, expected, rtol=2e-2, atol=1e-3)

"""Numbers that a dtype does not hold, where operators take numbers: taken, or refused, as by the CPU."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

pytestmark = pytest.mark.filterwarnings("ignore")

HALVES = [torch.float16, torch.bfloat16]
FLOATS = [*HALVES, torch.float32, torch.float64, torch.complex64]
NUMBERS = (1e308, 3e9, 70000, 1 + 2j, 1e308j, float("inf"))
aten = torch.ops.aten


def outcome(call, *arguments):
    try:
        result = call(*arguments)
    except (RuntimeError, NotImplementedError) as error:
        return f"{type(error).__name__}: {error}".split("\n")[0]
    return result.cpu()


def check(call, device, x, numbers):
    for number in numbers:
        wanted, found = outcome(call, x.clone(), number), outcome(call, x.to(device), number)
        if isinstance(wanted, str):
            assert found == wanted, number
        elif abs(number) < 1e38 or not wanted.is_complex():  # infinity times 1 is NaN there
            assert_close(found, wanted, equal_nan=True)


def first(x):
    return torch.zeros(len(x), dtype=torch.int64, device=x.device)


TAKERS = {
    "elu": lambda x, n: F.elu(x, n),
    "elu's scale": lambda x, n: aten.elu(x, 1, n),
    "leaky_relu": F.leaky_relu,
    "threshold": lambda x, n: F.threshold(x, n, 1.0),
    "threshold's value": lambda x, n: F.threshold(x, 1.0, n),
    "hardshrink": F.hardshrink,
    "softplus": F.softplus,
    "hardtanh": lambda x, n: F.hardtanh(x, -n, n) if isinstance(n, float) else x,
    "add": lambda x, n: torch.add(x, x, alpha=n),
    "sub": lambda x, n: torch.sub(x, x, alpha=n),
    "rsub": lambda x, n: torch.rsub(x, x, alpha=n),
    "lerp": lambda x, n: torch.lerp(x, x, n),
    "addcmul": lambda x, n: torch.addcmul(x, x, x, value=n),
    "addcdiv": lambda x, n: torch.addcdiv(x, x, x, value=n),
    "masked_fill": lambda x, n: x.masked_fill_(x == 0, n),
    "fill": lambda x, n: x.fill_(n),
    "fill of one": lambda x, n: x[:1, :1].fill_(n),
    "where": lambda x, n: torch.where(x == 0, x, n),
    "pow": torch.pow,
    "index_add": lambda x, n: x.index_add(0, first(x), x, alpha=n),
    "foreach lerp": lambda x, n: torch._foreach_lerp([x], [x], n)[0],
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", TAKERS)
def test_numbers_are_refused_as_by_the_cpu(device, name, dtype):
    for rows in (3, 0):
        check(TAKERS[name], device, torch.ones(rows, 3, dtype=dtype), NUMBERS)


PRODUCTS = {
    "addmm": lambda x, **n: torch.addmm(x, x, x, **n),
    "addmv": lambda x, **n: torch.addmv(x[0], x, x[0], **n),
    "addbmm": lambda x, **n: torch.addbmm(x, x[None], x[None], **n),
    "baddbmm": lambda x, **n: torch.baddbmm(x[None], x[None], x[None], **n),
    "addr": lambda x, **n: torch.addr(x, x[0], x[0], **n),
    "addmm of nothing": lambda x, **n: torch.addmm(x, x[:, :0], x[:0], **n),
    "addmv of nothing": lambda x, **n: torch.addmv(x[0], x[:, :0], x[0, :0], **n),
    "baddbmm of nothing": lambda x, **n: torch.baddbmm(x[None], x[None, :, :0], x[None, :0], **n),
    "with an activation": lambda x, **n: torch._addmm_activation(x[0], x, x, **n),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_factors_of_products_are_refused_as_by_the_cpu(device, name, dtype):
    x = torch.ones(3, 3, dtype=dtype)
    for factor in ("alpha", "beta"):
        check(lambda x, n: PRODUCTS[name](x, **{factor: n}), device, x, (1e308, 1e308j))  # noqa: B023


INTEGERS = {n: TAKERS[n] for n in ("add", "masked_fill", "fill", "addcmul", "pow")}


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8], ids=str)
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_refused_as_by_the_cpu(device, name, dtype):
    for rows in (3, 0):
        check(INTEGERS[name], device, torch.ones(rows, 3, dtype=dtype), (2**40, 300))


def test_a_divisor_that_wraps_around_to_zero(device):
    x = torch.ones(3, dtype=torch.int32)
    for call in (torch.floor_divide, torch.remainder, torch.fmod):
        check(call, device, x, (2**40, 2**40 + 3))


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32], ids=str)
def test_rows_held_to_a_norm_beyond_the_dtype(device, dtype):
    rows = torch.tensor([[3.0, 4.0], [torch.inf, 1.0]], dtype=dtype)
    index = torch.tensor([0, 1])
    for bound in (1e308, 70000.0, 2.0, torch.inf):
        wanted = aten.embedding_renorm_(rows.clone(), index, bound, 2.0)
        found = aten.embedding_renorm_(rows.to(device), index.to(device), bound, 2.0)
        assert_close(found.cpu(), wanted, equal_nan=True)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_quotients_of_half_types_are_rounded_before_they_are_cut(device, dtype):
    x = (torch.arange(1, 2001) / 16).to(dtype)
    for divisor, out in itertools.product((x.flip(0), x[7], x[7:8], 0.7), (False, True)):
        at = divisor.to(device) if isinstance(divisor, torch.Tensor) else divisor
        into = {"out": torch.empty(2000, device=device)} if out else {}
        found = torch.div(x.to(device), at, rounding_mode="trunc", **into)
        into = {"out": torch.empty(2000)} if out else {}
        assert torch.equal(found.cpu(), torch.div(x, divisor, rounding_mode="trunc", **into))


@pytest.mark.parametrize("form", ["plain", "out", "in place"])
def test_rrelu_takes_one_dtype_and_bounds_that_it_holds(device, form):
    def rrelu(x, noise, high):
        arguments = (noise, 0.1, high, True)
        if form == "plain":
            return aten.rrelu_with_noise(x, *arguments)
        if form == "out":
            return aten.rrelu_with_noise(x, *arguments, out=torch.empty_like(noise))
        return aten.rrelu_with_noise_(x, *arguments)

    for rows, dtype, high in ((3, torch.float16, 1.0), (0, torch.float16, 1.0), (0, None, 1e308)):
        x = torch.ones(rows, 3)
        wanted = outcome(rrelu, x, x.to(dtype or x.dtype), high)
        assert isinstance(wanted, str)
        y = x.to(device)
        assert outcome(rrelu, y, y.to(dtype or y.dtype), high) == wanted


def test_a_sum_of_integers_takes_no_floating_factor(device):
    for call in (torch.add, torch.sub):
        for alpha in (0.5, 1.0, True):
            errors = []
            for place in ("cpu", device):
                x, out = torch.ones(3, dtype=torch.int32, device=place), torch.ones(3, device=place)
                errors.append(outcome(lambda: call(x, x, alpha=alpha, out=out)))  # noqa: B023
            assert errors[0] == errors[1]

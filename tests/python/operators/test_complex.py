# tests/python/operators/test_complex.py: complex numbers against the CPU: reductions, products, functions.
import warnings

import pytest
import torch
from torch.testing import assert_close

DTYPES = [torch.complex64, torch.complex128]
REDUCTIONS = {
    "sum": lambda x: x.sum(), "sum dim": lambda x: x.sum(0), "mean": lambda x: x.mean(1, True),
    "sum strided": lambda x: x.t()[::2].sum(1), "diagonal": lambda x: x.diagonal().sum(),
    "cumsum": lambda x: x.cumsum(1), "cumprod": lambda x: x.cumprod(0), "prod": lambda x: x.prod(),
    "prod dim": lambda x: x.prod(0), "prod of nothing": lambda x: x[:0].prod(0),
    "prod inner": lambda x: x.t().prod(0, True), "logcumsumexp": lambda x: x.logcumsumexp(1),
    "any": lambda x: (x * 0).any(1), "all": lambda x: x.all(), "var": lambda x: x.var(),
    "std": lambda x: x.std(1), "norm": lambda x: torch.linalg.vector_norm(x),
    "norm 3": lambda x: torch.linalg.vector_norm(x, 3, 0), "logsumexp": lambda x: x.logsumexp(1),
    "norm inf": lambda x: torch.linalg.vector_norm(x, float("inf"), 1),
    "count": lambda x: (x * (x.real > 0)).count_nonzero(1),
    "real to complex": lambda x: x.real.sum(0, dtype=torch.complex64),
    "prod of real": lambda x: x.real.prod(0, dtype=torch.complex64),
}  # fmt: skip
PRODUCTS = {
    "mm": lambda x, y: x @ y.mT, "mm conj": lambda x, y: x.conj() @ y.mH,
    "mm adjoint": lambda x, y: x.mH @ y, "mm strided": lambda x, y: x[:, ::2] @ y[:, ::2].mT,
    "mm large": lambda x, y: x.repeat(12, 12) @ y.mH.repeat(12, 12),
    "mm large conj": lambda x, y: x.repeat(12, 12).conj() @ y.mT.repeat(12, 12),
    "bmm": lambda x, y: torch.bmm(x.expand(3, 6, 7), y.mH.expand(3, 7, 6)),
    "mv": lambda x, y: x @ y[0].conj(), "dot": lambda x, y: torch.dot(x[0], y[1]),
    "vdot": lambda x, y: torch.vdot(x[:, 0], y[:, 1].conj()),
    "ger": lambda x, y: torch.outer(x[0], y[0]),
    "addmm": lambda x, y: torch.addmm(x[:, :6], x, y.mH, beta=2 - 1j, alpha=0.5j),
    "addmm row": lambda x, y: torch.addmm(x[0, :6].conj(), x, y.mT),
    "addmm without": lambda x, y: torch.addmm(x[:, :6] * float("nan"), x, y.mT, beta=0),
    "baddbmm": lambda x, y: torch.baddbmm(
        x[:, :1], x.expand(2, 6, 7), y.mT.expand(2, 7, 6), beta=1j),
    "addmv": lambda x, y: torch.addmv(x[:, 0], x, y[0], beta=0.5, alpha=1j),
    "addmm_": lambda x, y: x[:, :6].clone().addmm_(x, y.mT, beta=3),
}  # fmt: skip
FUNCTIONS = [
    torch.exp2, torch.log2, torch.log10, torch.rsqrt, torch.sigmoid, torch.sinc, torch.logical_not,
    torch.nn.functional.silu, lambda x: x**2, lambda x: x**3, lambda x: x**0.5, lambda x: x**-1,
    lambda x: x ** (0.3 - 2j), lambda x: 2j**x, lambda x: x**x.flip(0), lambda x: x.real**1j,
    lambda x: torch.logaddexp(x, x.flip(0)), lambda x: torch.lerp(x, x.flip(0), 0.3 - 0.2j),
    lambda x: torch.lerp(x, x.flip(0), x / 4), lambda x: torch.logical_xor(x, x * (x.real > 0)),
    lambda x: torch.linspace(1 - 2j, -3j, 9, dtype=x.dtype, device=x.device),
    lambda x: torch.logspace(1 - 2j, -3j, 9, dtype=x.dtype, device=x.device),
]  # fmt: skip


@pytest.fixture
def native(module):
    """Fails a test in which an operator fell back."""
    module.fallback.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    assert module.fallback.counts() == {}


def matrix(seed, dtype):
    return torch.randn(6, 7, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(device, native, name, dtype):
    x, call = matrix(1, dtype), REDUCTIONS[name]
    assert_close(call(x.to(device)).cpu(), call(x))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(device, native, name, dtype):
    x, y, call = matrix(1, dtype), matrix(2, dtype), PRODUCTS[name]
    loose = {"rtol": 1e-5, "atol": 1e-4} if dtype == torch.complex64 else {}
    assert_close(call(x.to(device), y.to(device)).cpu(), call(x, y), **loose)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("call", FUNCTIONS, ids=range(len(FUNCTIONS)))
def test_functions(device, native, call, dtype):
    x = matrix(3, dtype)
    assert_close(call(x.to(device)).cpu(), call(x))


def test_products_write_conjugate_outputs(device, native):
    x, y = matrix(1, torch.complex64), matrix(2, torch.complex64)
    results = []
    for a, b in ((x, y), (x.to(device), y.to(device))):
        out = torch.zeros(6, 6, dtype=a.dtype, device=a.device)
        torch.mm(a, b.mT, out=out.conj())
        results.append(out.cpu())
    assert_close(results[1], results[0])


@pytest.mark.parametrize("call", [torch.sigmoid, torch.tanh, torch.rsqrt, torch.log2])
def test_gradients(device, native, call):
    x = matrix(4, torch.complex64).requires_grad_()
    y = x.detach().to(device).requires_grad_()
    for t in (x, y):
        call(t).abs().sum().backward()
    assert_close(y.grad.cpu(), x.grad)


def test_complex_half_is_stored(device):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex32, device=device)
        assert x.dtype == torch.complex32
        assert x.cpu().to(torch.complex64).tolist() == [1 + 2j, 3 - 1j]
        assert x.conj_physical_().cpu().to(torch.complex64).tolist() == [1 - 2j, 3 + 1j]

"""Gradients of gamma, beta and Dirichlet samples by their parameters, against the CPU in float64."""

import pytest
import torch
from torch.testing import assert_close

DTYPES = [torch.float32, torch.float64]


def spread(count, seed, dtype):
    """Parameters from 0.05 to 400, so that every approximation is met."""
    source = torch.Generator().manual_seed(seed)
    return torch.rand(count, generator=source, dtype=torch.float64).mul(9).sub(3).exp().to(dtype)


def tolerance(dtype):
    # What an approximation rounds off where it is close to a singularity, in float64.
    return {"rtol": 1e-6 if dtype == torch.float32 else 1e-9, "atol": 1e-12}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gamma(dtype, device, native):
    alpha = spread(3000, 1, dtype)
    for scale in (1, 1e-3, 1.05, 3):
        x = torch._standard_gamma(alpha.double()).clamp_min(1e-30).mul(scale).to(dtype)
        expected = torch._standard_gamma_grad(alpha.double(), x.double())
        found = torch._standard_gamma_grad(alpha.to(device), x.to(device))
        assert_close(found.cpu().double(), expected, **tolerance(dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dirichlet(dtype, device, native):
    alpha, beta = spread(3000, 1, dtype), spread(3000, 2, dtype)
    x = torch.rand(3000, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    mean = (alpha / (alpha + beta)).clamp(1e-6, 1 - 1e-6)
    for value in (x.to(dtype), mean):
        expected = torch._dirichlet_grad(
            value.double(), alpha.double(), (alpha + beta).double()
        ).nan_to_num()
        found = torch._dirichlet_grad(
            value.to(device), alpha.to(device), (alpha + beta).to(device)
        ).nan_to_num()
        assert_close(found.cpu().double(), expected, **tolerance(dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reparameterized_samples(dtype, device, native):
    kinds = torch.distributions
    for make in (
        lambda a, b: kinds.Gamma(a, b), lambda a, b: kinds.Beta(a, b),
        lambda a, b: kinds.Dirichlet(torch.stack([a, b], -1)), lambda a, b: kinds.Chi2(a),
        lambda a, b: kinds.StudentT(a, b), lambda a, b: kinds.FisherSnedecor(a, b),
    ):  # fmt: skip
        a, b = (spread(50, seed, dtype).to(device).requires_grad_() for seed in (1, 2))
        make(a, b).rsample().sum().backward()
        assert a.grad.isfinite().all()


def test_mean_of_gradients(device, native):
    """A gamma sample's mean is alpha, so its gradient's mean is 1."""
    torch.manual_seed(5)
    alpha = torch.full((40000,), 2.5, device=device, requires_grad=True)
    torch.distributions.Gamma(alpha, torch.ones_like(alpha)).rsample().sum().backward()
    assert abs(alpha.grad.mean().item() - 1) < 0.02


def test_layouts_and_shapes(device, native):
    alpha = spread(24, 1, torch.float32).reshape(4, 6)
    x = torch._standard_gamma(alpha)
    expected = torch._standard_gamma_grad(alpha.mT, x.mT)
    found = torch._standard_gamma_grad(alpha.to(device).mT, x.to(device).mT)
    assert_close(found.cpu(), expected)
    one = torch._standard_gamma_grad(alpha.to(device), x[:1].to(device))
    assert_close(one.cpu(), torch._standard_gamma_grad(alpha, x[:1]))
    assert torch._standard_gamma_grad(alpha.to(device)[:0], x.to(device)[:0]).shape == (0, 6)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch._standard_gamma_grad(x.double(), x),
        lambda x: torch._standard_gamma_grad(x, x[:2]),
        lambda x: torch._standard_gamma_grad(x.half(), x.half()),
        lambda x: torch._dirichlet_grad(x, x.double(), x),
        lambda x: torch._dirichlet_grad(x.bfloat16(), x.bfloat16(), x.bfloat16()),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_refusals(call, device, module):
    with pytest.raises((RuntimeError, NotImplementedError)) as expected:
        call(torch.ones(3))
    with pytest.raises(type(expected.value)) as found:
        call(torch.ones(3, device=device))
    assert str(found.value).splitlines()[0] == str(expected.value).splitlines()[0]

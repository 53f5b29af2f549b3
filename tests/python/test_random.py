"""Random numbers: reproducible, apart from the CPU's generator, of the right distribution."""

import math

import pytest
import torch

N = 200_000
DRAWS = {
    "rand": lambda n, **o: torch.rand(n, **o), "randn": lambda n, **o: torch.randn(n, **o),
    "randint": lambda n, **o: torch.randint(10, (n,), **o),
    "bernoulli": lambda n, **o: torch.full((n,), 0.3, **o).bernoulli(),
    "exponential": lambda n, **o: torch.empty(n, **o).exponential_(2.0),
    "randperm": lambda n, **o: torch.randperm(n, **o),
    "dropout": lambda n, **o: torch.dropout(torch.ones(n, **o), 0.4, True),
    "half": lambda n, **o: torch.empty(n, dtype=torch.float16, **o).uniform_(),
    "double": lambda n, **o: torch.empty(n, dtype=torch.float64, **o).normal_(),
    "strided": lambda n, **o: torch.empty(n, 2, **o)[:, 0].uniform_(),
    "poisson": lambda n, **o: torch.poisson(torch.full((n,), 4.0, **o)),
    "cauchy": lambda n, **o: torch.empty(n, **o).cauchy_(1, 2),
    "log normal": lambda n, **o: torch.empty(n, **o).log_normal_(0.5, 0.75),
    "geometric": lambda n, **o: torch.empty(n, **o).geometric_(0.25),
    "binomial": lambda n, **o: torch.binomial(torch.full((n,), 20.0, **o), torch.tensor(0.3, **o).expand(n)),
    "gamma": lambda n, **o: torch._standard_gamma(torch.full((n,), 1.0, **o)),
    "dirichlet": lambda n, **o: torch._sample_dirichlet(torch.full((n, 2), 1.0, **o))[:, 0],
    "few without replacement": lambda n, **o: torch.rand(n, 9, **o).multinomial(3),
    "multinomial": lambda n, **o: torch.ones(7, **o).multinomial(n, replacement=True),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWS)
def test_seed_decides(device, name):
    draw, host = DRAWS[name], torch.get_rng_state()
    torch.get_device_module(device).manual_seed(5) if device != "cpu" else torch.manual_seed(5)
    first, later = draw(1000, device=device), draw(1000, device=device)
    torch.manual_seed(5)
    again = draw(1000, device=device)
    assert first.equal(again) and not first.equal(later)  # noqa: PT018
    if device != "cpu":
        torch.set_rng_state(host)
        draw(1000, device=device)
        assert torch.get_rng_state().equal(host), "the CPU's generator was used"


def test_bits_do_not_depend_on_threads(device):
    found, threads = [], torch.get_num_threads()
    for count in (1, threads):
        torch.set_num_threads(count)
        torch.manual_seed(1)
        found.append([torch.rand(N, device=device), torch.randn(N, device=device)])
    torch.set_num_threads(threads)
    assert found[0][0].equal(found[1][0])
    assert found[0][1].equal(found[1][1])


def test_state(device, module):
    if device == "cpu":
        return
    torch.manual_seed(3)
    torch.rand(10, device=device)
    state = module.get_rng_state()
    first = torch.rand(10, device=device)
    module.set_rng_state(state)
    assert torch.rand(10, device=device).equal(first)
    with torch.random.fork_rng(devices=[0, 1], device_type=device):
        torch.rand(100, device=device)
        outside = module.get_rng_state()
    assert not module.get_rng_state().equal(outside)
    module.set_rng_state(state, f"{device}:1")
    assert torch.rand(10, device=f"{device}:1").cpu().equal(first.cpu())
    module.manual_seed_all(9)
    assert torch.rand(4, device=device).cpu().equal(torch.rand(4, device=f"{device}:1").cpu())
    assert module.initial_seed() == 9


def normal_cdf(x):
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


@pytest.mark.parametrize(
    ("name", "cdf"),
    [("rand", lambda x: min(max(x, 0), 1)), ("randn", normal_cdf), ("double", normal_cdf),
     ("exponential", lambda x: 1 - math.exp(-2 * x)), ("gamma", lambda x: 1 - math.exp(-x)),
     ("cauchy", lambda x: 0.5 + math.atan((x - 1) / 2) / math.pi),
     ("log normal", lambda x: normal_cdf((math.log(x) - 0.5) / 0.75)),
     ("dirichlet", lambda x: x)],
)  # fmt: skip
def test_distribution_by_kolmogorov(device, name, cdf):
    torch.manual_seed(11)
    x = DRAWS[name](N, device=device).cpu().double().sort().values
    ranks = torch.arange(1, N + 1) / N
    gap = max(abs(cdf(float(x[i])) - float(ranks[i])) for i in range(0, N, 97))
    assert gap < 1.95 / math.sqrt(N)  # exceeded with probability 0.001 by a right generator


def test_moments(device):
    torch.manual_seed(2)
    x = torch.randn(N, device=device).cpu().double()
    assert abs(x.mean()) < 5 / math.sqrt(N)
    assert abs((x**4).mean() - 3) < 0.1
    assert abs((x[1:] * x[:-1]).mean()) < 5 / math.sqrt(N)
    assert x.abs().max() > 4
    y = torch.randint(3, 13, (N,), device=device).cpu()
    counts = torch.bincount(y - 3, minlength=10).double()
    assert len(counts) == 10
    assert ((counts - N / 10) ** 2 / (N / 10)).sum() < 27.9  # chi square, 9 degrees, 0.001
    assert torch.randperm(N, device=device).cpu().sort().values.equal(torch.arange(N))
    z = torch.empty(N, device=device).uniform_(-3, 5).cpu()
    assert z.min() >= -3
    assert z.max() < 5
    assert abs(z.mean() - 1) < 0.05
    assert abs(torch.normal(2.0, 3.0, (N,), device=device).std().item() - 3) < 0.05


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout(device, p):
    x = torch.full((N,), 3.0, device=device, requires_grad=True)
    y = torch.nn.functional.dropout(x, p)
    y.sum().backward()
    kept = y.detach().cpu() != 0
    assert abs(kept.double().mean() - (1 - p)) < 5 * math.sqrt(p * (1 - p) / N)
    torch.testing.assert_close(y.detach().cpu(), kept * 3 / (1 - p))
    torch.testing.assert_close(x.grad.cpu(), kept / (1 - p))


def test_the_gradient_of_dropout_takes_whole_numbers(device):
    grad, mask = torch.arange(6).view(2, 3), torch.tensor([[True, False, True]] * 2)
    found = torch.ops.aten.native_dropout_backward(grad.to(device), mask.to(device), 1.25)
    expected = torch.ops.aten.native_dropout_backward(grad, mask, 1.25)
    assert found.dtype == torch.float32
    assert found.cpu().equal(expected)


def test_dropout_at_the_ends(device):
    x = torch.ones(9, device=device)
    assert torch.nn.functional.dropout(x, 0.0).tolist() == [1] * 9
    assert torch.nn.functional.dropout(x, 1.0).tolist() == [0] * 9
    assert torch.nn.functional.dropout(x[:0], 0.5).numel() == 0

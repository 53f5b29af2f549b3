"""Random numbers: reproducible, apart from the CPU's generator, of the right distribution."""

import math
import re

import pytest
import torch

pytestmark = [pytest.mark.both_modes, pytest.mark.any_driver]

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
    for train in (True, False, None):
        for nothing in (x[:0], x[:0].char()):
            output, mask = torch.native_dropout(nothing, math.nan, train)
            assert output.dtype == mask.dtype == nothing.dtype
    assert torch.native_dropout(x, 7.0, False)[1].dtype == torch.bool


@pytest.mark.parametrize("p", [math.nan, -1.5, 2, 1e308])
def test_dropout_by_no_chance_is_refused(device, p):
    for dtype in (torch.float32, torch.complex64, torch.int32):
        for train in (True, None):
            words = f"bernoulli_ expects p to be in [0, 1], but got p={1 - p:g}"
            with pytest.raises(RuntimeError, match=re.escape(words)):
                torch.native_dropout(torch.ones(9, dtype=dtype, device=device), p, train)


SIZES = [((2, 3, 1), (4,)), ((), (1, 1, 1)), ((0,), (5, 1)), ((3, 1), (1,)), ((2, 2), ())]


@pytest.mark.filterwarnings("ignore:An output with one or more elements")
@pytest.mark.parametrize(("counts", "chances"), SIZES, ids=str)
def test_counts_and_chances_broadcast(device, counts, chances):
    for chance in (0.0, 1.0):
        draws = [torch.binomial(torch.full(counts, 9.0, device=d), torch.full(chances, chance, device=d))
                 for d in ("cpu", device)]  # fmt: skip
        assert torch.equal(draws[1].cpu(), draws[0])
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(3\) must match"):
        torch.binomial(torch.ones(2, 0, 3, device=device), torch.ones(0, device=device))


def philox(seed, block):
    """Philox 4x32-10 as its authors write it: 128 bits for a block number."""
    c, k = [block % 2**32, block >> 32, 0, 0], [seed % 2**32, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b % 2**32, a >> 32 ^ c[3] ^ k[1], a % 2**32]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c


def test_uniform_numbers_are_those_of_philox(device, second):
    """The same bits for every driver, device and mode."""
    assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    for seed, offset, n in [(0, 0, 4), (2**63 + 5, 0, 30), (7, 2**32 - 2, 17)]:
        words = [word for i in range((n + 3) // 4) for word in philox(seed, offset + i)][:n]
        expected = torch.tensor([(word >> 8) * 2.0**-24 for word in words])
        for where in (device, second):
            g = torch.Generator(where).manual_seed(seed)
            g.set_offset(offset)
            assert torch.rand(n, device=where, generator=g).cpu().equal(expected)
            assert g.get_offset() == offset + n // 2 + 1, "room for 64 bits a number"


def test_known_numbers(device):
    """What the seed 0 gives; other numbers here would break what users recorded."""
    torch.manual_seed(0)
    torch.rand(4, device=device)
    normal = [-1.5152101516723633, 0.8947181701660156, -1.2206496000289917, 0.6048836708068848]
    # Uniform numbers are the same bits everywhere; log and cos may round apart on another machine.
    assert torch.randn(4, device=device).tolist() == pytest.approx(normal, abs=1e-6)
    assert torch.randint(1000, (6,), device=device).tolist() == [560, 723, 412, 352, 705, 35]
    assert torch.randperm(10, device=device).tolist() == [6, 9, 3, 2, 4, 1, 5, 0, 7, 8]


@pytest.fixture
def moved(module):
    """Tells of each device whether its default generator has been drawn from."""
    torch.manual_seed(1)
    return lambda: [g.get_offset() > 0 for g in module.default_generators]


@pytest.mark.parametrize(
    ("devices", "left"),
    [(None, [0, 0]), ([0], [0, 1]), ([1], [1, 0]), ((), [1, 1]), ("devices", [0, 0])],
)
@pytest.mark.filterwarnings("ignore:.*available devices, and you have used fork_rng")
def test_fork_rng(device, second, moved, devices, left):
    if devices == "devices":
        devices = (torch.device(where) for where in (device, second))

    def draw():
        for where in (device, second, "cpu"):
            torch.rand(4, device=where)
        assert moved() == [True, True]
        raise ZeroDivisionError

    host = torch.get_rng_state()
    fork = torch.random.fork_rng(devices=devices, device_type=device)
    with pytest.raises(ZeroDivisionError), fork:
        draw()
    assert moved() == left
    assert torch.get_rng_state().equal(host)


def test_fork_rng_knows_the_device_and_can_be_off(device, moved):
    with torch.random.fork_rng(devices=[0]):
        torch.rand(4, device=device)
        torch.manual_seed(5)
    assert moved() == [False, False]
    with torch.random.fork_rng(enabled=False, device_type=device):
        torch.rand(4, device=device)
    assert moved() == [True, False]
    with pytest.raises(RuntimeError, match=f"no device {device}:7"):
        torch.random.fork_rng(devices=[7], device_type=device).__enter__()


def test_seeds(device, module):
    def seeds():
        return [g.initial_seed() for g in module.default_generators]

    module.manual_seed_all(3)
    with module.device(1):
        module.manual_seed(8)
        assert module.initial_seed() == 8
    assert seeds() == [3, 8]
    module.seed_all()
    assert len(set(seeds())) == 1
    module.seed()
    assert len(set(seeds())) == 2
    assert torch.seed() == torch.initial_seed() == seeds()[0] == seeds()[1]
    for seed in (-1, -(2**63), 2**64 - 1, 2**63, 0):
        torch.manual_seed(seed)
        assert seeds() == [seed % 2**64] * 2
    for seed in (2**64, -(2**63) - 1):
        for function in (module.manual_seed, module.manual_seed_all):
            with pytest.raises(ValueError, match="a seed must be between"):
                function(seed)
    assert seeds() == [0, 0]


def test_states_of_all_devices(device, second, module):
    torch.manual_seed(4)
    states = module.get_rng_state_all()
    first = [torch.rand(3, device=where).tolist() for where in (device, second)]
    module.set_rng_state_all(states)
    assert [torch.rand(3, device=where).tolist() for where in (device, second)] == first
    for where in (1, second, torch.device(second)):
        module.set_rng_state(states[0], where)
        assert module.get_rng_state(where).equal(states[0])
    with pytest.raises(RuntimeError, match="16 bytes"):
        module.set_rng_state(torch.zeros(3, dtype=torch.uint8))
    with pytest.raises(ValueError, match=f"Expected a {device} device, but got: cpu"):
        module.get_rng_state("cpu")


def test_seeding_without_a_device_does_nothing(python):
    code = """
        module = getattr(torch, D)
        torch.manual_seed(3)
        for function in (module.manual_seed, module.manual_seed_all):
            function(3)
        module.seed()
        module.seed_all()
        with torch.random.fork_rng():
            torch.rand(1)
        print(json.dumps([module.device_count(), len(module.get_rng_state_all())]))
    """
    assert python(code, GRAFT_DEVICES=None, GRAFT_HOST_DEVICES="0").value() == [0, 0]


@pytest.mark.parametrize("fill", ["normal_", "uniform_", "exponential_", "cauchy_", "log_normal_", "random_",
                                  "geometric_", "bernoulli_"])  # fmt: skip
def test_elements_that_share_memory_are_not_filled(device, fill):
    arguments = (0.5,) if fill in ("geometric_", "bernoulli_") else ()
    x = torch.zeros(3, 1, device=device).expand(3, 40)
    wanted = (
        "unsupported operation: more than one element of the written-to tensor refers to a single"
    )
    for where in (x, torch.zeros(3, 1).expand(3, 40)):
        with pytest.raises(RuntimeError, match=wanted):
            getattr(where, fill)(*arguments)
    assert not x.any()
    with pytest.raises(RuntimeError, match=wanted):
        torch.randn(3, 40, out=x)


def test_chances_that_are_none_are_refused(device, module):
    for wrong in (1.5, -0.1, float("nan"), float("inf")):
        chances = torch.tensor([0.5, wrong, 1.0], device=device)
        for call in (
            lambda p=chances: torch.bernoulli(p),
            lambda p=chances: torch.empty(2, 3, device=device).bernoulli_(p),
            lambda p=chances: torch.bernoulli(p.half()),
        ):
            with pytest.raises(RuntimeError, match="Expected p_in >= 0 && p_in <= 1 to be true"):
                call().cpu()
            module.synchronize()
    bounds = torch.tensor([0.0, 1.0], device=device).expand(50, 2)
    assert torch.equal(torch.bernoulli(bounds), bounds)

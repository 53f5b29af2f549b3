"""torch.Generator of the device: states, offsets, sharing, threads, generators of the wrong device."""

import copy
import pickle
import threading

import pytest
import torch

pytestmark = [pytest.mark.both_modes, pytest.mark.any_driver, pytest.mark.two_drivers]


def make(device, seed=4):
    return torch.Generator(device=device).manual_seed(seed)


def test_own_stream_of_numbers(device):
    g = make(device)
    assert g.device.type == torch.device(device).type
    assert g.initial_seed() == 4
    torch.manual_seed(0)
    first = torch.rand(5, device=device)
    torch.manual_seed(0)
    drawn = torch.rand(5, device=device, generator=g)
    assert torch.rand(5, device=device).equal(first), "the default generator moved"
    assert torch.rand(5, device=device, generator=make(device)).equal(drawn)
    assert not torch.rand(5, device=device, generator=g).equal(drawn)


def test_state_moves_between_generators(device):
    g = make(device)
    torch.randn(33, device=device, generator=g)
    state = g.get_state()
    expected = torch.randn(7, device=device, generator=g)
    other = make(device, 99)
    other.set_state(state)
    assert torch.randn(7, device=device, generator=other).equal(expected)
    twin = g.clone_state() if hasattr(g, "clone_state") else None
    if twin is not None:
        a, b = (torch.rand(3, device=device, generator=x) for x in (g, twin))
        assert a.equal(b)


def test_seed_differs(device):
    g = torch.Generator(device=device)
    assert g.seed() != g.seed()
    assert torch.rand(9, device=device, generator=g).cpu().unique().numel() > 1


def test_bad_use(device):
    g = make(device)
    with pytest.raises((RuntimeError, TypeError)):
        g.set_state(torch.zeros(3, dtype=torch.uint8))
    assert torch.rand(2, device=device, generator=g).numel() == 2
    if device != "cpu":
        with pytest.raises(RuntimeError, match="generator"):
            torch.rand(2, device=device, generator=torch.Generator())
        with pytest.raises((RuntimeError, IndexError)):
            torch.Generator(device=f"{device}:99")


def test_default_generators(device, module):
    if device == "cpu":
        return
    assert len(module.default_generators) == module.device_count()
    assert module._get_generator(torch.device(device, 1)).device.index == 1
    torch.manual_seed(21)
    assert [g.initial_seed() for g in module.default_generators] == [21, 21]


def drawn(generator, n=5):
    return torch.rand(n, device=generator.device, generator=generator).tolist()


def test_offset_counts_what_was_drawn(device):
    """Seed and offset are the whole state, 8 bytes each, as torch.cuda's."""
    g = make(device, 7)
    assert g.get_offset() == 0
    drawn(g, 9)
    offset = g.get_offset()
    assert offset > 0
    assert g.get_state().view(torch.int64).tolist() == [7, offset]
    later = drawn(g)
    g.manual_seed(7)
    assert g.get_offset() == 0
    g.set_offset(offset)
    assert drawn(g) == later
    with pytest.raises(RuntimeError, match="expected a long"):
        g.set_offset("far")


def test_a_new_generator_has_the_default_seed(device, second, module):
    g = torch.Generator(device)
    assert g.initial_seed() == torch.Generator().initial_seed()
    assert torch.Generator(second).device == torch.device(second)
    with module.device(1):
        assert torch.Generator(device).device.index == 1


@pytest.mark.parametrize(
    ("state", "kind", "text"),
    [(torch.zeros(3, dtype=torch.uint8), RuntimeError, "16 bytes"),
     (torch.Generator().get_state(), RuntimeError, "16 bytes"),
     (torch.zeros(16), TypeError, "ByteTensor"),
     ([0] * 16, TypeError, "ByteTensor"),
     (torch.zeros(32, dtype=torch.uint8)[::2], RuntimeError, "contiguous")],
    ids=["short", "of the CPU", "float", "list", "strided"],
)  # fmt: skip
def test_a_bad_state_is_refused_and_changes_nothing(device, state, kind, text):
    g = make(device)
    before = g.get_state()
    with pytest.raises(kind, match=text):
        g.set_state(state)
    assert g.get_state().equal(before)


def test_a_state_lies_on_the_cpu(device):
    g = make(device)
    assert g.get_state().device.type == "cpu"
    with pytest.raises(TypeError, match="ByteTensor"):
        g.set_state(g.get_state().to(device))


def test_a_clone_goes_its_own_way(device):
    g = make(device)
    drawn(g)
    twin = g.clone_state()
    assert drawn(twin) == drawn(g)
    drawn(twin)
    assert twin.get_offset() > g.get_offset()


def test_graphsafe_state_is_shared(device):
    g, other = make(device, 3), make(device, 9)
    other.graphsafe_set_state(g.graphsafe_get_state())
    assert other.initial_seed() == 3
    first = drawn(other)
    assert g.get_offset() == other.get_offset() > 0
    assert drawn(g) not in (first, drawn(other))
    with pytest.raises(RuntimeError, match="same device type"):
        g.graphsafe_set_state(torch.Generator())


def test_a_graph_draws_from_the_state_that_its_generator_has(device, module):
    g = make(device, 3)
    old, new = g.graphsafe_get_state(), make(device, 44).graphsafe_get_state()
    graph = torch.accelerator.Graph()
    with module.graph(graph):
        x = torch.rand(5, device=device, generator=g)
    found = []
    for state in (None, new, old):
        if state is not None:
            g.graphsafe_set_state(state)
        graph.replay()
        found.append(x.tolist())
    eager = make(device, 3)
    assert found == [drawn(eager), drawn(make(device, 44)), drawn(eager)]


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_copies_and_pickles(second, twin):
    g = make(second)
    drawn(g)
    back = twin(g)
    assert back.device == torch.device(second)
    assert drawn(back) == drawn(g)


def test_threads_draw_each_number_once(device):
    g, found = make(device, 5), []

    def draw():
        for _ in range(20):
            found.append(drawn(g, 4))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = make(device, 5)
    assert sorted(found) == sorted(drawn(alone, 4) for _ in range(80))
    assert alone.get_offset() == g.get_offset()


DRAWS = {
    "rand": lambda w, g: torch.rand(2, device=w, generator=g),
    "randn": lambda w, g: torch.randn(2, device=w, generator=g),
    "randint": lambda w, g: torch.randint(4, (2,), device=w, generator=g),
    "normal": lambda w, g: torch.normal(torch.ones(2, device=w), 1.0, generator=g),
    "bernoulli": lambda w, g: torch.ones(2, device=w).bernoulli(generator=g),
    "multinomial": lambda w, g: torch.ones(4, device=w).multinomial(2, generator=g),
    "exponential": lambda w, g: torch.ones(2, device=w).exponential_(generator=g),
    "geometric": lambda w, g: torch.ones(2, device=w).geometric_(0.5, generator=g),
    "random": lambda w, g: torch.ones(2, device=w).random_(generator=g),
    "init": lambda w, g: torch.nn.init.kaiming_uniform_(torch.ones(2, 2, device=w), generator=g),
    "rrelu": lambda w, g: torch.ops.aten.rrelu_with_noise(
        torch.ones(2, device=w), torch.ones(2, device=w), 0.1, 0.2, True, g),
    "randperm": lambda w, g: torch.randperm(4, device=w, generator=g),
    "poisson": lambda w, g: torch.poisson(torch.ones(2, device=w), generator=g),
    "binomial": lambda w, g: torch.binomial(
        torch.ones(2, device=w), torch.ones(2, device=w), generator=g),
    "gamma": lambda w, g: torch._standard_gamma(torch.ones(2, device=w), generator=g),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWS)
def test_the_cpu_has_no_generator_for_the_device(device, name):
    wanted = f"Expected a '{device}' device type for generator but found 'cpu'"
    with pytest.raises(RuntimeError, match=wanted):
        DRAWS[name](device, torch.Generator())


@pytest.mark.parametrize("name", DRAWS)
def test_the_device_has_no_generator_for_the_cpu(device, name):
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found"):
        DRAWS[name]("cpu", torch.Generator(device))


def test_what_draws_nothing_takes_any_generator(device):
    """As torch.cuda, and a generator of another index is as good as one of its own."""
    assert torch.randperm(0, device=device, generator=torch.Generator()).numel() == 0
    g = torch.Generator(f"{device}:1").manual_seed(2)
    expected = torch.Generator(f"{device}:0").manual_seed(2)
    assert torch.rand(3, device=f"{device}:0", generator=g).tolist() == drawn(expected, 3)


def test_the_module_reads_and_sets_offsets(device, second, module):
    module.manual_seed_all(5)
    assert [module._get_rng_state_offset(i) for i in (device, second)] == [0, 0]
    torch.rand(100, device=device)
    offset = module._get_rng_state_offset()
    assert offset > 0
    assert module._get_rng_state_offset(second) == 0
    expected = torch.rand(10, device=device)
    module._set_rng_state_offset(offset)
    assert torch.rand(10, device=device).equal(expected)

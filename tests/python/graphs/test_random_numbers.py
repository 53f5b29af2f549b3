"""Random numbers of replays: those that eager draws from the same seed."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from capturing import captured

pytestmark = pytest.mark.both_modes

DEVICE = "graft"


def test_random_numbers_are_those_of_eager_replay_by_replay():
    x = torch.ones(1000, device=DEVICE)
    torch.manual_seed(11)
    eager = [(torch.rand(100, device=DEVICE), nn.functional.dropout(x, 0.5)) for _ in range(3)]
    graph, (numbers, dropped) = captured(
        DEVICE, lambda: (torch.rand(100, device=DEVICE), nn.functional.dropout(x, 0.5))
    )
    torch.manual_seed(11)
    for expected_numbers, expected_dropped in eager:
        graph.replay()
        assert torch.equal(numbers, expected_numbers)
        assert torch.equal(dropped, expected_dropped)
    state = torch.graft.get_rng_state()
    graph.replay()
    again = numbers.clone()
    torch.graft.set_rng_state(state)
    graph.replay()
    assert torch.equal(numbers, again)


def test_draws_stand_between_graphs_of_the_driver(module):
    x = torch.linspace(0, 1, 1000, device=DEVICE)

    def work():
        return (nn.functional.dropout((x * 2).sin(), 0.5).cumsum(0) + x).sqrt()

    torch.manual_seed(5)
    eager = [work() for _ in range(3)]
    graph, y = captured(DEVICE, work)
    torch.manual_seed(5)
    for expected in eager:
        before = module.statistics()
        graph.replay()
        made = {key: number - before[key] for key, number in module.statistics().items()}
        assert (made["graphs"], made["launches"]) == (2, 1)
        assert torch.equal(y, expected)


def test_a_generator_of_ones_own_is_used_and_advances():
    generator = torch.Generator(DEVICE).manual_seed(5)
    expected = [torch.rand(7, device=DEVICE, generator=generator) for _ in range(2)]
    generator.manual_seed(5)
    graph, numbers = captured(DEVICE, lambda: torch.rand(7, device=DEVICE, generator=generator))
    default = torch.graft.get_rng_state()
    for one in expected:
        graph.replay()
        assert torch.equal(numbers, one)
    assert torch.equal(torch.graft.get_rng_state(), default)


@pytest.mark.parametrize("backward_captured", [False, True])
def test_a_backward_pass_of_its_own_repeats_the_dropout_of_the_last_replay(backward_captured):
    q, k = (torch.randn(1, 2, 16, 8, device=DEVICE) for _ in range(2))
    v = torch.randn(1, 2, 16, 8, device=DEVICE, requires_grad=True)
    attend = lambda: nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.5)  # noqa: E731
    forward, out = captured(DEVICE, attend)
    gradient = lambda: torch.autograd.grad(out.sum(), v, retain_graph=True)[0]  # noqa: E731
    if backward_captured:
        backward, grad = captured(DEVICE, gradient)
    else:
        with pytest.raises(
            RuntimeError, match="was not replayed, and this backward pass needs them"
        ):
            gradient()
    sums = []
    for _ in range(3):
        forward.replay()
        if backward_captured:
            backward.replay()
        else:
            grad = gradient()
        # The output is linear in v: with one and the same mask both sides are equal.
        torch.testing.assert_close((grad * v).sum(), out.sum())
        sums.append(out.sum().item())
    assert len(set(sums)) == 3


def numbers(device):
    torch.manual_seed(1)
    return torch.rand(500, device=device)


DRAWS = {
    "bernoulli": lambda x: torch.bernoulli(x), "normal": lambda x: torch.normal(x + 1, 1.0),
    "poisson": lambda x: torch.poisson(x), "rand_like": lambda x: torch.rand_like(x),
    "randint": lambda x: torch.randint(0, 3, (500,), device=x.device),
    "randperm": lambda x: torch.randperm(500, device=x.device),
    "bernoulli_": lambda x: torch.zeros_like(x).bernoulli_(x),
    "cauchy_": lambda x: torch.zeros_like(x).cauchy_(),
    "exponential_": lambda x: torch.zeros_like(x).exponential_(),
    "geometric_": lambda x: torch.zeros_like(x).geometric_(0.3),
    "log_normal_": lambda x: torch.zeros_like(x).log_normal_(),
    "random_": lambda x: torch.zeros_like(x).random_(),
    "uniform_": lambda x: torch.zeros_like(x).uniform_(),
    "dropout": lambda x: nn.functional.dropout(x, 0.3),
    "rrelu": lambda x: nn.functional.rrelu(x - 0.5, training=True),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWS)
def test_a_replay_draws_as_eager_does_from_the_seed_of_the_moment(device, name):
    x, draw = numbers(device), DRAWS[name]
    graph, drawn = captured(device, lambda: (draw(x), draw(x)))
    for seed in (5, 314):
        torch.manual_seed(seed)
        expected = (draw(x), draw(x))
        torch.manual_seed(seed)
        graph.replay()
        assert_close(drawn, expected, rtol=0, atol=0)
        assert not torch.equal(*drawn)


def test_replays_and_eager_work_take_turns_with_one_generator(device):
    x = numbers(device)

    def drop(y, times):
        for _ in range(times):
            y = nn.functional.dropout(y, 0.1)
        return y

    torch.manual_seed(5)
    expected = drop(x, 6)
    given = x.clone()
    graph, out = captured(device, lambda: drop(given, 2))
    torch.manual_seed(5)
    graph.replay()
    given.copy_(drop(out, 2))
    graph.replay()
    assert_close(out, expected, rtol=0, atol=0)

"""Random numbers of captured graphs: states and seeds inside a capture, recomputation."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

pytestmark = [pytest.mark.both_modes, pytest.mark.any_driver]


def captured(device, work):
    """A graph of work() on a stream of its own, and what work returned."""
    graph, stream = torch.accelerator.Graph(), torch.Stream(device)
    stream.wait_stream(torch.accelerator.current_stream())
    with stream, graph:
        result = work()
    torch.accelerator.current_stream().wait_stream(stream)
    return graph, result


@pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", ""])
def test_a_captured_checkpoint_repeats_the_numbers_of_its_forward(device, reentrant):
    def drop(x):
        return nn.functional.dropout(x * torch.rand_like(x), 0.3)

    def step():
        x = torch.ones(300, device=device, requires_grad=True)
        out = checkpoint(drop, x, use_reentrant=reentrant)
        out.sum().backward()
        return out.detach(), x.grad, torch.rand(9, device=device)

    torch.manual_seed(7)
    eager = [step() for _ in range(2)]
    graph, replayed = captured(device, step)
    torch.manual_seed(7)
    for expected in eager:
        graph.replay()
        assert_close(replayed, expected, rtol=0, atol=0)
        # The product is linear: at ones its gradient is its value, with the same numbers.
        assert_close(replayed[1], replayed[0])


def test_a_backward_graph_repeats_the_checkpoint_of_its_forward_graph(device, module):
    class Dropped(nn.Module):
        def forward(self, x):
            return checkpoint(nn.functional.dropout, x, 0.5, use_reentrant=False)

    sample = torch.ones(300, device=device, requires_grad=True)
    graphed = module.make_graphed_callables(Dropped(), (sample,))
    found = []
    for _ in range(3):
        x = torch.ones(300, device=device, requires_grad=True)
        out = graphed(x)
        out.sum().backward()
        assert torch.equal(x.grad, out)
        found.append(x.grad)
    assert not torch.equal(found[0], found[1])


def test_a_state_that_is_set_in_a_capture_is_set_in_each_replay(device, module):
    def work():
        begin = module.get_rng_state()
        numbers = [torch.rand(9, device=device)]
        end = module.get_rng_state()
        module.set_rng_state(begin)
        numbers.append(torch.rand(9, device=device))
        module.manual_seed(3)  # the one it has
        numbers.append(torch.rand(9, device=device))
        module.set_rng_state(end)
        return *numbers, torch.rand(9, device=device)

    torch.manual_seed(3)
    eager = [work() for _ in range(2)]
    assert not torch.equal(eager[0][0], eager[1][0])
    torch.manual_seed(3)
    graph, replayed = captured(device, work)
    for expected in eager:
        graph.replay()
        assert_close(replayed, expected, rtol=0, atol=0)


def test_another_seed_in_a_capture_is_refused_and_changes_nothing(device, module):
    torch.manual_seed(3)
    generator = torch.Generator(device).manual_seed(5)
    other = torch.Generator(device).manual_seed(6).get_state()
    expected = [torch.rand(9, device=device) for _ in range(2)]
    own = torch.rand(9, device=device, generator=generator)

    def work():
        for call in (
            lambda: torch.manual_seed(1), lambda: module.manual_seed(1), module.seed,
            lambda: generator.manual_seed(6), generator.seed, lambda: generator.set_state(other),
        ):  # fmt: skip
            with pytest.raises(RuntimeError, match="cannot change its seed from"):
                call()
        return torch.rand(9, device=device), torch.rand(9, device=device, generator=generator)

    graph, numbers = captured(device, work)
    assert generator.initial_seed() == 5
    assert [one.initial_seed() for one in module.default_generators] == [3, 3]
    torch.manual_seed(3)
    generator.manual_seed(5)
    graph.replay()
    assert_close(numbers, (expected[0], own), rtol=0, atol=0)
    graph.replay()
    assert torch.equal(numbers[0], expected[1])

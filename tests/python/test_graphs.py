# tests/python/test_graphs.py: captured graphs: replay, memory, random numbers, refusals.
import pytest
import torch
from torch import nn

pytestmark = pytest.mark.both_modes

DEVICE = "graft"


def captured(work, pool=None):
    """A graph of work() on a stream of its own, and what work returned."""
    graph = torch.accelerator.Graph(pool=pool)
    stream = torch.Stream(device=DEVICE)
    stream.wait_stream(torch.accelerator.current_stream())
    with stream, graph:
        result = work()
    return graph, result


def test_replay_runs_what_was_captured_on_the_inputs_of_the_moment():
    x = torch.ones(1000, device=DEVICE)
    graph, y = captured(lambda: (x * 2 + 1).sum())
    for value in (1.0, 3.0, -2.0):
        x.fill_(value)
        graph.replay()
        assert y.item() == 1000 * (2 * value + 1)


def test_nothing_runs_while_it_is_captured():
    x = torch.zeros(10, device=DEVICE)
    before = torch.graft.statistics()["launches"]
    graph, _ = captured(lambda: x.add_(1))
    assert torch.graft.statistics()["launches"] == before
    assert x.sum().item() == 0
    graph.replay()
    graph.replay()
    assert x.sum().item() == 20


def test_a_training_step_replays_as_eager():
    def model():
        torch.manual_seed(3)
        return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to(DEVICE)

    batches = [torch.randn(5, 8, generator=torch.Generator().manual_seed(i)) for i in range(6)]
    targets = [torch.arange(5) % 4 for _ in batches]
    eager, graphed = model(), model()
    losses = []
    optimizer = torch.optim.SGD(eager.parameters(), lr=0.1, momentum=0.9)
    for x, y in zip(batches, targets, strict=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(eager(x.to(DEVICE)), y.to(DEVICE))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    optimizer = torch.optim.SGD(graphed.parameters(), lr=0.1, momentum=0.9)
    x, y = batches[0].to(DEVICE), targets[0].to(DEVICE)
    for parameter in graphed.parameters():
        parameter.grad = torch.zeros_like(parameter)
        optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss = nn.functional.cross_entropy(graphed(x), y)
        loss.backward()
        optimizer.step()
        return loss

    graph, loss = captured(step)
    replayed = []
    for batch, target in zip(batches, targets, strict=True):
        x.copy_(batch)
        y.copy_(target)
        graph.replay()
        replayed.append(loss.item())
    torch.testing.assert_close(replayed, losses)
    for a, b in zip(eager.parameters(), graphed.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_random_numbers_are_those_of_eager_replay_by_replay():
    x = torch.ones(1000, device=DEVICE)
    torch.manual_seed(11)
    eager = [(torch.rand(100, device=DEVICE), nn.functional.dropout(x, 0.5)) for _ in range(3)]
    graph, (numbers, dropped) = captured(
        lambda: (torch.rand(100, device=DEVICE), nn.functional.dropout(x, 0.5))
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


def test_a_generator_of_ones_own_is_used_and_advances():
    generator = torch.Generator(DEVICE).manual_seed(5)
    expected = [torch.rand(7, device=DEVICE, generator=generator) for _ in range(2)]
    generator.manual_seed(5)
    graph, numbers = captured(lambda: torch.rand(7, device=DEVICE, generator=generator))
    default = torch.graft.get_rng_state()
    for one in expected:
        graph.replay()
        assert torch.equal(numbers, one)
    assert torch.equal(torch.graft.get_rng_state(), default)


def test_memory_of_a_graph_goes_to_nobody_else_until_it_is_reset():
    x = torch.ones(1 << 20, device=DEVICE)

    def work():
        middle = x * 2
        result = middle + 1
        del middle
        return result

    graph, y = captured(work)
    others = [torch.full((1 << 20,), 7.0, device=DEVICE) for _ in range(8)]
    graph.replay()
    assert all(bool((other == 7).all()) for other in others)
    assert bool((y == 3).all())
    del others, y
    torch.graft.empty_cache()
    held = torch.graft.memory_reserved()
    graph.reset()
    torch.graft.empty_cache()
    assert torch.graft.memory_reserved() < held


def test_graphs_share_a_pool():
    x = torch.ones(1 << 20, device=DEVICE)
    first, a = captured(lambda: (x + 1).sum())
    held = torch.graft.memory_reserved()
    second, b = captured(lambda: (x + 2).sum(), pool=first.pool())
    assert second.pool() == first.pool()
    assert torch.graft.memory_reserved() <= held
    first.replay()
    second.replay()
    assert (a.item(), b.item()) == (2 << 20, 3 << 20)


def test_other_streams_join_through_events():
    x = torch.ones(100, device=DEVICE)
    other = torch.Stream(device=DEVICE)

    def work():
        y = x + 1
        other.wait_stream(torch.accelerator.current_stream())
        with other:
            z = y * 3
        torch.accelerator.current_stream().wait_stream(other)
        return y + z

    graph, result = captured(work)
    x.fill_(4)
    graph.replay()
    assert result.sum().item() == 100 * 20
    with other:
        assert (x + 1).sum().item() == 500


@pytest.mark.parametrize(
    "illegal",
    [
        lambda x: x.sum().item(),
        lambda x: x.cpu(),
        lambda x: torch.accelerator.synchronize(),
        lambda x: x.copy_(torch.ones(10)),
        lambda x: torch.accelerator.current_stream().query(),
        lambda x: torch.nonzero(x),
    ],
    ids=["item", "to the host", "synchronize", "pageable copy", "query", "nonzero"],
)
def test_what_waits_is_refused_and_the_stream_stays_usable(illegal):
    x = torch.ones(10, device=DEVICE)
    graph, stream = torch.accelerator.Graph(), torch.Stream(device=DEVICE)
    with pytest.raises(RuntimeError, match="captures a graph"), stream, graph:
        illegal(x.add_(1))
    graph.reset()
    with stream:
        assert (x * 2).sum().item() == 20
    graph, y = captured(lambda: x + 1)
    graph.replay()
    assert y.sum().item() == 20


def test_pinned_copies_are_captured():
    host = torch.zeros(10, pin_memory=True)
    x = torch.empty(10, device=DEVICE)
    back = torch.zeros(10, pin_memory=True)

    def work():
        x.copy_(host, non_blocking=True)
        x.mul_(2)
        back.copy_(x, non_blocking=True)

    graph, _ = captured(work)
    host.fill_(21)
    graph.replay()
    torch.accelerator.synchronize()
    assert back.tolist() == [42.0] * 10


def test_misuse_is_told():
    graph = torch.accelerator.Graph()
    with pytest.raises(RuntimeError, match="this graph is empty: capture something first"):
        graph.replay()
    with pytest.raises(RuntimeError, match="no capture"):
        graph.capture_end()
    with torch.Stream(device=DEVICE):
        graph.capture_begin()
        with pytest.raises(RuntimeError, match="the capture of this graph still runs"):
            graph.replay()
        second = torch.accelerator.Graph()
        with pytest.raises(RuntimeError, match="another capture"):
            second.capture_begin()
        graph.capture_end()
    with pytest.raises(RuntimeError, match="already holds a capture"):
        graph.capture_begin()
    graph.reset()
    bad = torch.accelerator.Graph(pool=(3, 4))
    with pytest.raises(RuntimeError, match="graph_pool_handle"):
        bad.capture_begin()


def test_a_bad_index_is_reported_after_the_replay_that_met_it():
    table = torch.randn(10, 4, device=DEVICE)
    index = torch.zeros(3, dtype=torch.long, device=DEVICE)
    graph, rows = captured(lambda: table.index_select(0, index))
    graph.replay()
    torch.accelerator.synchronize()
    index.fill_(99)
    graph.replay()
    with pytest.raises(RuntimeError, match="out of range"):
        torch.accelerator.synchronize()
    index.fill_(2)
    graph.replay()
    assert torch.equal(rows.cpu(), table.cpu()[[2, 2, 2]])


def test_the_dump_names_the_operators(tmp_path):
    x = torch.ones(10, device=DEVICE)
    graph, _ = captured(lambda: (x + 1).exp())
    graph.debug_dump(str(tmp_path / "graph.txt"))
    text = (tmp_path / "graph.txt").read_text()
    assert "aten::add" in text
    assert "aten::exp" in text
    with pytest.raises(RuntimeError, match="cannot write the graph's commands to"):
        graph.debug_dump(str(tmp_path / "no" / "folder"))


def test_capturing_is_told_of_the_current_stream():
    assert not torch.graft.is_current_stream_capturing()
    seen = []
    captured(lambda: seen.append(torch.graft.is_current_stream_capturing()))
    assert seen == [True]


def test_a_stream_tells_whether_it_captures():
    side, other = torch.Stream(device=DEVICE), torch.Stream(device=DEVICE)
    with side, torch.accelerator.Graph():
        seen = [side.is_capturing(), other.is_capturing()]
        seen.append(torch.accelerator.current_stream().is_capturing())
        other.wait_stream(side)
        seen.append(other.is_capturing())
    assert seen == [True, False, True, True]
    assert not side.is_capturing()
    assert not other.is_capturing()


def test_the_context_manager_of_cuda():
    x = torch.ones(10, device=DEVICE)
    graph = torch.graft.Graph()
    with torch.graft.graph(graph, pool=torch.graft.graph_pool_handle()):
        y = x * 5
    graph.replay()
    assert y.sum().item() == 50


@pytest.mark.parametrize("accumulate", [False, True])
def test_graphed_callables_train_as_the_module(accumulate):
    def model():
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)).to(DEVICE)

    plain, graphed = model(), model()
    sample = torch.randn(4, 6, device=DEVICE, requires_grad=True)
    graphed = torch.graft.make_graphed_callables(graphed, (sample,))
    for seed in range(3):
        x = torch.randn(4, 6, generator=torch.Generator().manual_seed(seed)).to(DEVICE)
        gradients = []
        for module in (plain, graphed):
            leaf = x.clone().requires_grad_()
            if not accumulate:
                module.zero_grad()
            module(leaf).square().sum().backward()
            gradients.append([leaf.grad, *(p.grad for p in module.parameters())])
        for expected, got in zip(*gradients, strict=True):
            torch.testing.assert_close(got, expected)


def test_graphed_callables_in_a_row_share_memory_and_evaluation_runs_the_module():
    first = nn.Linear(4, 4).to(DEVICE)
    second = nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5)).to(DEVICE)
    reference = nn.Sequential(first, second[0])
    x = torch.randn(3, 4, device=DEVICE)
    hidden = torch.randn(3, 4, device=DEVICE, requires_grad=True)
    with torch.no_grad():
        expected = reference(x)
    first, second = torch.graft.make_graphed_callables((first, second), ((x,), (hidden,)))
    second.eval()
    torch.testing.assert_close(second(first(x)), expected)


def test_a_live_graph_of_autograd_from_another_stream_is_refused_and_may_be_dropped():
    module = nn.Linear(4, 2).to(DEVICE)
    x = torch.randn(3, 4, device=DEVICE)
    loss = module(x).sum()
    with pytest.raises(RuntimeError, match="stale reference to the default stream"):
        torch.graft.make_graphed_callables(module, (x,))
    del loss
    graphed = torch.graft.make_graphed_callables(module, (x,))
    torch.testing.assert_close(graphed(x), module(x))


def test_graphed_callables_refuse_what_they_cannot_replay():
    with pytest.raises(TypeError, match="tensors"):
        torch.graft.make_graphed_callables(lambda x: x, (3,))
    module = nn.Linear(2, 2).to(DEVICE)
    module.register_forward_hook(lambda *args: None)
    with pytest.raises(RuntimeError, match="hooks"):
        torch.graft.make_graphed_callables(module, (torch.ones(1, 2, device=DEVICE),))


@pytest.mark.parametrize("backward_captured", [False, True])
def test_a_backward_pass_of_its_own_repeats_the_dropout_of_the_last_replay(backward_captured):
    q, k = (torch.randn(1, 2, 16, 8, device=DEVICE) for _ in range(2))
    v = torch.randn(1, 2, 16, 8, device=DEVICE, requires_grad=True)
    attend = lambda: nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.5)  # noqa: E731
    forward, out = captured(attend)
    gradient = lambda: torch.autograd.grad(out.sum(), v, retain_graph=True)[0]  # noqa: E731
    if backward_captured:
        backward, grad = captured(gradient)
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

"""Captured graphs: what PyTorch's tests of CUDA ask beyond graphs/test_graphs.py (docs/use/parity.md)."""

import copy
import gc
import threading

import pytest
import torch
from torch import nn
from torch.testing import assert_close

pytestmark = pytest.mark.both_modes


def captured(device, work, graph=None, pool=None):
    """A graph of work() on a stream of its own, and what work returned."""
    graph = torch.accelerator.Graph(pool=pool) if graph is None else graph
    stream = torch.Stream(device)
    stream.wait_stream(torch.accelerator.current_stream())
    with stream, graph:
        result = work()
    torch.accelerator.current_stream().wait_stream(stream)
    return graph, result


def test_a_graph_may_be_captured_again_after_a_reset(device):
    x = torch.ones(1000, device=device)
    graph, first = captured(device, lambda: x + 1)
    graph.replay()
    assert first.sum().item() == 2000
    graph.reset()
    graph, second = captured(device, lambda: x + 5, graph)
    graph.replay()
    assert second.sum().item() == 6000


def test_an_empty_graph_replays(device):
    graph, _ = captured(device, lambda: None)
    graph.replay()
    torch.accelerator.synchronize()


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


@pytest.mark.parametrize("shared", [False, True], ids=["own pools", "one pool"])
def test_graphs_that_read_each_other_s_results(device, module, shared):
    x = torch.ones(1000, device=device)
    pool = module.graph_pool_handle() if shared else None
    graphs = [torch.accelerator.Graph(pool=pool) for _ in range(3)]
    stream = torch.Stream(device)
    stream.wait_stream(torch.accelerator.current_stream())
    with stream:
        with graphs[0]:
            b = x.clone()
            c, d = b + 1, b + 2
        with graphs[1]:
            e = c + 3
            del c
        with graphs[2]:
            f = d + 4
    torch.accelerator.current_stream().wait_stream(stream)
    for _ in range(2):
        for graph in graphs:
            graph.replay()
        assert (e.sum().item(), f.sum().item()) == (5000, 7000)


def test_graphs_replay_on_streams_and_in_threads_at_once(device):
    x = torch.ones(10_000, device=device)
    pairs = [captured(device, lambda i=i: (x + i) * 2) for i in range(4)]
    errors = []

    def work(graph):
        try:
            with torch.Stream(device) as stream:
                for _ in range(20):
                    graph.replay()
                stream.synchronize()
        except Exception as error:  # a thread's error must reach the test
            errors.append(error)

    torch.accelerator.synchronize()
    threads = [threading.Thread(target=work, args=(graph,)) for graph, _ in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert [y.mean().item() for _, y in pairs] == [2.0 * (1 + i) for i in range(4)]


def test_a_result_outlives_its_graph(device, module):
    x = torch.ones(1000, device=device)
    graph, y = captured(device, lambda: (x + 1) * 2)
    graph.replay()
    del graph
    gc.collect()
    module.empty_cache()
    others = [torch.full((1000,), 7.0, device=device) for _ in range(10)]
    assert y.sum().item() == 4000
    assert sum(other.sum().item() for other in others) == 70_000


def test_recorded_streams_inside_a_capture(device):
    x, side = torch.zeros(3, device=device), torch.Stream(device)

    def work():
        y = x + 1
        side.wait_stream(torch.accelerator.current_stream())
        with side:
            z = y * 3
            y.record_stream(side)
        del y
        torch.accelerator.current_stream().wait_stream(side)
        return z + torch.ones_like(x)

    graph, result = captured(device, work)
    x.fill_(2)
    graph.replay()
    assert result.tolist() == [10.0] * 3


def test_a_recurrent_module_with_dropout(device):
    torch.manual_seed(0)
    model, x = nn.LSTM(8, 8, 2, dropout=0.5).to(device), torch.randn(5, 3, 8, device=device)
    graph, out = captured(device, lambda: model(x)[0])
    torch.manual_seed(3)
    expected = model(x)[0]
    torch.manual_seed(3)
    graph.replay()
    assert_close(out, expected)


def test_a_graph_of_the_second_device(device, second, module):
    with module.device(1):
        x = torch.ones(10, device=second)
        graph, y = captured(second, lambda: x * 2)
        x.fill_(4)
        graph.replay()
        assert (y.device, y.sum().item()) == (torch.device(second), 80.0)


def test_another_thread_allocates_while_one_captures(device, module):
    x, found = torch.ones(1000, device=device), []

    def allocate():
        with torch.Stream(device):
            found.append(torch.empty(1000, device=device))

    def work():
        y = x + 1
        thread = threading.Thread(target=allocate)
        thread.start()
        thread.join()
        return y * 2

    graph, y = captured(device, work)
    found[0].fill_(3)
    graph.replay()
    assert (y.sum().item(), found[0].sum().item()) == (4000, 3000)


def test_pinned_memory_of_a_captured_copy_stays_with_the_graph(device):
    x = torch.zeros(300, device=device)

    def work():
        source = torch.full((300,), 3.0).pin_memory()
        x.copy_(source, non_blocking=True)
        return source.data_ptr()

    def pinned():
        return [torch.full((300,), 9.0).pin_memory() for _ in range(8)]

    graph, address = captured(device, work)
    others = pinned()
    assert address not in [one.data_ptr() for one in others]
    graph.replay()
    assert x.tolist() == [3.0] * 300
    graph.reset()
    assert address in [one.data_ptr() for one in pinned()]


@pytest.mark.parametrize("again", [False, True], ids=["", "which captures again"])
def test_a_reset_waits_for_replays_on_another_stream(device, again):
    x = torch.randn(300, 300, device=device)
    owner, side = torch.Stream(device), torch.Stream(device)
    graph, other = torch.accelerator.Graph(), torch.accelerator.Graph()
    torch.accelerator.synchronize()
    with owner, graph:
        y = x
        for _ in range(20):
            y = y @ x / 20
    del y
    with side:
        for _ in range(3):
            graph.replay()
        if again:
            other.capture_begin()
        graph.reset()
        if again:
            other.capture_end()
    with owner:
        filled = [torch.full((300, 300), 7.0, device=device) for _ in range(10)]
    side.synchronize()
    owner.synchronize()
    assert all(bool((one == 7).all()) for one in filled)


def test_many_captures_take_no_more_memory_than_one(device, module):
    a, b = (torch.rand(64, 64, device=device) for _ in range(2))

    def capture_and_drop():
        graph, result = captured(device, lambda: a @ b)
        graph.replay()
        del graph, result
        gc.collect()
        torch.accelerator.synchronize()
        module.empty_cache()
        return module.memory_reserved()

    first = capture_and_drop()
    assert [capture_and_drop() for _ in range(10)][-1] <= first


class Chosen(nn.Module):
    """Takes a dict and leaves one of its entries alone."""

    def __init__(self):
        super().__init__()
        self.layer, self.drop = nn.Linear(8, 8), nn.Dropout(0.1)

    def forward(self, inputs):
        return {"out": self.drop(self.layer(inputs["x"]))}


@pytest.mark.parametrize("unused", [False, True], ids=["all used", "one unused"])
@pytest.mark.parametrize("amp", [False, True], ids=["float32", "amp"])
def test_graphed_modules_take_dicts_autocast_and_unused_inputs(device, module, amp, unused):
    torch.manual_seed(1)
    plain = Chosen().to(device)
    graphed = copy.deepcopy(plain)
    inputs = {"x": torch.randn(4, 8, device=device)}
    if unused:
        inputs["unused"] = torch.randn(4, 8, device=device, requires_grad=True)
    region = torch.autocast(device, dtype=torch.bfloat16, enabled=amp, cache_enabled=False)
    with region:
        graphed = module.make_graphed_callables(graphed, (inputs,), allow_unused_input=unused)
    found = []
    for model in (plain, graphed):
        torch.manual_seed(3)
        with region:
            out = model(inputs)["out"].float()
        out.square().mean().backward()
        found.append([out.detach(), *[p.grad for p in model.parameters()]])
    assert_close(found[1], found[0])


def test_graphed_functions_have_gradients(device, module):
    pair = [torch.randn(4, device=device, requires_grad=wanted) for wanted in (True, False)]
    loss = module.make_graphed_callables(nn.functional.mse_loss, tuple(pair))
    x, y = torch.randn(4, device=device, requires_grad=True), torch.randn(4, device=device)
    found = loss(x, y)
    found.backward()
    assert_close(found, nn.functional.mse_loss(x, y))
    assert_close(x.grad, (x - y).detach() / 2)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Rprop",
                                  "Adadelta", "ASGD"])  # fmt: skip
def test_a_step_of_a_capturable_optimizer_replays(device, name):
    torch.manual_seed(0)
    make = getattr(torch.optim, name)
    start = [torch.randn(5, 5), torch.randn(())]
    gradients = [[torch.randn_like(p) for p in start] for _ in range(4)]
    plain, graphed = ([p.to(device).requires_grad_() for p in start] for _ in range(2))
    eager, replayed = make(plain, lr=0.1), make(graphed, lr=0.1, capturable=True)
    for step in gradients:
        for p, g in zip(plain, step, strict=True):
            p.grad = g.to(device)
        eager.step()
    for step in gradients[:2]:
        for p, g in zip(graphed, step, strict=True):
            p.grad = g.to(device)
        replayed.step()
    graph, _ = captured(device, replayed.step)
    for step in gradients[2:]:
        for p, g in zip(graphed, step, strict=True):
            p.grad.copy_(g)
        graph.replay()
    assert_close([p.detach() for p in graphed], [p.detach() for p in plain], rtol=1e-5, atol=1e-5)

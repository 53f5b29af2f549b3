"""Replays of a captured graph: eager's results on the inputs of the moment."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from capturing import captured

pytestmark = pytest.mark.both_modes

DEVICE = "graft"


def test_replay_runs_what_was_captured_on_the_inputs_of_the_moment():
    x = torch.ones(1000, device=DEVICE)
    graph, y = captured(DEVICE, lambda: (x * 2 + 1).sum())
    for value in (1.0, 3.0, -2.0):
        x.fill_(value)
        graph.replay()
        assert y.item() == 1000 * (2 * value + 1)


def test_the_driver_takes_the_commands_in_one_call(module):
    x = torch.ones(1000, device=DEVICE)
    graph, y = captured(DEVICE, lambda: (x.cumsum(0) * 2).sqrt().sum())
    expected = (x.cumsum(0) * 2).sqrt().sum()
    before = module.statistics()
    graph.replay()
    made = {key: number - before[key] for key, number in module.statistics().items()}
    assert (made["graphs"], made["launches"]) == (1, 0)
    assert made["launches_in_graphs"] >= 4
    assert torch.equal(y, expected)


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

    graph, loss = captured(DEVICE, step)
    replayed = []
    for batch, target in zip(batches, targets, strict=True):
        x.copy_(batch)
        y.copy_(target)
        graph.replay()
        replayed.append(loss.item())
    torch.testing.assert_close(replayed, losses)
    for a, b in zip(eager.parameters(), graphed.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_a_bad_index_is_reported_after_the_replay_that_met_it():
    table = torch.randn(10, 4, device=DEVICE)
    index = torch.zeros(3, dtype=torch.long, device=DEVICE)
    graph, rows = captured(DEVICE, lambda: table.index_select(0, index))
    graph.replay()
    torch.accelerator.synchronize()
    index.fill_(99)
    graph.replay()
    with pytest.raises(RuntimeError, match="out of range"):
        torch.accelerator.synchronize()
    index.fill_(2)
    graph.replay()
    assert torch.equal(rows.cpu(), table.cpu()[[2, 2, 2]])


def test_an_empty_graph_replays(device):
    graph, _ = captured(device, lambda: None)
    graph.replay()
    torch.accelerator.synchronize()


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

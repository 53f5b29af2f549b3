"""make_graphed_callables: modules and functions whose calls replay graphs."""

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

pytestmark = pytest.mark.both_modes

DEVICE = "graft"


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

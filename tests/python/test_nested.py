"""Nested tensors on the device: the jagged layout, the strided one, and what modules make of them."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves

SOURCE = torch.Generator().manual_seed(6)
PARTS = [torch.randn(n, 8, generator=SOURCE) for n in (2, 5, 3)]
WEIGHT = torch.randn(4, 8, generator=SOURCE)
# Conversions between jagged and padded have no kernel of the device yet: docs/ecosystem.md.
STATED = {"aten::_jagged_to_padded_dense_forward", "aten::_padded_dense_to_jagged_forward"}

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")


def jagged(device, requires_grad=False):
    return torch.nested.nested_tensor(
        PARTS, layout=torch.jagged, device=device, requires_grad=requires_grad
    )


def strided(device):
    return torch.nested.nested_tensor(PARTS, layout=torch.strided, device=device)


def dense(result):
    """The plain tensors of a result."""
    leaves = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
    flat = [part for t in leaves for part in (t.unbind() if t.is_nested else [t])]
    return [t.detach() for t in flat]


def compare(device, call, make):
    expected = dense(call(make("cpu")))
    module = torch.get_device_module(device)
    module.fallback.reset()
    with module.fallback.off():
        found = dense(call(make(device)))
    assert {t.device.type for t in found} == {device}
    assert_close([t.cpu() for t in found], expected, rtol=1e-4, atol=1e-5)
    return set(module.fallback.counts())


BOTH = {
    "add": lambda n: n + n, "mul": lambda n: n * 2, "relu": lambda n: n.relu(),
    "gelu": lambda n: F.gelu(n), "neg": lambda n: -n, "clone": lambda n: n.clone(),
    "cast": lambda n: n.double(), "unbind": lambda n: n.unbind(), "select": lambda n: n[1],
    "chunk": lambda n: n.chunk(2, -1), "softmax": lambda n: n.softmax(-1),
    "linear": lambda n: F.linear(n, WEIGHT.to(n.device)),
    "layer_norm": lambda n: F.layer_norm(n, (8,), *WEIGHT[:2].to(n.device)), "zeros_like": lambda n: torch.zeros_like(n),
    "padded": lambda n: n.to_padded_tensor(0.5), "sum of rows": lambda n: n.sum(-1, keepdim=True),
}  # fmt: skip
JAGGED = {
    "sum": lambda n: n.sum(), "sum of the ragged": lambda n: n.sum(1),
    "mean of the ragged": lambda n: n.mean(1), "amax": lambda n: n.amax(1),
    "softmax of the ragged": lambda n: n.softmax(1), "cat": lambda n: torch.cat([n, n], -1),
    "where": lambda n: torch.where(n > 0, n, -n), "matmul": lambda n: n @ WEIGHT.t().to(n.device),
    "row": lambda n: n + torch.ones(8, device=n.device),
    "embedding": lambda n: F.embedding(n.abs().long().clamp(max=3), WEIGHT.to(n.device)),
    "heads": lambda n: n.unflatten(-1, [2, 4]).transpose(1, 2).clone(),
    "dropout": lambda n: F.dropout(n, 0.5, training=False),
}  # fmt: skip


@pytest.mark.parametrize("name", [*BOTH, *JAGGED])
def test_jagged(device, name):
    left = compare(device, {**BOTH, **JAGGED}[name], jagged)
    assert left <= STATED


def test_jagged_between_devices(device, second):
    nested = jagged("cpu")
    moved = nested.to(device)
    assert moved.offsets().device.type == device
    assert_close(moved.cpu().values(), nested.values())
    assert moved.to(second).device == torch.empty(0, device=second).device
    assert_close(moved.to(second).values().cpu(), nested.values())
    assert copy.deepcopy(moved).values().data_ptr() != moved.values().data_ptr()
    narrow = torch.nested.narrow(
        torch.ones(2, 4, 3, device=device), 1, 0, torch.tensor([1, 3], device=device), torch.jagged
    )
    assert [len(part) for part in narrow.unbind()] == [1, 3]


def test_gradients_of_jagged(device):
    gradients = []
    for where in ("cpu", device):
        nested = jagged(where, requires_grad=True)
        hidden = F.gelu(F.linear(nested, WEIGHT.to(where)))
        (hidden.to_padded_tensor(0.5).square().sum() + hidden.values().sum()).backward()
        gradients.append(nested.grad.values().cpu())
    assert_close(gradients[1], gradients[0], rtol=1e-4, atol=1e-5)


def test_a_module_learns_from_jagged_batches(device, module):
    torch.manual_seed(0)
    start = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 1))
    losses = []
    for where in ("cpu", device):
        model = copy.deepcopy(start).to(where)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        curve = []
        with module.fallback.forbid():
            for _ in range(4):
                optimizer.zero_grad()
                loss = (model(jagged(where)).values() - 1).square().mean()
                loss.backward()
                optimizer.step()
                curve.append(loss.item())
        losses.append(curve)
    assert_close(losses[1], losses[0], rtol=1e-3, atol=1e-4)
    assert losses[1][-1] < losses[1][0]


@pytest.mark.parametrize("name", BOTH)
def test_strided(device, name):
    compare(device, BOTH[name], strided)


def test_strided_between_devices(device):
    nested = strided("cpu")
    moved = nested.to(device)
    assert_close(dense(moved.cpu()), dense(nested))
    again = torch.nested.as_nested_tensor([p.to(device) for p in PARTS])
    assert_close([t.cpu() for t in dense(again)], PARTS)


ABORTS = {
    "strided": "n = torch.nested.nested_tensor(parts, device=D, requires_grad=True)\n"
    "n.relu().to_padded_tensor(0.0).sum().backward()\n"
    "print(json.dumps(sum(g.sum().item() for g in n.grad.unbind())))",
    "attention": "n = torch.nested.nested_tensor(parts, layout=torch.jagged, device=D,\n"
    "    requires_grad=True)\n"
    "q = n.unflatten(-1, [2, 4]).transpose(1, 2)\n"
    "torch.nn.functional.scaled_dot_product_attention(q, q, q).values().sum().backward()\n"
    "print(json.dumps(n.grad.values().sum().item()))",
}


@pytest.mark.parametrize("name", ABORTS)
def test_gradients_through_the_strided_layout(device, python, name):
    """In a process of its own: where the layout's size is unknown to autograd, PyTorch aborts."""
    code = "parts = [torch.ones(2, 8), torch.ones(3, 8)]\n" + ABORTS[name]
    expected = python(code, DEVICE="cpu").value()
    assert python(code).value() == pytest.approx(expected)


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_transformer_skips_padding_in_inference(device, norm_first):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        16, 2, 32, 0.0, activation="gelu", batch_first=True, norm_first=norm_first
    )
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first).eval()
    x = torch.randn(3, 5, 16)
    padding = torch.arange(5) >= torch.tensor([[3], [5], [1]])
    with torch.no_grad():
        expected = model(x, src_key_padding_mask=padding)
        found = model.to(device)(x.to(device), src_key_padding_mask=padding.to(device))
    assert found.device.type == device
    assert_close(found.cpu()[~padding], expected[~padding], rtol=1e-4, atol=1e-5)

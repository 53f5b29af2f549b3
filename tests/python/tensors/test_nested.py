"""Nested tensors on the device: the jagged layout, the strided one, and what modules make of them."""

import copy
import io

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves

SOURCE = torch.Generator().manual_seed(6)
PARTS = [torch.randn(n, 8, generator=SOURCE) for n in (2, 5, 3)]
WEIGHT = torch.randn(4, 8, generator=SOURCE)
# Conversions between jagged and padded have no kernel of the device yet: docs/use/ecosystem.md.
STATED = {"aten::_jagged_to_padded_dense_forward", "aten::_padded_dense_to_jagged_forward"}

pytestmark = [
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors"),
]


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


def heads(nested):
    return nested.reshape(3, -1, 2, 4).transpose(1, 2).contiguous()


STRIDED = {
    "sub": lambda n: n - n * 3, "div": lambda n: n / 2, "abs": lambda n: n.abs(),
    "silu": lambda n: F.silu(n), "where": lambda n: torch.where(n > 0, n.values()[0], n),
    "masked_fill": lambda n: n.masked_fill(n > 0, 0.5), "cat": lambda n: torch.cat([n, n]),
    "transpose": lambda n: n.transpose(1, 2).contiguous(),
    "matmul": lambda n: n @ n.transpose(1, 2).contiguous(),
    "bmm": lambda n: torch.bmm(n, n.transpose(1, 2).contiguous()),
    "attention": lambda n: F.scaled_dot_product_attention(heads(n), heads(n), heads(n)),
    "copy_": lambda n: torch.zeros_like(n).copy_(n), "fill_": lambda n: n.clone().fill_(2),
    "squeeze": lambda n: n.unsqueeze(1).squeeze(1), "values": lambda n: n.values(),
    "dropout": lambda n: F.dropout(n, 0.5, training=False),
    "padded further": lambda n: n.to_padded_tensor(0.5, (3, 6, 9)),
    "norm of two dimensions": lambda n: F.layer_norm(
        n.reshape(3, -1, 2, 4), (2, 4), *WEIGHT[:2].reshape(2, 2, 4).to(n.device)),
    "sum of the ragged": lambda n: n.transpose(1, 2).contiguous().sum(-1, keepdim=True),
    "as another": lambda n: torch._nested_from_padded_and_nested_example(
        n.to_padded_tensor(0.0) + 1, n),
    "heads of attention": lambda n: torch._transform_bias_rescale_qkv(
        torch.cat([n, n, n], -1).contiguous(), torch.linspace(-1, 1, 24, device=n.device), 2),
    "scores": lambda n: torch._nested_tensor_softmax_with_shape(
        n.to_padded_tensor(0.0)[:, None, :, :5].contiguous(), n),
}  # fmt: skip


@pytest.mark.parametrize("name", [*BOTH, *STRIDED])
def test_strided(device, name):
    assert compare(device, {**BOTH, **STRIDED}[name], strided) == set()


def test_strided_between_devices(device, second):
    nested = strided("cpu")
    moved = nested.to(device)
    assert_close(dense(moved.cpu()), dense(nested))
    assert moved.to(second).device == torch.empty(0, device=second).device
    assert_close(dense(moved.to(second).cpu()), dense(nested))
    assert_close(dense(torch.zeros_like(nested).copy_(moved)), dense(nested))
    again = torch.nested.as_nested_tensor([p.to(device) for p in PARTS])
    assert_close([t.cpu() for t in dense(again)], PARTS)


def test_strided_is_printed_and_saved(device):
    nested = strided(device)
    assert str(nested).startswith("nested_tensor([")
    assert device in str(nested)
    file = io.BytesIO()
    torch.save(nested, file)
    for where in (device, "cpu"):
        file.seek(0)
        loaded = torch.load(file, map_location=where)
        assert loaded.is_nested
        assert loaded.device.type == where
        assert_close([t.cpu() for t in dense(loaded)], PARTS)


def test_strided_with_parts_without_elements(device):
    for sizes in [(2, 8), (0, 8), (3, 8)], [(0, 8)]:
        nested = torch.nested.nested_tensor([torch.ones(s) for s in sizes], device=device)
        assert [tuple(t.shape) for t in (nested + nested).unbind()] == sizes
        total = F.linear(nested, WEIGHT.to(device)).sum(-1, keepdim=True)
        assert [tuple(t.shape) for t in total.unbind()] == [(n, 1) for n, _ in sizes]


def test_what_strided_cannot_do_is_an_error(device):
    nested = strided(device)
    with pytest.raises(NotImplementedError, match="NestedTensor"):
        nested.sort()
    with pytest.raises(RuntimeError, match="last dimension"):
        nested.sum(1, keepdim=True)
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        nested.pin_memory()
    assert not nested.is_pinned()
    with pytest.raises(RuntimeError, match="do not describe the parts"):
        torch._nested_from_padded(torch.ones(2, 3, 4, device=device), torch.tensor([[1, 4]]))


def test_weights_of_attention_leave_padding_out(device, module):
    generator = torch.Generator().manual_seed(1)
    into, out = (torch.randn(n, 8, generator=generator) for n in (24, 8))
    bias, last = torch.linspace(-1, 1, 24), torch.linspace(0, 1, 8)

    def call(nested, need_weights):
        tensors = (t.to(nested.device) for t in (into, bias, out, last))
        found, weights = torch._native_multi_head_attention(
            nested, nested, nested, 8, 2, *tensors, need_weights=need_weights
        )
        return [*found.unbind(), *([weights] if need_weights else [])]

    for need_weights in (True, False):
        expected = call(strided("cpu"), need_weights)
        with module.fallback.forbid():
            found = call(strided(device), need_weights)
        assert_close([t.cpu() for t in found], expected, rtol=1e-4, atol=1e-5)


ABORTS = {
    "strided": "n = torch.nested.nested_tensor(parts, device=D, requires_grad=True)\n"
    "n.relu().to_padded_tensor(0.0).sum().backward()\n"
    "print(json.dumps(sum(g.sum().item() for g in n.grad.unbind())))",
    "layers": "n = torch.nested.nested_tensor(parts, device=D, requires_grad=True)\n"
    "w = torch.linspace(-1, 1, 32).reshape(4, 8).to(D).requires_grad_()\n"
    "h = torch.nn.functional.layer_norm(n * n, (8,), w[0], w[1])\n"
    "h = torch.nn.functional.gelu(torch.nn.functional.linear(h, w)).softmax(-1)\n"
    "s = h @ h.transpose(1, 2).contiguous()\n"
    "s = s.to_padded_tensor(0.0).square().sum() + torch.nn.functional.silu(n * n).to_padded_tensor(1.0).sum()\n"
    "s = s + (n * 2).sum(-1, keepdim=True).to_padded_tensor(0.0).square().sum()\n"
    "s.backward()\n"
    "print(json.dumps(n.grad.to_padded_tensor(0.0).flatten().tolist() + w.grad.flatten().tolist()))",
    "attention": "n = torch.nested.nested_tensor(parts, layout=torch.jagged, device=D,\n"
    "    requires_grad=True)\n"
    "q = n.unflatten(-1, [2, 4]).transpose(1, 2)\n"
    "torch.nn.functional.scaled_dot_product_attention(q, q, q).values().sum().backward()\n"
    "print(json.dumps(n.grad.values().sum().item()))",
}


@pytest.mark.parametrize("name", ABORTS)
def test_gradients_through_the_strided_layout(device, python, name):
    """In a process of its own: where the layout's size is unknown to autograd, PyTorch aborts."""
    code = "parts = [torch.linspace(-1, 2, n * 8).reshape(n, 8) for n in (2, 3)]\n" + ABORTS[name]
    expected = python(code, DEVICE="cpu").value()
    assert python(code).value() == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_transformer_skips_padding_in_inference(device, module, norm_first):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        16, 2, 32, 0.0, activation="gelu", batch_first=True, norm_first=norm_first
    )
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first).eval()
    x = torch.randn(3, 5, 16)
    padding = torch.arange(5) >= torch.tensor([[3], [5], [1]])
    with torch.no_grad():
        expected = model(x, src_key_padding_mask=padding)
        with module.fallback.forbid():
            found = model.to(device)(x.to(device), src_key_padding_mask=padding.to(device))
    assert found.device.type == device
    assert_close(found.cpu()[~padding], expected[~padding], rtol=1e-4, atol=1e-5)

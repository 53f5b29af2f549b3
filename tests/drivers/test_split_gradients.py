"""Forward on the device and backward by the fallback, and the other way: what one keeps, the other reads."""

from __future__ import annotations

import pytest

from sandbox import interpret

SPLIT = """
import ctypes, warnings
from torch import nn
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

warnings.simplefilter("ignore")
allow = ctypes.CDLL(os.environ["GRAFT_DRIVER_PATH"]).graft_limited_allow
refuse = lambda yes: allow(0 if yes else -1)
SAMPLES = 4

def fresh(value, device):
    def move(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        moved = leaf.detach().to(device)
        return moved.requires_grad_(leaf.requires_grad)
    return tree_map(move, value)

def gradients(call, given, device, first):
    given = fresh(given, device)
    refuse(first and device != "cpu")
    result = [t for t in tree_leaves(call(*given)) if isinstance(t, torch.Tensor) and t.requires_grad]
    leaves = [t for t in tree_leaves(given) if isinstance(t, torch.Tensor) and t.requires_grad]
    refuse(not first and device != "cpu")
    above = [torch.ones_like(t) * 0.5 for t in result]
    found = torch.autograd.grad(result, leaves, above, allow_unused=True) if result else []
    refuse(False)
    return [None if g is None else g.to("cpu") for g in found]

def compare(name, call, given, failed):
    try:
        expected = gradients(call, given, "cpu", False)
    except Exception:
        return 0
    for first in (False, True):
        try:
            found = gradients(call, given, D, first)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4, equal_nan=True)
        except Exception as error:
            refuse(False)
            failed[f"{name} {'forward' if first else 'backward'} by the fallback"] = str(error)[:200]
    return 1

class Cells(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.cells = kind(4, 5, 2)
    def forward(self, x):
        return self.cells(x)[0]

def modules():
    norm = nn.BatchNorm2d(3)
    yield "BatchNorm2d", norm, torch.randn(4, 3, 5, 5)
    yield "BatchNorm2d eval", nn.BatchNorm2d(3).eval(), torch.randn(4, 3, 5, 5)
    yield "LSTM", Cells(nn.LSTM), torch.randn(6, 2, 4)
    yield "GRU", Cells(nn.GRU), torch.randn(6, 2, 4)
    yield "attention", nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), torch.randn(5, 2, 8)

def trained(name, model, x, failed):
    names, values = zip(*model.named_parameters())
    buffers = dict(model.named_buffers())
    def call(x, *parameters):
        there = {k: v.clone().to(x.device) for k, v in buffers.items()}
        return torch.func.functional_call(model, {**dict(zip(names, parameters)), **there}, (x,))
    return compare(name, call, [x.requires_grad_(), *values], failed)

def main():
    failed, ran = {}, 0
    part, parts = int(os.environ["PART"]), int(os.environ["PARTS"])
    for place, info in enumerate(op_db):
        name = f"{info.name}.{info.variant_test_name}"
        if place % parts != part or not info.supports_autograd or info.op is None:
            continue
        if not info.supports_dtype(torch.float32, "cpu"):
            continue
        samples = list(info.sample_inputs("cpu", torch.float32, requires_grad=True))
        for sample in samples[::max(1, len(samples) // SAMPLES)]:
            if sample.kwargs.get("dropout_p"):
                continue
            given = [sample.input, *sample.args]
            def call(*given, kwargs=sample.kwargs):
                device = next((t.device for t in tree_leaves(given) if isinstance(t, torch.Tensor)), None)
                there = fresh(kwargs, device) if device else kwargs
                torch.manual_seed(0)
                return info.op(*given, **there)
            ran += compare(name, call, given, failed)
    if part == 0:
        for one in modules():
            ran += trained(*one, failed)
    print(json.dumps([failed, ran]))

torch.manual_seed(3)
main()
"""
# What of the database is not compared, and why.
UNLIKE = {
    "a device draws numbers of its own": ("dropout", "rrelu", "svd_lowrank", "pca_lowrank",
                                          "multi_head_attention_forward"),
    "eigenvectors have any sign": ("linalg.eigh",),
    "indices on the device are refused, as by torch.cuda": ("tensor_split",),
    "the sample lies in the memory of another tensor": ("as_strided.partial_views",),
}  # fmt: skip
NOT_COMPARED = tuple(name for names in UNLIKE.values() for name in names)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.seldom
def test_what_one_side_keeps_the_other_reads(limited, part):
    environment = limited("at_times") | {"PART": str(part), "PARTS": "4"}
    failed, ran = interpret(SPLIT, timeout=800, **environment).value()
    assert ran > 100
    assert {k: v for k, v in failed.items() if not any(name in k for name in NOT_COMPARED)} == {}


DROPPED = """
import ctypes
from torch.nn.functional import scaled_dot_product_attention as attention
allow = ctypes.CDLL(os.environ["GRAFT_DRIVER_PATH"]).graft_limited_allow
refuse = lambda yes: allow(0 if yes else -1)
equal = {}
for name, sizes, causal in (("one head", (1, 1, 5, 7), False), ("heads", (2, 3, 9, 9), True),
                            ("blocks", (2, 4, 400, 700), False), ("transposed", (3, 2, 8, 6), False)):
    batch, heads, rows, columns = sizes
    q, k = torch.randn(batch, heads, rows, 4, device=D), torch.randn(batch, heads, columns, 4, device=D)
    if name == "transposed":  # batch and heads are no one dimension
        q, k = q.mT.contiguous().mT.transpose(0, 1), k.mT.contiguous().mT.transpose(0, 1)
        batch, heads = heads, batch
    v = torch.eye(columns, device=D).expand(batch, heads, columns, columns).clone().requires_grad_()
    weights = attention(q, k, v, is_causal=causal, dropout_p=0.4)  # times the identity
    above = torch.randn_like(weights)
    refuse(True)
    torch.graft.fallback.reset()
    (found,) = torch.autograd.grad(weights, v, above)
    counted = "aten::native_dropout" in torch.graft.fallback.counts()
    refuse(False)
    equal[name] = counted and torch.allclose(found.cpu(), weights.detach().cpu().mT @ above.cpu(), atol=1e-5)
print(json.dumps(equal))
"""


def test_the_host_draws_again_what_attention_dropped(limited):
    equal = interpret(DROPPED, **limited("at_times")).value()
    assert len(equal) == 4
    assert all(equal.values()), equal

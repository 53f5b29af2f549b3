"""Forward on the device and backward by the fallback, and the other way: what one keeps, the other reads."""

from __future__ import annotations

import pytest

from sandbox import interpret, program

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
    failed, ran = interpret(
        program("tests/drivers/split_gradients.py"), timeout=800, **environment
    ).value()
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

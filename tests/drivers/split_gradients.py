"""Gradients of op_db and of modules, one of the two passes on the device, the other by the fallback."""

import ctypes
import json
import os
import warnings

import torch
from torch import nn
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

D = os.environ["DEVICE"]

warnings.simplefilter("ignore")
allow = ctypes.CDLL(os.environ["GRAFT_DRIVER_PATH"]).graft_limited_allow
SAMPLES = 4


def refuse(yes):
    allow(0 if yes else -1)


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
    result = [
        t for t in tree_leaves(call(*given)) if isinstance(t, torch.Tensor) and t.requires_grad
    ]
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
            failed[f"{name} {'forward' if first else 'backward'} by the fallback"] = str(error)[
                :200
            ]
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
    names, values = zip(*model.named_parameters(), strict=True)
    buffers = dict(model.named_buffers())

    def call(x, *parameters):
        there = {k: v.clone().to(x.device) for k, v in buffers.items()}
        return torch.func.functional_call(
            model, {**dict(zip(names, parameters, strict=True)), **there}, (x,)
        )

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
        for sample in samples[:: max(1, len(samples) // SAMPLES)]:
            if sample.kwargs.get("dropout_p"):
                continue
            given = [sample.input, *sample.args]

            def call(*given, op=info.op, kwargs=sample.kwargs):
                device = next(
                    (t.device for t in tree_leaves(given) if isinstance(t, torch.Tensor)), None
                )
                there = fresh(kwargs, device) if device else kwargs
                torch.manual_seed(0)
                return op(*given, **there)

            ran += compare(name, call, given, failed)
    if part == 0:
        for one in modules():
            ran += trained(*one, failed)
    print(json.dumps([failed, ran]))


torch.manual_seed(3)
main()

"""Operators of op_db on a device without kernels; prints those that fail, how many ran, what fell back.

Each runs also with integers for each of its tensors, and those of its forms in place and with out= that
take the same arguments. An operator that fails where the CPU does not reached a kernel that the device
lacks outside of what falls back.
"""

import itertools
import json
import os
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_map

D = os.environ["DEVICE"]

warnings.simplefilter("ignore")
fallback = torch.get_device_module(D).fallback  # the policy is silent
part, parts = int(os.environ["PART"]), int(os.environ["PARTS"])
failed, ran = {}, 0


def there(value):
    return tree_map(lambda t: t.to(D) if isinstance(t, torch.Tensor) else t, value)


def device_of(value):
    return tree_map(
        lambda v: torch.device(D) if v == "cpu" or v == torch.device("cpu") else v, value
    )


def copied(value):
    return tree_map(lambda t: t.clone() if isinstance(t, torch.Tensor) else t, value)


def integers(args, which):
    seen = itertools.count()

    def one(t):
        if not isinstance(t, torch.Tensor) or t.layout != torch.strided:
            return t
        if not t.is_floating_point():
            return t
        return t.nan_to_num(0, 3, -3).clamp(-3, 3).long() if next(seen) == which else t

    return tree_map(one, args)


def attempt(name, call, args, kwargs):
    global ran
    try:
        with torch.no_grad():
            call(*copied(args), **copied(kwargs))
    except Exception:
        return
    ran += 1
    try:
        with torch.no_grad():
            call(*there(args), **device_of(there(kwargs)))
    except Exception as error:
        failed.setdefault(name, f"{type(error).__name__}: {error}".splitlines()[0][:300])


for op in op_db[part::parts]:
    if op.name.startswith("jiterator") or not op.supported_dtypes("cpu"):
        continue
    for dtype in (torch.float32, torch.int64):
        if not op.supports_dtype(dtype, "cpu"):
            continue
        try:
            samples = list(itertools.islice(op.sample_inputs("cpu", dtype), 2))
        except Exception:
            continue
        for sample in samples:
            args = (sample.input, *sample.args)
            attempt(op.name, op.op, args, sample.kwargs)
            if dtype == torch.float32:
                for which in range(3):
                    changed = integers(args, which)
                    attempt(op.name, op.op, changed, sample.kwargs)
                if op.inplace_variant is not None:
                    attempt(op.name + "_", op.inplace_variant, args, sample.kwargs)
for name, call in (
    ("kaiser_window", lambda device: torch.kaiser_window(9, device=device)),
    ("kaiser_window", lambda device: torch.kaiser_window(9, False, 3.0, device=device)),
):
    attempt(name, call, (), {"device": "cpu"})
counts = fallback.counts()
print(json.dumps([failed, ran, sorted(counts)]))

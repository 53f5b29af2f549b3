# conformance/torch_conformance/fuzz/entries.py: the samples of op_db as sources of calls.
"""given() names a value inside a sample; recorded argument lists say how ATen's overloads are called."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import random
import warnings
from pathlib import Path
from typing import Any

import numpy
import torch

from torch_conformance import private_names as inside
from torch_conformance.cells import cases
from torch_conformance.suites.sample_loop import seed
from torch_conformance.tensors import samples
from torch_conformance.tensors.compare import leaves

SAMPLES = 8  # of an entry in a dtype
TEMPLATES = 6  # kept of an overload
ELEMENTS = 1 << 16  # of a tensor in a template
Template = dict[str, str]  # argument's name -> expression


def entry(name: str) -> Any:
    """The callable of an op_db entry."""
    return cases.entries("op")[name]


@functools.lru_cache(maxsize=4)
def inputs(name: str, dtype: str, requires_grad: bool = False) -> list[tuple[list[Any], Any]]:
    """The first samples of an entry as (positional arguments, keyword arguments)."""
    seed()
    random.seed(0)
    numpy.random.seed(0)
    info = entry(name)  # sample_inputs() walks the stack for each sample: that takes too long
    found = info.sample_inputs_func(info, "cpu", getattr(torch, dtype), requires_grad)
    few = list(itertools.islice(found, SAMPLES))
    return [([s.input, *s.args], s.kwargs) for s in few]


def given(
    name: str, dtype: str, number: int, *path: int | str, device: torch.device
) -> Any:  # fmt: skip
    """A value of a sample at the device; path: its place, as (0,) or ("weight", 1)."""
    positional, named = inputs(name, dtype)[number]
    value: Any = named if isinstance(path[0], str) else positional
    for step in path:
        value = value[step]
    return samples.Carrier(device)(value)


def dtypes(name: str) -> list[str]:
    return sorted(map(cases.dtype_name, entry(name).supported_dtypes("cpu")))


def expression(value: Any) -> str | None:
    """A value without tensors as Python text; None for what has none."""
    if value is None or isinstance(value, bool | int | str | torch.dtype | torch.layout):
        return str(value) if isinstance(value, torch.dtype | torch.layout) else repr(value)
    if isinstance(value, float | complex):
        return repr(value) if value == value else "nan"
    if isinstance(value, torch.memory_format):
        return str(value)
    if isinstance(value, torch.device):
        return "d"
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if type(value) in (list, tuple, torch.Size):
        items = [expression(item) for item in value]
        if None in items:
            return None
        inner = ", ".join(map(str, items))
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(items) == 1 else f"({inner})"
    return None


def _tensor(tensor: torch.Tensor) -> str | None:
    """A tensor of the same shape, dtype, strides and range of values."""
    if not samples.is_strided(tensor) or tensor.numel() > ELEMENTS or tensor.device.type != "cpu":
        return None
    shape, dtype = tuple(tensor.shape), cases.dtype_name(tensor.dtype)
    plain = tensor.detach().resolve_conj().resolve_neg()
    if tensor.numel() <= 6 and not tensor.is_complex():
        values = plain.tolist()
        return f"torch.tensor({values}, dtype=torch.{dtype}, device=d)"
    low, high = _range(plain)
    if tensor.is_contiguous():
        return f"made('{dtype}', {shape}, {tensor.numel() % 100}, {low}, {high})"
    strides = tuple(tensor.stride())
    span = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    whole = f"made('{dtype}', ({span},), 1, {low}, {high})"
    return f"{whole}.as_strided({shape}, {strides})"


def _range(tensor: torch.Tensor) -> tuple[float, float]:
    if tensor.is_complex() or tensor.dtype == torch.bool or tensor.numel() == 0:
        return -4, 4
    values = tensor.double().nan_to_num(0, 9, -9)
    low, high = float(values.min()), float(values.max())
    if not tensor.is_floating_point():
        return int(low), int(high) + 1
    return round(low, 3), round(high, 3) + 0.001


class Recorder(inside.TorchDispatchMode):
    """Gathers how overloads are called."""

    def __init__(self, found: dict[str, list[Template]]) -> None:
        super().__init__()
        self.found = found

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kept = self.found.setdefault(func.name(), [])
        if len(kept) < TEMPLATES:
            names = [a.name for a in inside.operator_schema(func).arguments]
            pairs = {**dict(zip(names, args, strict=False)), **(kwargs or {})}
            texts = {name: expression(value) for name, value in pairs.items()}
            template = {name: text for name, text in texts.items() if text is not None}
            if len(template) == len(texts) and template not in kept:
                kept.append(template)
        return func(*args, **(kwargs or {}))


def _run(name: str) -> None:
    """Runs an entry's first samples, with gradients where it has them."""
    known = dtypes(name)
    dtype = next((d for d in ("float32", "complex64", "int64", "bool") if d in known), None)
    if dtype is None:
        return
    floating = dtype in ("float32", "complex64")
    for grad in (False, True) if floating and entry(name).supports_autograd else (False,):
        for positional, named in inputs(name, dtype, grad)[:6]:
            with contextlib.suppress(Exception):
                result = entry(name)(*positional, **named)
                outputs = [t for t in leaves(result) if t.requires_grad]
                if grad and outputs:
                    torch.autograd.backward(outputs, [torch.ones_like(t) for t in outputs])


def write_corpus(path: str) -> None:
    """Records op_db on the CPU; a process of its own, since a later fork must see no autograd thread."""
    torch.set_num_threads(1)
    found: dict[str, list[Template]] = {}
    with warnings.catch_warnings(), Recorder(found):
        warnings.simplefilter("ignore")
        for name in cases.entries("op"):
            with contextlib.suppress(Exception):
                _run(name)
    Path(path).write_text(json.dumps(found))


@functools.lru_cache(maxsize=1)
def corpus(path: str) -> dict[str, list[Template]]:
    found: dict[str, list[Template]] = json.loads(Path(path).read_text())
    return found


def templates(path: str, name: str) -> list[Template]:
    """How an overload, or one of the same name (in place, with out=), was called."""
    known = corpus(path)
    if name in known:
        return known[name]
    stem = _stem(name)
    near = [t for other in sorted(known) if _stem(other) == stem for t in known[other]]
    return near[:TEMPLATES]


def _stem(name: str) -> str:
    return name.split(".")[0].removesuffix("_")

# conformance/torch_conformance/suites/refusals.py: the aspect refusals: what the CPU refuses, the device refuses alike.
"""Arguments are spoilt one at a time; where the CPU takes them in spite of that, so must the device."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.cells import registry
from torch_conformance.device.capabilities import capabilities
from torch_conformance.suites import layouts, variants
from torch_conformance.suites.case import Case
from torch_conformance.suites.sample_loop import Place
from torch_conformance.suites.variants import Variant, chosen, varied
from torch_conformance.tensors import compare
from torch_conformance.tensors.samples import is_strided

FAR = 9999  # beyond the end of every dimension of a small sample
NUMBERS = (-7, 11)  # a negative size, a dimension that is not there
DRAWN = 3  # of each kind of spoilt argument
INDICES = (torch.int64, torch.int32)


def _dtypes(case: Case, chance: random.Random, few: list[tuple[int, Any]]) -> list[Variant]:
    """The dtypes that neither PyTorch's CPU nor its CUDA takes, dealt out among the entry's cells."""
    info, able = case.info, capabilities(case.session.device)
    taken = info.supported_dtypes("cpu") | info.supported_dtypes("cuda")
    cells = sorted(map(str, info.supported_dtypes("cpu")))
    refused = [d for d in variants.DTYPES if d not in taken and able.supports(d)]
    mine = refused[cells.index(str(case.dtype)) :: len(cells)]
    found = []
    for dtype in mine:
        _, sample = chance.choice(few)
        every = variants.tensors(sample)
        wanted = {n for n, t in enumerate(every) if t.dtype == case.dtype and is_strided(t)}
        if wanted:
            inputs = chosen(sample, wanted, _cast(dtype))
            found.append(varied(f"dtype {str(dtype).removeprefix('torch.')}", sample, inputs))
    return found


def _cast(dtype: torch.dtype) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda tensor: tensor.detach().to(dtype)


def _mixed_dtypes(case: Case, chance: random.Random, few: list[tuple[int, Any]]) -> list[Variant]:
    able = capabilities(case.session.device)
    found = []
    for dtype in chance.sample(variants.DTYPES, DRAWN):
        _, sample = chance.choice(few)
        every = variants.tensors(sample)
        if len(every) < 2 or not able.supports(dtype):
            continue
        number = chance.randrange(1, len(every))
        if is_strided(every[number]) and every[number].dtype != dtype:
            inputs = chosen(sample, {number}, _cast(dtype))
            found.append(varied("mixed dtypes", sample, inputs))
    return found


def _shapes(case: Case, chance: random.Random, few: list[tuple[int, Any]]) -> list[Variant]:
    def shorter(t: torch.Tensor) -> torch.Tensor:
        dims = [d for d in range(t.dim()) if t.shape[d] > 1]
        dim = chance.choice(dims) if dims else 0
        return t.narrow(dim, 0, t.shape[dim] - 1).clone() if dims else t

    def longer(t: torch.Tensor) -> torch.Tensor:
        return torch.cat([t, t], chance.randrange(t.dim())) if t.dim() else t.repeat(2)

    spoilt: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "shape shorter": shorter, "shape longer": longer,
        "shape deeper": lambda t: t.unsqueeze(0),
        "shape flat": lambda t: t.reshape(-1),
    }  # fmt: skip
    found = []
    for name, change in spoilt.items():
        _, sample = chance.choice(few)
        every = variants.tensors(sample)
        usable = [n for n, t in enumerate(every) if is_strided(t)]
        if usable:
            inputs = chosen(sample, {chance.choice(usable)}, change)
            found.append(varied(name, sample, inputs))
    return found


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _replaced(value: Any, place: list[int], new: int) -> Any:
    """value with the number at a place (counted down in place[0]) replaced."""
    if _whole(value):
        place[0] -= 1
        return new if place[0] == -1 else value
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        items = [_replaced(item, place, new) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, dict):
        return {key: _replaced(item, place, new) for key, item in value.items()}
    return value


def _numbers(case: Case, chance: random.Random, few: list[tuple[int, Any]]) -> list[Variant]:
    found = []
    for new in NUMBERS:
        for _, sample in chance.sample(few, len(few)):
            count = [1 << 20]
            _replaced((sample.args, sample.kwargs), count, 0)
            there = (1 << 20) - count[0]
            if there:
                place = [chance.randrange(there)]
                args, kwargs = _replaced((sample.args, sample.kwargs), place, new)
                found.append(varied(f"number {new}", sample, (sample.input, args, kwargs)))
                break
    return found


def _indices(case: Case, chance: random.Random, few: list[tuple[int, Any]]) -> list[Variant]:
    """One element of an index tensor beyond an end."""
    found = []
    for value in (FAR, -FAR):

        def change(t: torch.Tensor, value: int = value) -> torch.Tensor:
            copy = t.clone()
            copy.view(-1)[chance.randrange(t.numel())] = value
            return copy

        for _, sample in chance.sample(few, len(few)):
            every = variants.tensors(sample)
            usable = [n for n, t in enumerate(every) if n and t.dtype in INDICES and t.numel()
                      and is_strided(t) and t.is_contiguous()]  # fmt: skip
            if usable:
                inputs = chosen(sample, {chance.choice(usable)}, change)
                found.append(varied(f"index {value}", sample, inputs))
                break
    return found


def _outputs(case: Case, chance: random.Random, few: list[tuple[int, Any]]) -> list[Variant]:
    """Outputs of other dtypes, and one on top of itself or of an input: as layouts has them."""
    found = layouts._out(case, chance, few)
    return [v for v in found if v.name not in ("out resized", "out transposed")]


def _devices(case: Case, chance: random.Random, few: list[tuple[int, Any]]) -> list[Variant]:
    """One tensor with dimensions stays on the CPU."""
    if case.session.device.type == "cpu" or case.session.expectations.host_arguments(case.cell):
        return []

    def act_with(number: int, sample: Any) -> variants.Act:
        def act(case: Case, inputs: Any, place: Place) -> Any:
            if place.device.type == "cpu":
                raise RuntimeError("Expected all tensors to be on the same device")
            numbers = iter(range(1 << 30))
            at_home = variants.tensors(sample)[number].detach()
            mixed = compare.mapped(inputs, lambda t: at_home if next(numbers) == number else t)
            return case.call(mixed)

        return act

    for _, sample in chance.sample(few, len(few)):
        every = variants.tensors(sample)
        usable = [n for n, t in enumerate(every) if t.dim() and t.numel()]
        if len(every) > 1 and len(usable) > 1:
            number = chance.choice(usable[1:])
            return [varied("mixed devices", sample, None, act_with(number, sample))]
    return []


@registry.aspect("op", "refusals")
def refusals(case: Case) -> None:
    chance = variants.source(case)
    few = variants.drawn(case, chance)
    found: list[Variant] = []
    if few:
        kinds = (_dtypes, _mixed_dtypes, _shapes, _numbers, _indices, _outputs, _devices)
        found = [variant for kind in kinds for variant in kind(case, chance, few)]
    variants.run(case, found)

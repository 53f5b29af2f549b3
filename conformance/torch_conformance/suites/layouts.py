# conformance/torch_conformance/suites/layouts.py: the aspect layouts: inputs, gradients and outputs as memory may hold them.
"""The CPU is given the same layouts; what it refuses must be refused, too."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

from torch_conformance import private_names as inside
from torch_conformance.cells import registry
from torch_conformance.cells.outcome import NotApplicable
from torch_conformance.device.capabilities import capabilities
from torch_conformance.suites import variants
from torch_conformance.suites.case import Case, outs
from torch_conformance.suites.sample_loop import Place
from torch_conformance.suites.variants import Gradients, Variant, Written, chosen, varied
from torch_conformance.tensors import compare
from torch_conformance.tensors.samples import channels_last, is_strided, upcast

Layout = Callable[[torch.Tensor, random.Random], torch.Tensor | None]
Make = Callable[[torch.Tensor, Any, torch.device], torch.Tensor]
OFFSET = 3
SLACK = 16  # the largest element has as many times the bytes of the smallest
OUT_DTYPES = 2  # drawn for each cell beside the wider one
WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.float32: torch.float64,
         torch.complex64: torch.complex128, torch.int32: torch.int64}  # fmt: skip
# Entries whose inputs are matrices of a kind that repeated values would take away.
MATRICES = ("linalg.", "cholesky", "lu", "qr", "svd", "geqrf", "ormqr", "triangular_solve", "logdet",
            "pinverse", "lobpcg", "pca_lowrank", "orgqr", "cov", "corrcoef", "nn.functional.gaussian",
            "masked.std", "masked.var", "std", "var", "inverse", "det")  # fmt: skip


def expanded(tensor: torch.Tensor, chance: random.Random, last: int = 0) -> torch.Tensor | None:
    dims = [d for d in range(tensor.dim() - last) if tensor.shape[d] > 1]
    if not dims:
        return None
    if chance.random() < 0.3 and not last:
        return tensor[(slice(0, 1),) * tensor.dim()].expand(tensor.shape)
    return tensor.narrow(chance.choice(dims), 0, 1).expand(tensor.shape)


def expanded_batch(tensor: torch.Tensor, chance: random.Random) -> torch.Tensor | None:
    return expanded(tensor, chance, 2)


def overlapping(tensor: torch.Tensor, chance: random.Random) -> torch.Tensor | None:
    if tensor.dim() < 2 or tensor.numel() < 2:
        return None
    return tensor.contiguous().as_strided(tensor.shape, (1,) * tensor.dim())


def stepped(tensor: torch.Tensor, chance: random.Random) -> torch.Tensor | None:
    if tensor.dim() == 0 or tensor.numel() == 0:
        return None
    wide = tensor.new_zeros([2 * n for n in tensor.shape])
    view = wide[(slice(None, None, 2),) * tensor.dim()]
    return view.copy_(tensor)


def offset(tensor: torch.Tensor, chance: random.Random) -> torch.Tensor | None:
    memory = tensor.new_zeros(OFFSET + tensor.numel() + 1)
    memory[OFFSET : OFFSET + tensor.numel()] = tensor.reshape(-1)
    return memory[OFFSET : OFFSET + tensor.numel()].view(tensor.shape)


def transposed(tensor: torch.Tensor, chance: random.Random) -> torch.Tensor | None:
    """Strides in the reverse order, behind an offset: what a flip would be if strides were signed."""
    if tensor.dim() < 2:
        return None
    turned = tuple(reversed(range(tensor.dim())))
    found = offset(tensor.permute(turned), chance)
    return None if found is None else found.permute(turned)


def zero_dim(tensor: torch.Tensor, chance: random.Random) -> torch.Tensor | None:
    return tensor.reshape(-1)[0] if tensor.numel() and tensor.dim() else None


def empty(tensor: torch.Tensor, chance: random.Random) -> torch.Tensor | None:
    return tensor.narrow(0, 0, 0) if tensor.dim() else None


def conj(tensor: torch.Tensor, chance: random.Random) -> torch.Tensor | None:
    return tensor.conj_physical().conj() if tensor.is_complex() else None


def neg(tensor: torch.Tensor, chance: random.Random) -> torch.Tensor | None:
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.dtype.itemsize == 1:
        return None
    return inside.neg_view(tensor.neg())


def zero(tensor: torch.Tensor, chance: random.Random) -> torch.Tensor | None:
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return None
    return inside.zero_tensor(tensor.shape, dtype=tensor.dtype)


def channels(tensor: torch.Tensor, chance: random.Random) -> torch.Tensor | None:
    return channels_last(tensor) if tensor.dim() in (4, 5) else None


SAME_VALUES: dict[str, Layout] = {
    "stepped": stepped, "offset": offset, "transposed": transposed, "conj": conj, "neg": neg,
    "channels last": channels, "expanded batch": expanded_batch,
}  # fmt: skip
OTHER_VALUES: dict[str, Layout] = {
    "expanded": expanded, "overlapping": overlapping, "zero dim": zero_dim, "empty": empty,
    "zero tensor": zero,
}  # fmt: skip


def laid(sample: Any, layout: Layout, chance: random.Random, wanted: set[int]) -> Any:
    """The sample's arguments with some tensors in a layout; None where it changes nothing."""
    changed = []

    def one(tensor: torch.Tensor) -> torch.Tensor:
        if not is_strided(tensor):
            return tensor
        found = layout(tensor.detach().resolve_conj().resolve_neg(), chance)
        if found is None:
            return tensor
        changed.append(found)
        return found.requires_grad_() if tensor.requires_grad else found

    inputs = chosen(sample, wanted, one)
    return inputs if changed else None


def _forward(case: Case, chance: random.Random, few: list[tuple[int, Any]]) -> list[Variant]:
    found = []
    names = SAME_VALUES if case.info.name.startswith(MATRICES) else SAME_VALUES | OTHER_VALUES
    for name, layout in names.items():
        for _, sample in chance.sample(few, len(few)):
            count = len(variants.tensors(sample))
            one = name in OTHER_VALUES and count > 1 and chance.random() < 0.5
            wanted = {chance.randrange(count)} if one else set(range(count))
            inputs = laid(sample, layout, chance, wanted)
            if inputs is not None:
                found.append(varied(name, sample, inputs))
                break
    return found


def _writing(make: Make, number: int, sample: Any,
             keeps: bool = True) -> variants.Act:  # fmt: skip
    """make gives the output for a tensor of the CPU's result and the carried inputs."""

    def act(case: Case, inputs: Any, place: Place) -> Any:

        expected, _ = case.reference(number, sample)
        given = outs(expected, lambda t: make(t, inputs, place.device))
        case.call(inputs, out=given)
        strides = [t.stride() for t in compare.leaves(given)] if keeps else None
        own = tuple(t.dtype for t in compare.leaves(expected))
        return Written(given, strides, own=own)

    return act


def _of_dtype(dtype: torch.dtype) -> Make:
    return lambda t, inputs, device: _roomy(t.numel(), dtype, device).view(t.shape)


def _roomy(count: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Zeros with memory behind them, for kernels that do not look at an output's dtype."""
    return torch.zeros(SLACK * (count + 1), dtype=dtype).to(device)[:count]


def _repeated(t: torch.Tensor, inputs: Any, device: torch.device) -> torch.Tensor:
    if t.numel() < 2:
        raise NotApplicable("an output of one element cannot overlap itself")
    return _roomy(t.numel(), t.dtype, device)[:1].view((1,) * t.dim()).expand(t.shape)


def _longer(t: torch.Tensor, inputs: Any, device: torch.device) -> torch.Tensor:
    return torch.zeros(t.numel() + 3, dtype=t.dtype).to(device)


def _turned(t: torch.Tensor, inputs: Any, device: torch.device) -> torch.Tensor:
    if t.dim() < 2:
        wide = torch.zeros([3 * n for n in t.shape], dtype=t.dtype).to(device)
        return wide[(slice(None, None, 3),) * t.dim()]
    memory = torch.zeros(tuple(reversed(t.shape)), dtype=t.dtype).to(device)
    return memory.permute(tuple(reversed(range(t.dim()))))


def _over_input(t: torch.Tensor, inputs: Any, device: torch.device) -> torch.Tensor:
    """An output that shares all but one of its elements with the first input."""
    first = next(compare.leaves(inputs), None)
    if first is None or first.shape != t.shape or first.dtype != t.dtype or t.dim() == 0:
        raise NotApplicable("no output of this kind can lie on the first input")
    if first.numel() < 2 or not first.is_contiguous() or first.shape[-1] < 2:
        raise NotApplicable("the first input is too short to be shared in part")
    memory = torch.zeros(first.numel() + 1, dtype=t.dtype).to(first.device)
    memory[:-1] = first.reshape(-1)
    first.set_(memory.untyped_storage(), 0, first.shape, first.stride())
    return memory[1:].view(t.shape)


def _out(case: Case, chance: random.Random, few: list[tuple[int, Any]]) -> list[Variant]:
    if not case.info.supports_out:
        return []
    able = capabilities(case.session.device)
    kinds = [d for d in variants.DTYPES if d != case.dtype and able.supports(d)]
    wider = [d for d in kinds if d == WIDER.get(case.dtype)]
    kinds = wider + chance.sample(kinds, min(OUT_DTYPES, len(kinds)))
    makers = [(f"out {str(d).removeprefix('torch.')}", _of_dtype(d), True, False) for d in kinds]
    makers += [("out overlapping", _repeated, True, True), ("out resized", _longer, False, False),
               ("out transposed", _turned, True, False),
               ("out over input", _over_input, True, True)]  # fmt: skip
    found = []
    for name, make, keeps, undefined in makers:
        number, sample = chance.choice(few)
        act = _writing(make, number, sample, keeps)
        found.append(varied(name, sample, None, act, undefined=undefined))
    return found


def _inplace(case: Case, chance: random.Random, few: list[tuple[int, Any]]) -> list[Variant]:
    def change(case: Case, inputs: Any, place: Place) -> Any:
        first, args, kwargs = inputs
        result = case.info.inplace_variant(first, *args, **kwargs)
        return Written(first, first.stride(), result is first)

    found = []
    usable = [pair for pair in few if not pair[1].broadcasts_input]
    if case.info.inplace_variant is None or not usable:
        return []
    for name, layout in (("stepped", stepped), ("transposed", transposed), ("expanded", expanded)):
        _, sample = chance.choice(usable)
        inputs = laid(sample, layout, chance, {0})
        if inputs is not None:
            found.append(varied(f"in place {name}", sample, inputs, change))
    return found


def _cotangent(layout: str, sample: Any) -> variants.Act:
    """Gradients for a gradient of the outputs in a layout."""

    def grown(tensor: torch.Tensor) -> torch.Tensor:
        values = torch.arange(1, tensor.numel() + 1, dtype=torch.float64) % 7 - 2.5
        flat = values.reshape(tensor.shape).to(tensor.dtype)
        if layout == "expanded":
            return flat[(slice(0, 1),) * flat.dim()].expand(flat.shape) if flat.numel() else flat
        made = (transposed if layout == "transposed" else stepped)(flat, random.Random(0))
        return flat if made is None else made

    def differentiate(case: Case, inputs: Any) -> Any:
        outputs = sample.output_process_fn_grad(case.call(inputs))
        outputs = [t for t in compare.leaves(outputs) if t.requires_grad]
        wanted = [t for t in {id(t): t for t in compare.leaves(inputs)}.values() if t.requires_grad]
        if not outputs or not wanted or not all(map(is_strided, outputs)):
            raise NotApplicable("nothing of this sample is differentiable")
        given = [variants.moved(grown(t), t.device) for t in outputs]
        return torch.autograd.grad(outputs, wanted, given, allow_unused=True)

    def act(case: Case, inputs: Any, place: Place) -> Any:
        return Gradients(differentiate(case, inputs), lambda: differentiate(case, upcast(inputs)))

    return act


def _backward(case: Case, chance: random.Random) -> list[Variant]:
    if case.dtype not in case.info.supported_backward_dtypes("cpu"):
        return []
    found = []
    few = variants.drawn(case, chance, requires_grad=True)
    for name in ("expanded", "stepped", "transposed"):
        if not few:
            return []
        _, sample = chance.choice(few)
        inputs = None
        if name == "transposed":
            inputs = laid(sample, transposed, chance, set(range(len(variants.tensors(sample)))))
        found.append(varied(f"gradient {name}", sample, inputs, _cotangent(name, sample)))
    return found


@registry.aspect("op", "layouts")
def layouts(case: Case) -> None:
    chance = variants.source(case)
    few = variants.drawn(case, chance)
    found = _backward(case, chance)
    if few:
        found += _forward(case, chance, few) + _out(case, chance, few)
        found += _inplace(case, chance, few)
    variants.run(case, found)

# conformance/torch_conformance/tensors/ties.py: results that say where one of several equal elements was.
"""Which of equal elements an order puts first is open, unless it is asked to be stable.

PyTorch leaves it open for the entries here, and its own devices differ. Positions are then compared
by the elements that they name, gradients by their sums over equal elements of a line.
"""

from __future__ import annotations

from typing import Any

import torch

from torch_conformance.tensors import compare

# entry -> where dim stands among its arguments, and whether the positions are those of all elements.
_DIM = {
    "sort": (0, True), "argsort": (0, True), "msort": (-1, True), "topk": (1, False),
    "kthvalue": (1, False), "mode": (0, False), "median": (0, False), "nanmedian": (0, False),
}  # fmt: skip


def _line(name: str, inputs: Any) -> tuple[torch.Tensor, int, bool] | None:
    """The elements, the dimension of the lines, and whether all positions are given."""
    first, args, kwargs = inputs
    if name not in _DIM or not isinstance(first, torch.Tensor) or kwargs.get("stable"):
        return None
    place, every = _DIM[name]
    dim = kwargs.get("dim", args[place] if 0 <= place < len(args) else 0 if place < 0 else -1)
    if isinstance(dim, bool) or not isinstance(dim, int) or first.dim() == 0:
        return None
    line = first.int_repr() if first.is_quantized else first.detach()
    return line, dim % first.dim(), every


def _named(line: torch.Tensor, dim: int, positions: torch.Tensor) -> torch.Tensor:
    if positions.dim() < line.dim():
        positions = positions.unsqueeze(dim)
    return line.gather(dim, positions)


def same_elements(name: str, actual: Any, expected: Any, inputs: Any) -> bool:
    """Whether the results differ only in the positions of equal elements."""
    found = _line(name, inputs)
    ours = [t.detach().cpu() for t in compare.leaves(actual)]
    theirs = [t.detach() for t in compare.leaves(expected)]
    if (
        found is None
        or len(ours) != (1 if name == "argsort" else 2)
        or compare.metadata_difference(actual, expected)
    ):
        return False
    line, dim, every = found
    *values, positions = ours
    if positions.dtype != torch.int64 or bool((positions < 0).any()):
        return False
    if bool((positions >= line.shape[dim]).any()):
        return False
    if any(not _equal(v, e) for v, e in zip(values, theirs[:-1], strict=True)):
        return False
    if every and not torch.equal(positions.sort(dim).values, theirs[-1].sort(dim).values):
        return False
    return _equal(_named(line, dim, positions), _named(line, dim, theirs[-1]))


def same_sums(name: str, actual: Any, expected: Any, inputs: Any, tolerance: Any) -> str | None:
    """The difference between the sums of the first gradient over equal elements of each line."""
    found = _line(name, inputs)
    ours, theirs = next(compare.leaves(actual), None), next(compare.leaves(expected), None)
    if found is None or ours is None or theirs is None:
        return "not a result of positions"
    line, dim, _ = found
    sums = [_sums(line.movedim(dim, -1), g.detach().cpu().movedim(dim, -1)) for g in (ours, theirs)]
    return compare.difference(sums[0], sums[1], tolerance, "gradient summed over equal elements")


def _sums(rows: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """For each row the sums over its equal elements, at the front of the row."""
    flat, values = rows.reshape(-1, rows.shape[-1]), gradient.reshape(-1, rows.shape[-1])
    found = torch.zeros(values.shape, dtype=torch.float64)
    for into, row, parts in zip(found, flat, values, strict=True):
        into.index_add_(0, row.unique(return_inverse=True)[1], parts.double())
    return found.to(gradient.dtype)


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())

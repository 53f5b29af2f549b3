# conformance/torch_conformance/tensors/compare.py: compares what the device gave with what the CPU gave.
"""Differences are texts; None means that there is none."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from torch_conformance import private_names as inside

# Comparison classes of PyTorch whose tolerances are about values, not about a compiler's rewriting.
VALUE_TESTS = ("TestCommon", "TestUnaryUfuncs", "TestBinaryUfuncs", "TestReductions",
               "TestBwdGradients", "TestModule", "TestOptimRenewed", None)  # fmt: skip
TIMES = 4  # how much farther than the CPU's a result may be from the float64 one
INTEGER_LIKE = (torch.uint16, torch.uint32, torch.uint64)


class Tolerance(NamedTuple):
    """Allowed: absolute + relative * |expected|."""

    relative: float
    absolute: float

    def widened(self, other: Tolerance) -> Tolerance:
        return Tolerance(max(self[0], other[0]), max(self[1], other[1]))


def default_tolerance(dtype: torch.dtype) -> Tolerance:
    if not (dtype.is_floating_point or dtype.is_complex):
        return Tolerance(0, 0)
    if dtype.itemsize == 1:
        return Tolerance(0.13, 0.02)  # float8: one unit in the last of three bits
    return Tolerance(*inside.default_tolerances(dtype))


def tolerances(info: Any, device_type: str) -> dict[torch.dtype, Tolerance]:
    """What the database itself allows an entry beyond the defaults of torch.testing."""
    found: dict[torch.dtype, Tolerance] = {}
    for row in info.decorators:
        inner = getattr(row, "decorators", [row])
        if getattr(row, "cls_name", None) not in VALUE_TESTS:
            continue
        if getattr(row, "device_type", None) not in (None, "cpu", device_type):
            continue
        for item in inner:
            if isinstance(item, inside.toleranceOverride):
                new = {d: Tolerance(t.rtol, t.atol) for d, t in item.d.items()}
            elif isinstance(item, inside.precisionOverride):
                new = {d: Tolerance(0, t) for d, t in item.d.items()}
            else:
                continue
            for dtype, allowed in new.items():
                found[dtype] = found.get(dtype, default_tolerance(dtype)).widened(allowed)
    return found


def leaves(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of a result in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, torch.nn.utils.rnn.PackedSequence):
        yield value.data


def mapped(value: Any, function: Callable[[torch.Tensor], Any]) -> Any:
    """The same structure with function applied to each tensor."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, torch.Size):
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(item, function) for item in value))
    if isinstance(value, tuple) and type(value) is not tuple:
        return tuple(mapped(item, function) for item in value)
    if isinstance(value, list | tuple):
        return type(value)(mapped(item, function) for item in value)
    if isinstance(value, dict):
        return {key: mapped(item, function) for key, item in value.items()}
    return value


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach()
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.dtype.is_floating_point and tensor.dtype.itemsize == 1:
        return tensor.float()
    if tensor.dtype == torch.complex32:
        return tensor.to(torch.complex64)
    if tensor.dtype in INTEGER_LIKE:
        return tensor.view(getattr(torch, f"int{tensor.dtype.itemsize * 8}"))
    return tensor


def _tensors(
    actual: torch.Tensor, expected: torch.Tensor, allowed: dict[torch.dtype, Tolerance]
) -> str | None:
    if actual.shape != expected.shape:
        return f"shape {tuple(actual.shape)} instead of {tuple(expected.shape)}"
    if actual.dtype != expected.dtype:
        return f"dtype {actual.dtype} instead of {expected.dtype}"
    if actual.layout != expected.layout:
        return f"layout {actual.layout} instead of {expected.layout}"
    dtype = expected.dtype
    actual, expected = _plain(actual), _plain(expected)
    if expected.layout == torch.strided and not expected.is_nested and actual.equal(expected):
        return None
    tolerance = allowed.get(dtype) or default_tolerance(dtype)
    try:
        torch.testing.assert_close(
            actual, expected, rtol=tolerance.relative, atol=tolerance.absolute, equal_nan=True,
            check_device=False, check_stride=False,
        )  # fmt: skip
    except AssertionError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        # assert_close's frame refers to itself, and by its callers' frames to the device's tensors.
        traceback.clear_frames(error.__traceback__)
        return " ".join(lines)
    return None


def _scalars_equal(actual: Any, expected: Any) -> bool:
    if isinstance(expected, float | complex) and isinstance(actual, float | complex | int):
        found = torch.tensor(actual, dtype=torch.complex128)
        return bool(found.isclose(torch.tensor(expected, dtype=torch.complex128), 1e-5, 1e-6,
                                  equal_nan=True))  # fmt: skip
    try:
        return bool(actual == expected)
    except (RuntimeError, TypeError, ValueError):
        return True


def difference(
    actual: Any, expected: Any, allowed: dict[torch.dtype, Tolerance], where: str = "result"
) -> str | None:
    """How a result differs from the expected one in structure, shape, dtype or value."""
    if isinstance(expected, torch.Tensor):
        if not isinstance(actual, torch.Tensor):
            return f"{where} is a {type(actual).__name__} instead of a tensor"
        text = _tensors(actual, expected, allowed)
        return f"{where}: {text}" if text else None
    if isinstance(expected, torch.nn.utils.rnn.PackedSequence):
        return difference(actual.data, expected.data, allowed, where)
    if isinstance(expected, list | tuple):
        if isinstance(actual, list | tuple) and len(actual) == len(expected):
            pairs = enumerate(zip(actual, expected, strict=True))
            texts = (difference(a, e, allowed, f"{where}[{i}]") for i, (a, e) in pairs)
            return next(filter(None, texts), None)
    elif isinstance(expected, dict):
        if isinstance(actual, dict) and actual.keys() == expected.keys():
            named = expected.items()
            texts = (difference(actual[k], e, allowed, f"{where}.{k}") for k, e in named)
            return next(filter(None, texts), None)
    elif _scalars_equal(actual, expected):
        return None
    return f"{where} is {_brief(actual)} instead of {_brief(expected)}"


def metadata_difference(actual: Any, expected: Any) -> str | None:
    """As difference, but for shapes and dtypes alone."""
    meta = [mapped(v, lambda t: (tuple(t.shape), str(t.dtype))) for v in (actual, expected)]
    ours, theirs = (v if isinstance(v, tuple | list | dict) else type(v).__name__ for v in meta)
    return None if ours == theirs else f"shape and dtype {_brief(ours)} instead of {_brief(theirs)}"


def no_farther(
    actual: Any, expected: Any, exact: Any, allowed: dict[torch.dtype, Tolerance],
    others: Sequence[tuple[Any, Any]] = (),
) -> bool:  # fmt: skip
    """Whether the device is about as near to the float64 result as the CPU: see _as_near.

    others: what the CPU and float64 gave for other numbers of the same kind. Few elements of one
    result may have small errors by luck.
    """
    ours, theirs, truth = (list(leaves(v)) for v in (actual, expected, exact))
    more = [(list(leaves(e)), list(leaves(x))) for e, x in others]
    counts = {len(one) for pair in [(ours, theirs), (truth, theirs), *more] for one in pair}
    if len(counts) != 1:
        return False
    return all(
        _as_near(*three, allowed, [(e[i], x[i]) for e, x in more])
        for i, three in enumerate(zip(ours, theirs, truth, strict=True))
    )


Pairs = list[tuple[torch.Tensor, torch.Tensor]]


def _error_up_to(size: torch.Tensor, known: Pairs) -> torch.Tensor:
    """For each size, the largest error of those known, as size and error, up to about twice it (or
    below 1)."""
    if size.numel() == 0:
        return size
    sizes, errors = (torch.cat([t.reshape(-1) for t in some]) for some in zip(*known, strict=True))
    flat = size.nan_to_num(nan=torch.inf).reshape(-1)
    ordered, order = sizes.nan_to_num(nan=torch.inf).sort()
    largest = errors.nan_to_num(nan=0.0, posinf=0.0)[order].cummax(0).values
    place = torch.searchsorted(ordered, 2 * flat + 1, right=True) - 1
    return largest[place].reshape(size.shape)


def _as_near(
    a: torch.Tensor, e: torch.Tensor, x: torch.Tensor, allowed: dict[torch.dtype, Tolerance],
    others: Pairs,
) -> bool:  # fmt: skip
    if a.shape != e.shape or a.dtype != e.dtype or e.shape != x.shape or a.layout != torch.strided:
        return False
    dtype = e.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        return a.cpu().equal(e)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    a, e, x = (_plain(t).to(wide) for t in (a, e, x))
    known = [(x.abs(), (e - x).abs())]
    for cpu, exact in others:
        truth = _plain(exact).to(wide)
        known.append((truth.abs(), (_plain(cpu).to(wide) - truth).abs()))
    relative, absolute = allowed.get(dtype) or default_tolerance(dtype)
    bound = absolute + relative * x.abs() + TIMES * _error_up_to(x.abs(), known)
    limit = torch.finfo(dtype).max
    overflow = (x.abs() > limit) & ((a == e) | a.isnan() | (a.abs() > limit))
    same = (a == e) | (a.isnan() & e.isnan()) | (a == x)
    return bool((same | overflow | ((a - x).abs() <= bound)).all())


def _brief(value: Any) -> str:
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 200 else text[:197] + "..."

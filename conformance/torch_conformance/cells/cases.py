# conformance/torch_conformance/cells/cases.py: lists the cells of a run: suite x entry x dtype x aspect.
"""A cell is the smallest thing with a result; all samples of its entry run in it.

The listing reads the metadata of PyTorch's databases only, so counting needs no device.
"""

from __future__ import annotations

import difflib
import fnmatch
import functools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from torch_conformance import SetupError
from torch_conformance import private_names as inside

SUITES = ("op", "module", "optim")
ANY = "any"  # the dtype of a cell whose inputs choose their dtypes themselves
LAYOUTS = ("view", "noncontiguous", "channels_last", "empty", "zero_dim")
ASPECTS = {
    "op": ("forward", "backward", "out", "inplace", *LAYOUTS, "layouts", "refusals", "autocast",
           "errors"),
    "module": ("forward", "backward", "noncontiguous", "channels_last", "autocast", "errors"),
    "optim": ("step", "foreach", "fused", "errors"),
}  # fmt: skip
AUTOCAST_DTYPE = "float32"
OPTIM_DTYPES = ("float32", "float64")


class Cell(NamedTuple):
    suite: str
    entry: str
    dtype: str
    aspect: str


def from_tests(name: str) -> Any:
    """What torch's own tests have under this name of private_names.py; SetupError says what to
    install where their needs are missing."""
    try:
        return getattr(inside, name)
    except inside.MissingName as error:
        raise SetupError(f"{error}; official wheels of PyTorch have it") from error
    except ModuleNotFoundError as error:
        raise SetupError(
            f"PyTorch's test databases need the package '{error.name}', which is missing: "
            "pip install expecttest hypothesis"
        ) from error


@functools.cache
def entries(suite: str) -> dict[str, Any]:
    """Name -> OpInfo, ModuleInfo or OptimizerInfo, as PyTorch's database lists them."""
    databases = {"op": "op_db", "module": "module_db", "optim": "optim_db"}
    name = "full_name" if suite == "op" else "name"
    return {getattr(info, name): info for info in from_tests(databases[suite])}


def dtype_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _dtypes(suite: str, info: Any) -> list[str]:
    if suite == "optim":
        return list(OPTIM_DTYPES)
    return sorted(map(dtype_name, info.supported_dtypes("cpu")))


def _exists(suite: str, info: Any, dtype: str, aspect: str) -> bool:
    if aspect == "autocast":
        return dtype == AUTOCAST_DTYPE
    if suite == "optim":
        return aspect == "step" or aspect in info.supported_impls
    if suite == "module":
        return True
    if aspect == "backward":
        return dtype in map(dtype_name, info.supported_backward_dtypes("cpu"))
    if aspect == "out":
        return bool(info.supports_out)
    return aspect != "inplace" or info.inplace_variant is not None


def _has_errors(suite: str, info: Any) -> bool:
    offered = {"op": "error_inputs_func", "module": "module_error_inputs_func",
               "optim": "optim_error_inputs_func"}  # fmt: skip
    return getattr(info, offered[suite]) is not None


def cells_of(suite: str, entry: str) -> Iterator[Cell]:
    info = entries(suite)[entry]
    for dtype in _dtypes(suite, info):
        for aspect in ASPECTS[suite]:
            if aspect != "errors" and _exists(suite, info, dtype, aspect):
                yield Cell(suite, entry, dtype, aspect)
    if _has_errors(suite, info):
        yield Cell(suite, entry, ANY, "errors")


def _chosen(kind: str, wanted: list[str] | None, known: Iterable[str]) -> set[str]:
    """The known names that a list of names and shell patterns chooses; all for None."""
    names = sorted(set(known))
    if wanted is None:
        return set(names)
    found: set[str] = set()
    for pattern in wanted:
        matches = fnmatch.filter(names, pattern)
        if not matches:
            near = difflib.get_close_matches(pattern, names, 5, 0.5)
            hint = (
                f"near to it: {', '.join(near)}" if near else f"there are: {', '.join(names[:20])}"
            )
            raise SetupError(f"no {kind} is called '{pattern}'; {hint}")
        found.update(matches)
    return found


def select(
    suites: list[str] | None = None,
    ops: list[str] | None = None,
    dtypes: list[str] | None = None,
    aspects: list[str] | None = None,
    shard: tuple[int, int] = (1, 1),
) -> list[Cell]:
    """The cells of a run in their order; shard (k, n) takes the k-th of n parts, from 1.

    Parts are cut between entries' dtypes, so that cells which share samples stay together.
    """
    chosen_suites = _chosen("suite", suites, SUITES)
    every = [(s, e) for s in SUITES if s in chosen_suites for e in entries(s)]
    names = _chosen("entry", ops, (entry for _, entry in every))
    cells = [c for s, e in every if e in names for c in cells_of(s, e)]
    kinds = _chosen("aspect", aspects, (a for s in chosen_suites for a in ASPECTS[s]))
    types = _chosen("dtype", dtypes, {c.dtype for s, e in every for c in cells_of(s, e)})
    cells = [c for c in cells if c.aspect in kinds and c.dtype in types | {ANY}]
    groups = group(cells)
    part, parts = shard
    return [cell for cells in groups[part - 1 :: parts] for cell in cells]


def group(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cells that share their samples: one job of a worker."""
    jobs: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        jobs.setdefault(cell[:3], []).append(cell)
    return list(jobs.values())

# conformance/torch_conformance/cells/expectations.py: which cells are skipped or expected to fail, and why.
"""The one list: expectations.toml beside this file, then what the device's package states, then the files
that a run is given, then upstream's marks.

Rows: [[expectation]] with suite, entry, dtype, aspect, device (shell patterns, default "*"; the
device "accelerator" is each one but the CPU), kind and reason. Kinds: "skip" (not run), "xfail" (must fail), "values" (only shapes and dtypes are
compared), "host_arguments" (tensors behind the first argument stay on the CPU), "late_errors" (what
the CPU refuses at the call may be refused at the next synchronisation, in other words),
"device_alone" (the fuzz keeps its calls from the CPU, which they would damage), "dense_arguments"
(the fuzz gives the CPU contiguous tensors, which its kernel takes on trust). In the suite "fuzz" the
entry is a subject, the aspect that of a finding, message a pattern of its text, and "xfail" lists
a finding without demanding it. PyTorch's own marks for its CPU tests excuse a failure (no crash)
where they give a reason, and demand none.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from torch_conformance import SetupError
from torch_conformance.cells import cases
from torch_conformance.cells.cases import Cell
from torch_conformance.cells.outcome import Outcome
from torch_conformance.device import package

BUILT_IN = Path(__file__).with_name("expectations.toml")
KINDS = ("skip", "xfail", "values", "host_arguments", "late_errors", "device_alone",
         "dense_arguments")  # fmt: skip
CELL = ("suite", "entry", "dtype", "aspect")
PATTERNS = (*CELL, "device", "message")
ACCELERATOR = "accelerator"
BAD = ("fail", "error", "crash", "hang")
# Aspect -> the upstream tests whose marks excuse it.
UPSTREAM = {
    "op": {
        **{aspect: ["TestCommon.test_compare_cpu"]
           for aspect in ("forward", "backward", "view", "channels_last", "empty", "zero_dim")},
        "out": ["TestCommon.test_out", "TestCommon.test_out_warning"],
        "inplace": ["TestCommon.test_variant_consistency_eager"],
        "noncontiguous": ["TestCommon.test_noncontiguous_samples", "TestCommon.test_compare_cpu"],
        "errors": ["TestCommon.test_errors"],
    },
    "module": {
        "forward": ["TestModule.test_cpu_gpu_parity"],
        "backward": ["TestModule.test_cpu_gpu_parity"],
        "noncontiguous": ["TestModule.test_non_contiguous_tensors"],
        "channels_last": ["TestModule.test_memory_format"],
        "errors": ["TestModule.test_errors"],
    },
    "optim": {
        "foreach": ["TestOptimRenewed.test_foreach_matches_forloop"],
        "fused": ["TestOptimRenewed.test_fused_matches_forloop"],
        "errors": ["TestOptimRenewed.test_errors"],
    },
}  # fmt: skip


class Row(NamedTuple):
    kind: str
    reason: str
    matches: Callable[[str], object]  # "suite|entry|dtype|aspect"
    message: str = "*"


def _toml(path: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SetupError(f"cannot read the expectations {path}: {error}") from error


def _patterns(row: dict[str, Any], name: str) -> list[str]:
    given = row.get(name, "*")
    return given if isinstance(given, list) else [given]


def dropped_launches(files: list[Path]) -> list[dict[str, str]]:
    """The environments of [[dropped_launches]]: in each the device drops its kernel launches."""
    found = []
    for path in files:
        for number, one in enumerate(_toml(path).get("dropped_launches", []), 1):
            if not one or not all(isinstance(value, str) for value in one.values()):
                raise SetupError(
                    f"{path}: dropped_launches {number} ({one}) needs environment variables with "
                    "their values as strings"
                )
            found.append(one)
    return found


def _is(device: str, pattern: str) -> bool:
    return device != "cpu" if pattern == ACCELERATOR else fnmatch.fnmatchcase(device, pattern)


def _rows(path: Path, device: str) -> list[Row]:
    rows = []
    for number, row in enumerate(_toml(path).get("expectation", []), 1):
        unknown = row.keys() - {*PATTERNS, "kind", "reason"}
        if unknown or row.get("kind") not in KINDS or not str(row.get("reason", "")).strip():
            raise SetupError(
                f"{path}: row {number} ({row}) needs kind = one of {', '.join(KINDS)}, a reason, "
                f"and of {', '.join(PATTERNS)} those that it narrows down"
            )
        if not any(_is(device, name) for name in _patterns(row, "device")):
            continue
        for parts in itertools.product(*(_patterns(row, name) for name in CELL)):
            pattern = r"\|".join(fnmatch.translate(p)[4:-3] for p in parts)
            rows.append(Row(row["kind"], row["reason"], re.compile(pattern).fullmatch,
                            row.get("message", "*")))  # fmt: skip
    return rows


class Expectations:
    """The rows that hold for one device; a later file's row wins."""

    def __init__(self, rows: list[Row], device: str) -> None:
        self.rows = rows
        self.device = device

    @classmethod
    def built_in(
        cls, device: str, more: list[Path] | None = None, own: list[Path] | None = None
    ) -> Expectations:
        """more: files that a run is given. own: those of the device's package, which None looks for."""
        files = [BUILT_IN, *(package.files(device) if own is None else own), *(more or [])]
        return cls([row for path in files for row in _rows(path, device)], device)

    def find(self, cell: Cell) -> Row | None:
        return self._last(cell, ("skip", "xfail", "values"))

    def host_arguments(self, cell: Cell) -> bool:
        return self._last(cell, ("host_arguments",)) is not None

    def late_errors(self, cell: Cell) -> bool:
        return self._last(cell, ("late_errors",)) is not None

    def device_alone(self, cell: Cell) -> str | None:
        row = self._last(cell, ("device_alone",))
        return row.reason if row else None

    def dense_arguments(self, cell: Cell) -> bool:
        return self._last(cell, ("dense_arguments",)) is not None

    def excuse(self, cell: Cell, message: str) -> str | None:
        """The reason of the row that lists a finding of the fuzz with such a message."""
        row = self._last(cell, ("xfail",), message)
        return row.reason if row else None

    def _last(self, cell: Cell, kinds: tuple[str, ...], message: str | None = None) -> Row | None:
        key = "|".join(cell)
        rows = (row for row in reversed(self.rows) if row.kind in kinds and row.matches(key))
        told = (r for r in rows if message is None or fnmatch.fnmatchcase(message, r.message))
        return next(told, None)

    def judged(self, cell: Cell, outcome: Outcome, upstream: bool = True) -> Outcome:
        """The outcome after what was expected: xfail, xpass, or as it was."""
        row = self.find(cell)
        if row is not None and row.kind == "xfail":
            if outcome.status in BAD:
                outcome.status, outcome.reason = "xfail", row.reason
            elif outcome.status == "pass":
                outcome.status, outcome.reason = "xpass", row.reason
                outcome.message = "passes, though a row expects it to fail: take the row out"
        elif outcome.status in ("fail", "error") and upstream:
            reason = upstream_mark(cell, self.device)
            if reason:
                outcome.status, outcome.reason = "xfail", reason
        return outcome


def _words(mark: Any) -> str | None:
    """The reason in a mark that skips; None where upstream gave none: that excuses nothing."""
    if not getattr(mark, "__qualname__", "").startswith("skip."):
        return None  # an expected failure gives no reason
    words = [c.cell_contents for c in getattr(mark, "__closure__", None) or ()]
    return next((w for w in words if isinstance(w, str) and w != "Skipped!"), None)


def upstream_mark(cell: Cell, device: str) -> str | None:
    """PyTorch's own reason why its CPU test of this aspect is skipped or fails."""
    import torch

    if cell.suite not in UPSTREAM:
        return None
    info = cases.entries(cell.suite)[cell.entry]
    dtype = getattr(torch, cell.dtype, None)
    for test in UPSTREAM[cell.suite].get(cell.aspect, []):
        owner, name = test.split(".")
        for row in info.decorators:
            if hasattr(row, "is_active") and any(
                row.is_active(owner, name, kind, dtype, {}) for kind in ("cpu", device)
            ):
                for words in filter(None, map(_words, row.decorators)):
                    return f"upstream's {test}: {words}"
    return None

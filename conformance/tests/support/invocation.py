# conformance/tests/support/invocation.py: runs the command torch-conformance as a user does, for the tests.
from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


@dataclass
class Finished:
    code: int
    out: str
    err: str
    folder: Path

    def results(self) -> dict[str, Any]:
        return json.loads((self.folder / "results.json").read_text())

    def statuses(self) -> dict[str, str]:
        """Entry and aspect -> status."""
        return {f"{c['entry']} {c['aspect']}": c["status"] for c in self.results()["cells"]}


def environment(**more: str) -> dict[str, str]:
    """The tests' folder can be imported from, and `first` wins over what is installed."""
    paths = [more.pop("first", ""), str(HERE), os.environ.get("PYTHONPATH", ""),
             more.pop("PYTHONPATH", "")]  # fmt: skip
    return os.environ | more | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def command(folder: Path, *arguments: str) -> list[str]:
    plain = ["--workers", "2", "--no-page", "--out", str(folder)]
    return [sys.executable, "-m", "torch_conformance", *plain, *arguments]


def run(folder: Path, *arguments: str, limit: float = 280, **variables: str) -> Finished:
    ran = subprocess.run(
        command(folder, *arguments), env=environment(**variables),
        capture_output=True, text=True, timeout=limit,
    )  # fmt: skip
    return Finished(ran.returncode, ran.stdout, ran.stderr, folder)


def fuzz(folder: Path, *arguments: str, limit: float = 280) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "torch_conformance", "fuzz", "--no-page", "--out"]
    ran = subprocess.run(
        [*command, str(folder), "--workers", "2", *arguments], env=environment(),
        capture_output=True, text=True, timeout=limit,
    )  # fmt: skip
    return ran.returncode, ran.stdout, ran.stderr

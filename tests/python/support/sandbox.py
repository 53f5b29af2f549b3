"""Fresh interpreters and C libraries made for one test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
NAME = os.environ.get("GRAFT_TEST_DEVICE", "graft")
# For code of interpret: the result of work, or its error with the class, as text.
TOLD = """
def told(work):
    try:
        return repr(work())
    except Exception as error:
        return f"{type(error).__name__}: {error}"
"""


@dataclass
class Ran:
    """What a fresh interpreter printed and how it ended."""

    code: int
    out: str
    err: str

    def good(self) -> Ran:
        assert self.code == 0, f"exit code {self.code}\n{self.out}\n{self.err}"
        return self

    def value(self) -> Any:
        """The last line of the output, as JSON."""
        return json.loads(self.good().out.strip().splitlines()[-1])


def interpret(code: str, timeout: float = 120, **environment: str | None) -> Ran:
    """Runs code in a fresh interpreter; an environment value of None unsets the variable."""
    merged = {**os.environ, "DEVICE": NAME, **environment}
    clean = {k: v for k, v in merged.items() if v is not None}
    script = "import json, os, sys, torch\nD = os.environ['DEVICE']\n" + textwrap.dedent(code)
    ran = subprocess.run(
        [sys.executable, "-c", script], env=clean, timeout=timeout, capture_output=True, text=True
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def program(path: str) -> str:
    """Code for interpret that runs the program in a file, named by its path in the repository.

    It finds the device's name in the variable DEVICE.
    """
    return f"import runpy\nrunpy.run_path({str(ROOT / path)!r}, run_name='__main__')\n"


def build_c(path: Path, source: str, *flags: str) -> str:
    """Compiles C against driver.h to a library; returns its absolute path."""
    path.with_suffix(".c").write_text(source)
    command = ["cc", "-shared", "-fPIC", f"-I{ROOT}/include", f"-I{ROOT}/tests/drivers", *flags]
    subprocess.run([*command, "-o", str(path), str(path.with_suffix(".c"))], check=True)
    return str(path)


def doctor(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The doctor of this interpreter, with these variables beside those of the environment."""
    return subprocess.run(
        [sys.executable, "-m", "torch_graft", "doctor", *options], env=os.environ | environment,
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip

"""Runs tests with a limit of time, and reads from what they print which test failed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

BEGAN = re.compile(
    r"^(?:\[ RUN      \] (\S+)|(tests/[^\n]*?::[^\n]*?)(?: [A-Z]{5,}\b.*)?)\s*$", re.M
)
PASSED = re.compile(r"^(?:\[       OK \] |tests/[^\n]*::[^\n]* PASSED\b)", re.M)
FAILED = re.compile(
    r"^(?:\[  FAILED  \] (\w[\w/]*\.[\w/]+)|(tests/[^\n]*?::[^\n]*?) (?:FAILED|ERROR)\b)", re.M
)


@dataclass(frozen=True)
class Ran:
    """How a run of tests ended."""

    code: int | None  # negative: the signal that ended it; None: it ran past its limit
    passed: int
    failed: tuple[str, ...]
    last: str  # the test that began last; empty if none did

    @property
    def good(self) -> bool:
        return self.code == 0 and self.passed > 0 and not self.failed

    @property
    def found_by(self) -> str:
        """What tells that something is wrong; empty if nothing does, or if no test ran."""
        if self.good or not self.last:
            return ""
        if self.code is None:
            return f"{self.last} (ran past its limit)"
        if self.failed:
            more = f" and {len(self.failed) - 1} more" if len(self.failed) > 1 else ""
            end = f", then signal {-self.code}" if self.code < 0 else ""
            return f"{self.failed[0]}{more}{end}"
        if self.code == 0:
            return ""
        how = f"signal {-self.code}" if self.code < 0 else f"exit status {self.code}"
        return f"{self.last} ({how})"


def names(pattern: re.Pattern[str], text: str) -> list[str]:
    found = [one or other for one, other in pattern.findall(text)]
    return list(dict.fromkeys(name.rpartition("::")[2] for name in found))


def read(code: int | None, text: str) -> Ran:
    """text: what GoogleTest, or pytest with --verbose, printed."""
    began = names(BEGAN, text)
    return Ran(
        code, len(PASSED.findall(text)), tuple(names(FAILED, text)), began[-1] if began else ""
    )


def run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path, limit_s: float
) -> Ran:
    """Runs the command and ends every process of its group with it; log gets what it prints."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as out:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        code: int | None
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            stop(process)
    return read(code, log.read_text(errors="replace"))


def stop(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):  # all of them ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()

"""Who called a slot, from what tests/drivers/tracing.cpp writes: names from the build's symbol tables."""

from __future__ import annotations

import bisect
import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sandbox import ROOT

PYTORCH = "PyTorch"  # a call of its libraries


@dataclass(frozen=True)
class Call:
    """One call of a slot. callers: from the outermost of Graft's functions inwards."""

    thread: str
    slot: str
    callers: list[str]


def output_of(*command: str | Path) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return ran.stdout


def build_id(library: Path) -> str:
    return output_of("readelf", "-n", library).partition("Build ID: ")[2].split("\n")[0]


def unstripped(library: Path) -> Path:
    """The library in the build folder from which the installed one was made by strip."""
    wanted = build_id(library)
    places = (f"build/*/lib/{library.name}", f"build/*/python/**/{library.name}")
    for pattern in places:
        for path in ROOT.glob(pattern):
            if build_id(path) == wanted:
                return path
    raise AssertionError(
        f"{library} has no symbol table, and {' and '.join(places)} have none with its build id "
        f"{wanted}: run `make setup`, which builds and installs both."
    )


@cache
def symbols(library: Path) -> list[tuple[int, int, str]]:
    """Address, size and name of each function."""
    lines = output_of("nm", "-C", "-S", "--defined-only", unstripped(library)).splitlines()
    found = [re.match(r"(\w+) (\w+) [tTwW] (.*)", line) for line in lines]
    return sorted((int(one[1], 16), int(one[2], 16), one[3]) for one in found if one)


def function_at(library: Path, offset: int) -> str:
    table = symbols(library)
    begin, size, name = table[bisect.bisect(table, (offset, 1 << 62, "")) - 1]
    assert begin <= offset < begin + size, f"{library} has no function at {offset:#x}"
    return name


def without_templates(name: str) -> str:
    kept, depth = "", 0
    for letter in name:
        depth += letter == "<"
        kept += letter if depth == 0 else ""
        depth -= letter == ">"
    return kept


def plain(name: str) -> str | None:
    """As the page has it: "Stream::submit"; a lambda's is its function's. None: not of Graft."""
    text = name.replace("(anonymous namespace)::", "").replace("decltype(auto) ", "")
    text = without_templates(text).partition("::{lambda")[0].partition("(")[0].split(" ")[-1]
    if text == "graft::binding::translate":
        return None
    if text.startswith("graft::"):
        return text.removeprefix("graft::")
    return text if text.startswith("at::of_dispatch::") else None


def caller_of(frame: str) -> str | None:
    path, _, offset = frame.rpartition("+")
    library = Path(path)
    if library.name == "libgraft.so" or library.name.startswith("_C."):
        return plain(function_at(library, int(offset, 16)))
    return PYTORCH if library.name.startswith(("libtorch", "libc10")) else None


def calls_in(trace: Path) -> list[Call]:
    found = []
    for line in trace.read_text().splitlines():
        thread, _, slot, *frames = line.split("\t")
        callers: list[str] = []
        for caller in map(caller_of, reversed(frames)):
            if caller is None or (callers and callers[-1] == caller):
                continue
            if callers or caller != PYTORCH:
                callers.append(caller)
        found.append(Call(thread, slot, callers))
    return found

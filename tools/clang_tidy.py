# tools/clang_tidy.py: runs clang-tidy over the torch-free sources that changed, two at a time.
"""Checks each translation unit of src/ and drivers/ that changed since it passed, or whose headers did.

What passed is remembered in the user's cache folder, for all clones. Stops after --seconds and then
names the files that it did not reach: those of the newest commits come first, the others in a random
order, so that a machine that always starts from nothing still reaches each of them now and then.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "tidy"
PASSED = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "graft-clang-tidy"
FOLDERS = ("src/", "drivers/")
INCLUDE = re.compile(rb'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def configure() -> None:
    """Writes the compilation database; nothing is built."""
    command = ["cmake", "--preset", "release", "-B", str(BUILD), "-DGRAFT_BATCHES=OFF"]
    command += ["-Wno-dev", "--log-level=WARNING"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def units() -> dict[Path, list[Path]]:
    """The units and, for each, the project's folders in which its headers are looked up."""
    found = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        unit = (Path(entry["directory"]) / entry["file"]).resolve()
        folders = [
            (Path(entry["directory"]) / folder).resolve()
            for folder in re.findall(r"-I\s*(\S+)", entry["command"])
        ]
        if unit.is_relative_to(ROOT) and str(unit.relative_to(ROOT)).startswith(FOLDERS):
            found[unit] = [folder for folder in folders if folder.is_relative_to(ROOT)]
    return found


def closure(unit: Path, folders: list[Path]) -> list[Path]:
    """The unit and all headers of the project that it reaches."""
    reached, todo = {unit}, [unit]
    while todo:
        file = todo.pop()
        for name in INCLUDE.findall(file.read_bytes()):
            places = (folder / name.decode() for folder in (file.parent, *folders))
            header = next((place.resolve() for place in places if place.is_file()), None)
            if header is not None and header not in reached:
                reached.add(header)
                todo.append(header)
    return sorted(reached)


def mark_of(unit: Path, folders: list[Path]) -> Path:
    """The file whose presence says that this text passed with these headers."""
    key = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    for file in (unit, *closure(unit, folders)):
        key.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return PASSED / key.hexdigest()


def newest_first(todo: list[Path]) -> list[Path]:
    """By the last commit that changed a unit, as far as the last hundred tell; the rest is drawn."""
    command = ["git", "log", "-n", "100", "--format=", "--name-only"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    ranks: dict[Path, int] = {}
    for name in names.split("\n"):
        ranks.setdefault(ROOT / name, len(ranks))
    drawn = random.sample(todo, len(todo))
    return sorted(drawn, key=lambda unit: ranks.get(unit, len(ranks)))


def check(unit: Path, mark: Path, deadline: float) -> str | None:
    """Returns the findings, an empty text when there are none, None when time ran out."""
    left = deadline - time.monotonic()
    if left <= 0:
        return None
    # The database holds GCC's options, some of which clang does not know.
    known = "--extra-arg=-Wno-unknown-warning-option"
    command = ["clang-tidy-14", "-p", str(BUILD), "--quiet", known, str(unit)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=left)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        return done.stdout + done.stderr
    mark.touch()
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=150.0, help="stop after this long")
    arguments = parser.parse_args()
    configure()
    PASSED.mkdir(parents=True, exist_ok=True)
    marks = {unit: mark_of(unit, folders) for unit, folders in units().items()}
    todo = newest_first([unit for unit, mark in marks.items() if not mark.exists()])
    deadline = time.monotonic() + arguments.seconds
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(lambda unit: check(unit, marks[unit], deadline), todo))
    bad = [text for text in results if text]
    late = [str(u.relative_to(ROOT)) for u, text in zip(todo, results, strict=True) if text is None]
    print("\n".join(bad), end="\n" if bad else "")
    print(f"clang-tidy: {len(marks)} files, {len(todo)} changed, {len(bad)} with findings")
    if late:
        print(f"clang-tidy: not reached in {arguments.seconds:.0f} s: {' '.join(late)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

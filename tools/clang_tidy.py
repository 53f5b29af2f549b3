# tools/clang_tidy.py: runs clang-tidy over the torch-free sources that changed, two at a time.
"""Checks each translation unit of src/ and drivers/ that changed (with any header) since it passed.

Stops after --seconds and then names the files that it did not reach; their order is random, so
that a machine that always starts from nothing still reaches each of them now and then.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
PASSED = ROOT / "build" / "clang-tidy"
FOLDERS = ("src/", "drivers/")


def configure() -> None:
    """Writes the compilation database; nothing is built."""
    command = ["cmake", "--preset", "release", "-Wno-dev", "--log-level=WARNING"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def units() -> list[Path]:
    listed = json.loads((BUILD / "compile_commands.json").read_text())
    files = {Path(entry["file"]).resolve() for entry in listed}
    inside = (f for f in files if f.is_relative_to(ROOT))
    return sorted(f for f in inside if f.relative_to(ROOT).as_posix().startswith(FOLDERS))


def headers_digest() -> bytes:
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    for folder in ("include", *FOLDERS):
        for header in sorted((ROOT / folder).rglob("*.h")):
            digest.update(header.read_bytes())
    return digest.digest()


def mark_of(unit: Path, headers: bytes) -> Path:
    """The file whose presence says that this text passed with these headers."""
    key = hashlib.sha256(headers + str(unit.relative_to(ROOT)).encode() + unit.read_bytes())
    return PASSED / key.hexdigest()


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
    parser.add_argument("--seconds", type=float, default=720.0, help="stop after this long")
    arguments = parser.parse_args()
    configure()
    PASSED.mkdir(parents=True, exist_ok=True)
    headers = headers_digest()
    marks = {unit: mark_of(unit, headers) for unit in units()}
    todo = [unit for unit, mark in marks.items() if not mark.exists()]
    random.shuffle(todo)
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

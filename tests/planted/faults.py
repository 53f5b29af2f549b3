"""Plants the faults of faults.toml in a copy of a tree and tells which tests find each.

    python tests/planted/faults.py [TREE] [--only 3,7] [--no-build]

TREE (this one, if none is given) has an environment .venv; what is committed in it is copied to its
build/planted, with every fault behind a switch, and built there once. The tests of a fault must pass
without it and fail with it. The exit status is 1 if a fault is missed or tests fail without one.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from edited_tree import EditedTree, Fault, read_faults
from verdict import Ran, run

ROOT = Path(__file__).resolve().parents[2]
PROGRAM_LIMIT_S, PYTEST_LIMIT_S = 300, 900  # of one run


class Runs:
    """Runs of tests in the edited tree; those without a fault are made once."""

    def __init__(self, tree: EditedTree) -> None:
        self.tree = tree
        self.controls: dict[tuple[str, ...], Ran] = {}

    def command(self, fault: Fault) -> list[str]:
        if not fault.pytest:
            return [str(self.folder(fault) / fault.program), f"--gtest_filter={fault.filter}"]
        return [str(self.tree.python), "-m", "pytest", "--verbose", "--tb=short", "--color=no",
                "-p", "no:cacheprovider", "--randomly-seed=1", *fault.pytest]  # fmt: skip

    def folder(self, fault: Fault) -> Path:
        """Where the tests run: as ctest runs the programs, as make runs pytest."""
        return self.tree.root if fault.pytest else self.tree.root / "build/release/tests"

    def run(self, fault: Fault, name: str, **variables: str) -> Ran:
        mode = {"GRAFT_HOST_MODE": "async"} if fault.pytest else {}
        environment = self.tree.environment(**mode, **variables)
        log = self.tree.root / "build/logs" / f"{name}.log"
        limit_s = PYTEST_LIMIT_S if fault.pytest else PROGRAM_LIMIT_S
        return run(self.command(fault), self.folder(fault), environment, log, limit_s)

    def control(self, fault: Fault) -> Ran:
        if fault.tests not in self.controls:
            self.controls[fault.tests] = self.run(fault, f"without_{fault.number}")
        return self.controls[fault.tests]

    def found_by(self, fault: Fault) -> str:
        """The tests that find the fault; empty if it is missed or cannot be told."""
        control = self.control(fault)
        if not control.good:
            wrong = ", ".join(control.failed) or control.last or "no test ran"
            print(f"     without a fault: {wrong} (exit status {control.code})", flush=True)
            return ""
        return self.run(fault, f"with_{fault.number}", GRAFT_PLANTED=str(fault.number)).found_by


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tree", nargs="?", type=Path, default=ROOT)
    parser.add_argument("--only", default="", help="numbers of faults, with commas between")
    parser.add_argument("--no-build", action="store_true", help="take the copy as it is")
    return parser.parse_args()


def chosen(faults: list[Fault], only: str) -> list[Fault]:
    """The faults of the numbers in only; all if it is empty."""
    if not only:
        return faults
    numbers = {int(number) for number in only.split(",")}
    missing = numbers - {fault.number for fault in faults}
    if missing:
        raise SystemExit(
            f"no fault has the number {sorted(missing)[0]}: see tests/planted/faults.toml"
        )
    return [fault for fault in faults if fault.number in numbers]


def main() -> int:
    given = arguments()
    everything = read_faults()
    faults = chosen(everything, given.only)
    tree = EditedTree(given.tree.resolve())
    if not given.no_build:
        programs = dict.fromkeys(fault.program for fault in everything if fault.program)
        tree.make(everything, programs)
    runs, found = Runs(tree), 0
    for fault in faults:
        by = runs.found_by(fault)
        found += bool(by)
        print(
            f"{fault.number:3}  {fault.what}: {f'found by {by}' if by else 'NOT FOUND'}", flush=True
        )
    print(f"found {found} of {len(faults)}")
    return 0 if found == len(faults) else 1


if __name__ == "__main__":
    sys.exit(main())

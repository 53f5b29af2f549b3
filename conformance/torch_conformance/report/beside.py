# conformance/torch_conformance/report/beside.py: what differs between the results of two devices.
"""torch-conformance beside RESULTS OTHER: a device beside another one, or beside itself under another name."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from torch_conformance.report import schema

Cell = dict[str, Any]
Key = tuple[str, str, str, str]


def by_key(results: dict[str, Any]) -> dict[Key, Cell]:
    return {(c["suite"], c["entry"], c["dtype"], c["aspect"]): c for c in results["cells"]}


def leaving(cells: dict[Key, Cell], common: set[Key]) -> dict[tuple[str, str], set[str]]:
    """The operators that each entry (suite, name) leaves to the CPU in any of these cells."""
    found: dict[tuple[str, str], set[str]] = {}
    for key in common:
        found.setdefault(key[:2], set()).update(cells[key]["fallbacks"])
    return found


def differences(ours: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """One line for each cell that both ran with another status, and for each entry that leaves
    operators to the CPU in `ours` alone or in `other` alone."""
    here, there = by_key(ours), by_key(other)
    common = here.keys() & there.keys()
    lines = [
        f"{' '.join(key)}: {here[key]['status']}, beside it {there[key]['status']}"
        f"{': ' + reason if (reason := here[key]['reason'] or here[key]['message'][:200]) else ''}"
        for key in sorted(common)
        if here[key]["status"] != there[key]["status"]
    ]
    left, others = leaving(here, common), leaving(there, common)
    for entry in sorted(left):
        if bool(left[entry]) != bool(others[entry]):
            where = "here" if left[entry] else "there"
            operators = ", ".join(sorted(left[entry] | others[entry]))
            lines.append(f"{' '.join(entry)}: leaves {operators} to the CPU {where} alone")
    return lines


def entirely(results: dict[str, Any], common: set[Key]) -> int:
    """How many entries leave nothing to the CPU."""
    return sum(not operators for operators in leaving(by_key(results), common).values())


def main(arguments: list[str]) -> int:
    """Exit status 1 if more differs than --at-most allows, 2 if the two ran no cell both."""
    p = argparse.ArgumentParser(
        prog="torch-conformance beside",
        description="Names the cells that end otherwise on two devices, and the entries that leave "
        "operators to the CPU on one of them alone.",
    )
    p.add_argument("results", type=Path, help="results.json, or a run's folder")
    p.add_argument("other", type=Path, help="the same of the other device")
    p.add_argument("--at-most", type=int, default=0, metavar="N", help="differences allowed (0)")
    options = p.parse_args(arguments)
    ours, other = schema.read(options.results), schema.read(options.other)
    common = by_key(ours).keys() & by_key(other).keys()
    if not common:
        print(f"{options.results} and {options.other} have no cell in common")
        return 2
    lines = differences(ours, other)
    print(*lines, sep="\n", end="\n" if lines else "")
    print(
        f"{len(common)} cells of both, {len(lines)} differences; entries that leave nothing to the "
        f"CPU: {entirely(ours, common)}, beside it {entirely(other, common)}"
    )
    return 1 if len(lines) > options.at_most else 0

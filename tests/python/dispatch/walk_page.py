"""The lists of docs/develop/walks.md, and what the sources say about them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import source_scan
from sandbox import ROOT

PAGE = ROOT / "docs/develop/walks.md"
# From the highest down. PyTorch, above them, is called and calls back at each place of the binding.
LAYERS = ["python", "torch", "compiler", "kernels", "codegen", "runtime", "driver"]
GENERATOR = "src/torch/dispatch/generate_registrations.py"
ROW = re.compile(r"^\| (\w+) \| `([^`]+)` \| (?:`([^`]+)` )?\| (.*?) ?\|$", re.M)
INTERFACE = re.compile(r"^\| `(\w+)` \| `([\w/.]+)` \| `[\w:]+` \(`([\w/.]+)`\) \|$", re.M)


@dataclass(frozen=True)
class Row:
    layer: str
    name: str
    file: str
    text: str

    @property
    def last(self) -> str:
        """Its name without namespaces and classes."""
        return self.name.rpartition("::")[2]

    @property
    def up(self) -> str | None:
        """The interface through which it is called from a lower layer."""
        found = re.match(r"up, through `(\w+)`", self.text)
        return found[1] if found else None

    @property
    def written(self) -> bool:
        """Whether a person wrote it, in the file that the row names."""
        return self.layer != "PyTorch" and self.file != GENERATOR


@dataclass(frozen=True)
class Walk:
    """A call; chains: the rows of each way from PyTorch to a slot, whole."""

    title: str
    chains: list[list[Row]]


def lists_of(page: str) -> Iterator[tuple[str, list[Row]]]:
    """Each list as it stands, with the title of its call."""
    for section in page.split("\n## ")[1:]:
        for part in section.split("\n### ")[1:]:
            yield section.splitlines()[0], [Row(*cells) for cells in ROW.findall(part)]


def place(rows: list[Row], name: str) -> int | None:
    return next((i for i, row in enumerate(rows) if row.name == name), None)


def walks(page: str) -> list[Walk]:
    """Joins each list to the one that it branches off from, and to the one that it goes on as."""
    lists = list(lists_of(page))
    endings = [rows for _, rows in lists if rows[-1].layer == "driver"]
    found: dict[str, list[list[Row]]] = {}
    for title, rows in lists:
        earlier = found.setdefault(title, [])
        for other in earlier:
            if (at := place(other, rows[0].name)) is not None:
                rows = other[:at] + rows
                break
        if rows[-1].layer != "driver":
            name = rows[-1].name
            more = next((one for one in endings if place(one, name) is not None), None)
            assert more is not None, f"{title}: {name} is no slot, and no list goes on from it"
            rows = rows + more[(place(more, name) or 0) + 1 :]
        earlier.append(rows)
    return [Walk(title, chains) for title, chains in found.items()]


@cache
def source(path: str) -> source_scan.Source:
    there = (ROOT / path).is_file()
    return source_scan.Source(path, (ROOT / path).read_text() if there else "")


def names(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w~]){re.escape(word)}\b", text) is not None


def bodies(row: Row) -> list[str]:
    """The functions of the row's file that have its last name, each without that name at its head."""
    of = source(row.file)
    lines = (of.bare if of.is_c else of.text).splitlines()
    return [
        "\n".join(lines[one.line - 1 : one.line - 1 + one.length]).replace(row.last, "", 1)
        for one in of.functions
        if one.name.rpartition("::")[2] == row.last
    ]


def is_there(row: Row) -> bool:
    """Whether its file defines it and names its scopes; a destructor may be the compiler's."""
    if row.layer == "driver":
        return re.search(rf"SLOT\(\w+, {row.name},", source(row.file).text) is not None
    scopes = row.name.split("::")[:-1]
    if not all(names(source(row.file).bare, scope) for scope in scopes):
        return False
    return row.last.startswith("~") or bool(bodies(row))


def leads(chain: list[Row], at: int) -> bool:
    """Whether the row before names this one. A slot, and a lambda, is named where it is given away."""
    before, row = chain[at - 1], chain[at]
    if before.layer == "PyTorch":
        return not row.written or at == 1 or names(source(row.file).bare, before.last)
    if not before.written or not row.written or row.last.startswith("~"):
        return True
    if row.layer == "PyTorch" or place(chain[:at], row.name) is not None:
        return True
    if f"::{row.name}".endswith(f"::{row.last}::{row.last}"):  # the caller may have it as a member
        header = Path(before.file).with_suffix(".h").as_posix()
        return any(names(source(path).bare, row.last) for path in (before.file, header))
    givers = chain[:at] if row.layer == "driver" else [before]
    return any(names(body, row.last) for one in givers if one.written for body in bodies(one))


def misplaced(row: Row) -> str | None:
    """What is wrong with a row's layer or file."""
    if row.layer == "PyTorch":
        return None
    if row.layer not in LAYERS:
        return f"{row.name}: {row.layer} is no layer"
    folder = {"python": "python/", "driver": "include/graft/"}.get(row.layer, f"src/{row.layer}/")
    if not row.file.startswith(folder):
        return f"{row.name}: {row.file} is not of the layer {row.layer}"
    return None if not row.written or is_there(row) else f"{row.name}: not in {row.file}"


def wrong_rows(page: str) -> list[str]:
    """What the page says of a row that the sources do not."""
    interfaces = {name: (header, filled) for name, header, filled in INTERFACE.findall(page)}
    found = []
    for walk in walks(page):
        for chain in walk.chains:
            found += [fault for row in chain if (fault := misplaced(row)) is not None]
            found += [
                f"{chain[at].name}: {chain[at - 1].name} does not name it"
                for at in range(1, len(chain))
                if not leads(chain, at)
            ]
            found += wrong_steps(chain, interfaces)
    return list(dict.fromkeys(found))


def wrong_steps(chain: list[Row], interfaces: dict[str, tuple[str, str]]) -> Iterator[str]:
    """Steps up a layer that no interface of the lower layer makes."""
    ours = [row for row in chain if row.layer in LAYERS]
    for before, row in pairwise(ours):
        rises = LAYERS.index(row.layer) < LAYERS.index(before.layer)
        if rises != (row.up is not None):
            yield f"{row.name}: from {before.layer} to {row.layer}, through {row.up}"
        if not rises or row.up is None:
            continue
        header, filled = interfaces.get(row.up, ("", ""))
        virtual = rf"^class {row.up} \{{.*?\bvirtual [^;]*\b{row.last}\("
        declared = header.startswith(f"src/{before.layer}/") and re.search(
            virtual, source(header).bare, re.M | re.S
        )
        inherits = filled and re.search(
            rf"class {row.name.split('::')[-2]}\b[^{{]*: public [\w:]*\b{row.up}\b",
            source(filled).bare,
        )
        if not declared or not inherits:
            yield f"{row.name}: {row.up} is no interface of {before.layer} that it fills in"

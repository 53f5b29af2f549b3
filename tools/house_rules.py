# tools/house_rules.py: the rules of folders, for check_design: sizes, order, names, READMEs and tests' places.
"""The order of the folders inside a layer stands in docs/develop/layout.md, in a table that is
read here: "driver < {memory, stream}" lets memory include driver, and not stream."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Protocol

from source_scan import Finding, Source

LAYOUT = "docs/develop/layout.md"
SMALLEST, LARGEST = 3, 30  # files of a folder
# One family of operators a file, one area of torch a file.
LARGE = {"src/torch/ops", "src/torch/version"}
SMALL = {"src/torch/version/minor"}  # one minor version of torch a file
TESTED = ("runtime", "codegen", "kernels", "compiler")  # layers whose tests mirror their folders
HOUSED = (
    "src/",
    "drivers/host/",
    "drivers/opencl/",
    "docs/",
    "conformance/",
    *(f"tests/{layer}/" for layer in TESTED),
)
_ORDER = re.compile(r"^\| `(\w+)` \| (\w+(?: < [\w{}, ]+)+) \|$", re.MULTILINE)
_ARROW = re.compile(r"^\| `(\w+)/(\w+)` \| `(\w+)` \| ([^|]+) \|$", re.MULTILINE)
_INCLUDE = re.compile(r'^#include "(\w+)/(\w+)/[^"]+"', re.MULTILINE)
_ALIAS = re.compile(r"^using (\w+) =", re.MULTILINE)
_TYPE = re.compile(
    r"^(?:class|struct|enum class)\s+(?:GRAFT_EXPORT\s+)?(\w+)[^;{]*\{", re.MULTILINE
)
_LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")
_FILE = re.compile(r"(?<![\w/.<*\"-])((?:[a-z0-9_]+/)*[a-z0-9_]+\.(?:h|cpp|cmake))\b")
# Files of an example, of torch, of the next version.
ELSEWHERE = re.compile(r"^(swish\.cpp|file\.cpp|torch/csrc/.*|minor/2_16\.h)$")


class Files(Protocol):
    sources: list[Source]
    code: list[Source]
    paths: list[str]


def folders(tree: Files) -> dict[str, list[str]]:
    """Folder -> names of its tracked files, of the folders that the rules hold for."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in tree.paths:
        if path.startswith(HOUSED):
            folder, _, name = path.rpartition("/")
            found[folder].append(name)
    return found


def folder_sizes(tree: Files) -> Iterator[Finding]:
    found = folders(tree)
    inner = {str(parent) for folder in found for parent in PurePosixPath(folder).parents}
    for folder, names in sorted(found.items()):
        if len(names) > LARGEST and folder not in LARGE:
            text = f"{len(names)} files; at most {LARGEST}: split the folder by noun"
            yield Finding(folder, 1, text)
        if len(names) < SMALLEST and folder not in inner | SMALL:
            text = f"{len(names)} files; at least {SMALLEST}: put them into the folder above"
            yield Finding(folder, 1, text)


def folder_order(tree: Files) -> Iterator[Finding]:
    """An include goes to a folder on the left of its own, or along an arrow that layout.md states."""
    text = next((s.text for s in tree.sources if s.path == LAYOUT), "")
    ranks = {
        layer: {
            name: rank
            for rank, names in enumerate(row.split(" < "))
            for name in re.findall(r"\w+", names)
        }
        for layer, row in _ORDER.findall(text)
    }
    stated = {(layer, a, b) for layer, a, b, _ in _ARROW.findall(text)}
    unused = set(stated)
    for source in (s for s in tree.code if s.is_c and s.path.startswith("src/")):
        parts = source.name.parts
        if len(parts) < 4:
            continue
        if parts[1] not in ranks:
            yield Finding(source.path, 1, f"{LAYOUT} has no order of the folders of {parts[1]}")
            continue
        layer, own, order = parts[1], parts[2], ranks[parts[1]]
        if own not in order:
            yield Finding(source.path, 1, f"the order of {layer} in {LAYOUT} lacks {own}")
            continue
        for match in _INCLUDE.finditer(source.text):
            top, other = match.groups()
            if top != layer or other == own or order.get(other, -1) < order[own]:
                continue
            unused.discard((layer, own, other))
            if (layer, own, other) not in stated:
                line = source.text.count("\n", 0, match.start()) + 1
                text = f"{own} must not include {other}: the order of {layer} is in {LAYOUT}"
                yield Finding(source.path, line, text)
    for layer, a, b in sorted(unused):
        yield Finding(LAYOUT, 1, f"no file of {layer}/{a} includes {layer}/{b} any more")


def repeated_names(tree: Files) -> Iterator[Finding]:
    """A file's name does not begin with its folder's; the folder's main file may have that name."""
    for folder, names in sorted(folders(tree).items()):
        last = folder.rpartition("/")[2]
        for name in names:
            if name.startswith(f"{last}_") and name != f"{last}_test.cpp":
                text = f"repeats the name of its folder: {name.removeprefix(last + '_')}"
                yield Finding(f"{folder}/{name}", 1, text)


def readmes(tree: Files) -> Iterator[Finding]:
    for folder, names in sorted(folders(tree).items()):
        if "README.md" not in names and folder not in SMALL:
            yield Finding(
                folder, 1, "has no README.md: its nouns, its entry point, who includes it"
            )


def mirrored_tests(tree: Files) -> Iterator[Finding]:
    """A folder of tests is a folder of src."""
    found = folders(tree)
    for folder in sorted(found):
        if folder.startswith("tests/") and "src" + folder.removeprefix("tests") not in found:
            yield Finding(folder, 1, f"src{folder.removeprefix('tests')} is no folder")


def one_type_one_name(tree: Files) -> Iterator[Finding]:
    """No two types of one name in the headers of src."""
    places: dict[str, list[str]] = defaultdict(list)
    for source in tree.code:
        if source.path.startswith("src/") and source.is_header:
            for name in {*_TYPE.findall(source.text), *_ALIAS.findall(source.text)}:
                places[name].append(source.path)
    for name, paths in sorted(places.items()):
        for path in paths[1:]:
            yield Finding(path, 1, f"a second type called {name}: {paths[0]} has one")


def named_files(tree: Files) -> Iterator[Finding]:
    """A file of C that a comment or a page names is there, by its path or by the end of it."""
    ends = {
        path.split("/", start)[-1] for path in tree.paths for start in range(path.count("/") + 1)
    }
    for source in tree.sources:
        page = source.name.suffix == ".md" and not source.path.startswith(
            "docs/generated/conformance/"
        )
        if not page and not (source.is_c and source.path.startswith(("src/", "drivers/"))):
            continue
        for number, line in enumerate(source.text.split("\n"), 1):
            text = line if page else line.partition("//")[2]
            for name in _FILE.findall(text):
                if name not in ends and not ELSEWHERE.match(name):
                    yield Finding(source.path, number, f"names {name}, which is no tracked file")


def dead_links(tree: Files) -> Iterator[Finding]:
    """A link of a page that names no host leads to a tracked file or folder."""
    places = set(tree.paths) | {
        str(parent) for path in tree.paths for parent in PurePosixPath(path).parents
    }
    for source in (s for s in tree.sources if s.name.suffix == ".md"):
        for match in _LINK.finditer(source.text):
            place = posixpath.normpath(posixpath.join(source.name.parent, match[1]))
            if "://" not in match[1] and not match[1].startswith("mailto:") and place not in places:
                line = source.text.count("\n", 0, match.start()) + 1
                yield Finding(source.path, line, f"links to {match[1]}, which is not there")


HOUSE_RULES = [
    folder_sizes, folder_order, repeated_names, readmes, mirrored_tests, one_type_one_name, named_files,
    dead_links,
]  # fmt: skip

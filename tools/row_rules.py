# tools/row_rules.py: the rule of check_design.py for files that are compiled as one.
"""The files of a row are one translation unit. An unnamed namespace of one of them is open in those behind it, where
its names hide those of headers: a constant kBlock of a header was another file's kBlock, and no compiler warned."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from source_scan import Finding, Source, Tree

_ROW = re.compile(r'^[ \t]*(?:set\(\w+ )?"([\w/]+(?: [\w/]+)+)"', re.MULTILINE)
_UNNAMED = re.compile(r"^namespace \{$(.*?)^\}", re.MULTILINE | re.DOTALL)
_NAME = re.compile(
    r"^(?:inline |static )*(?:constexpr [\w:<>\s,*]*?\b(\w+)(?:\[\w*\])*\s*[={]|(?:struct|class|enum(?: class)?) (\w+))",
    re.MULTILINE,
)


def rows_of(tree: Tree) -> Iterator[list[str]]:
    """The files of each row, without .cpp. In src/batches.cmake a row's first word is its folder."""
    for source in tree.sources:
        if not source.path.startswith("src/") or source.name.suffix not in (".cmake", ".txt"):
            continue
        place = posixpath.dirname(source.path)
        for found in _ROW.finditer(source.text):
            names = found[1].split()
            folder = place if "/" in names[0] else f"{place}/{names.pop(0)}"
            yield [f"{folder}/{name}" for name in names]


def _unnamed(source: Source) -> set[str]:
    blocks = "\n".join(_UNNAMED.findall(source.bare))
    return {first or second for first, second in _NAME.findall(blocks)}


def row_names(tree: Tree) -> Iterator[Finding]:
    """No file of a row uses a constant or type that is another one's own."""
    known = {source.path: source for source in tree.code}
    for row in rows_of(tree):
        files = [known[f"{name}.cpp"] for name in row if f"{name}.cpp" in known]
        for owner in files:
            for name in sorted(_unnamed(owner)):
                use = re.compile(rf"(?<![\w.>:]){name}\b")
                local = re.compile(rf"[\w*&>]\s+{name}\s*(?:\[\w*\])*\s*[={{,>]")
                for other in files:
                    found = use.search(other.bare) if other is not owner else None
                    if found is None or local.search(other.bare):
                        continue
                    line = other.bare.count("\n", 0, found.start()) + 1
                    text = f"{name} is {owner.path}'s own, which is compiled in one row: rename one"
                    yield Finding(other.path, line, text)


ROW_RULES = [row_names]

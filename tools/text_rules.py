# tools/text_rules.py: the rule of check_design.py for what the shipped code says to users.
"""A vendor or a user names the device type, so a text that says "torch.graft." sends them to a module that
is not there. So do help() and docstrings. Comments may: they speak of the default."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from source_scan import TOKEN, Finding, Source, Tree

SHIPPED = ("python/torch_graft/", "src/", "drivers/")
_DEVICE = re.compile(
    r"\btorch\.graft\b|\bgraft:[\d{%]|\bgraft (device|tensor|stream|module)s?\b"
    r"|\bdevice\s*=\s*\\?['\"]graft\b"
)


def default_device_names(tree: Tree) -> Iterator[Finding]:
    """Strings that call the device by its default name."""
    for source in tree.code:
        if not source.path.startswith(SHIPPED):
            continue
        for line, text in _strings_of_c(source) if source.is_c else _strings_of_python(source):
            if found := _DEVICE.search(text):
                yield Finding(
                    source.path, line, f"says {found[0]!r}: use the name that the device type has"
                )


def _strings_of_c(source: Source) -> Iterator[tuple[int, str]]:
    for match in TOKEN.finditer(source.text):
        if match.lastgroup in ("string", "mark") or match.group().startswith('R"'):
            yield source.text.count("\n", 0, match.start()) + 1, match.group()


def _strings_of_python(source: Source) -> Iterator[tuple[int, str]]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


TEXT_RULES = [default_device_names]

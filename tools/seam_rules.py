# tools/seam_rules.py: the rules of check_design.py that keep torch's private names in one place per language.
"""In C++ that is src/torch/version, in Python the file private_names.py of each package. What is written into
generated code or into another program's text is no use of ours, and is not looked at."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from source_scan import Finding, Source, Tree, imported

SEAM = "src/torch/version/"
MINORS = f"{SEAM}minor/"
ALIAS = "inside"
_INCLUDE = re.compile(
    r"^[ \t]*#[ \t]*include[ \t]*[<\"]((?:ATen/native/|ATen/ops/\w+_native\.h|torch/csrc/|c10/core/impl/)"
    r"[^>\"]*)",
    re.MULTILINE,
)
_NATIVE = re.compile(r"\bat::native\b|\bnamespace at\s*\{\s*namespace native\b")
_USING = re.compile(r"\busing\s+(at::native::[\w:]+)\s*;")
_MODULE = re.compile(r"(torch|torchgen)(\.\w+)*(\._(?!_)\w+)(\.\w+)*")
_TUPLE = {"_asdict", "_fields", "_make", "_replace"}  # documented members of every named tuple
# Test files of others import these; their names are compared as text.
_TEXTS = "conformance/torch_conformance/lint/forms.py"


class Package(NamedTuple):
    """A Python package, where its sources begin, and its table."""

    name: str
    sources: str
    table: str


PACKAGES = (
    Package("torch_graft", "python/", "python/torch_graft/private_names.py"),
    Package("torch_conformance", "conformance/torch_conformance/",
            "conformance/torch_conformance/private_names.py"),
)  # fmt: skip


def native_names(tree: Tree) -> Iterator[Finding]:
    """C++ takes what is inside torch from the seam, and the seam lists each name once."""
    seen: dict[str, str] = {}
    for source in (s for s in tree.code if s.is_c):
        if not source.path.startswith(SEAM):
            for line, what in _inside(source):
                text = f"{what} is inside torch: it stands in {SEAM} alone, take it from there"
                yield Finding(source.path, line, text)
            continue
        own: set[str] = set()  # a name may stand in several files of minor/, which are alternatives
        for found in _USING.finditer(source.bare):
            name, line = found[1], source.bare.count("\n", 0, found.start()) + 1
            before = source.path if name in own else seen.get(name)
            if before and (name in own or not _both_minors(before, source.path)):
                yield Finding(source.path, line, f"{name} stands in {before}, too: list it once")
            own.add(name)
            seen.setdefault(name, source.path)


def _inside(source: Source) -> Iterator[tuple[int, str]]:
    for text, pattern in ((source.text, _INCLUDE), (source.bare, _NATIVE)):
        for found in pattern.finditer(text):
            what = found[1] if found.lastindex else found.group()
            yield text.count("\n", 0, found.start()) + 1, what


def _both_minors(one: str, other: str) -> bool:
    return one.startswith(MINORS) and other.startswith(MINORS)


def python_names(tree: Tree) -> Iterator[Finding]:
    """Python takes torch's private names from its package's table, whose rows are each used and all different."""
    for package in PACKAGES:
        yield from _names_of(tree, package)
    for source in tree.code:
        generator = source.path.startswith("src/") and not source.path.startswith(SEAM)
        if source.is_python and generator:
            for line, name in _imports(source):
                if name.split(".")[0] == "torchgen":
                    yield Finding(source.path, line, f"'{name}': torchgen stands in {SEAM} alone")


def _names_of(tree: Tree, package: Package) -> Iterator[Finding]:
    sources = [s for s in tree.code if s.is_python and s.path.startswith(package.sources)]
    table, ours = package.table, _ours(sources)
    used: set[str] = set()
    rows = {row: line for s in sources if s.path == table for row, line in _rows(s)}
    functions = _functions(tree, table)
    for source in (s for s in sources if s.path != table):
        for line, name in _private(source, ours):
            text = f"'{name}' is private to torch: give it a row in {table}"
            yield Finding(source.path, line, text)
        for line, name in _taken(source):
            if name not in rows and name not in functions:
                yield Finding(source.path, line, f"{table} has no row '{name}'")
        for line in _otherwise(source, package.name):
            text = f"take the table by 'from {package.name} import private_names as {ALIAS}'"
            yield Finding(source.path, line, text)
        used |= {name for _, name in _taken(source)} | _words(source)
    for name, line in rows.items():
        if name not in used:
            yield Finding(table, line, f"nothing uses the row '{name}'")
    yield from _twice(tree, table)


def _private(source: Source, ours: set[str]) -> Iterator[tuple[int, str]]:
    roots = {"torch"} | _torch_names(source)
    inner: set[ast.AST] = set()  # parts of a chain that is reported whole
    modules = _modules(source)
    for line, name in _imports(source):
        if name.split(".")[0] == "torchgen" or any(map(_hidden, name.split("."))):
            yield line, name
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node not in inner:
            chain = _chain(node)
            inner |= set(chain)
            hidden = [one for one in chain if _hidden(one.attr)]
            root = _root(node)
            if root in roots:
                yield from ((node.lineno, ast.unparse(node)) for _ in hidden[:1])
            elif root not in modules:
                for one in (one for one in hidden if one.attr not in ours | _TUPLE):
                    yield one.lineno, ast.unparse(one)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if _MODULE.fullmatch(node.value) and source.path != _TEXTS:
                yield node.lineno, node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
            name = str(node.args[1].value) if isinstance(node.args[1], ast.Constant) else ""
            if _hidden(name) and name not in ours | _TUPLE:
                yield node.lineno, name


def _hidden(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _chain(node: ast.expr) -> list[ast.Attribute]:
    """The attributes of a dotted name, the last first."""
    found = []
    while isinstance(node, ast.Attribute):
        found.append(node)
        node = node.value
    return found


def _root(node: ast.Attribute) -> str:
    first = _chain(node)[-1].value
    return first.id if isinstance(first, ast.Name) else ""


def _imports(source: Source) -> Iterator[tuple[int, str]]:
    """What is imported of torch and of torchgen, by its whole name."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and not getattr(node, "level", 0):
            module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for name in (module + one.name for one in node.names):
                if name.split(".")[0] in ("torch", "torchgen"):
                    yield node.lineno, name


def _torch_names(source: Source) -> set[str]:
    """The names under which the file has modules and classes of torch."""
    return {name for name, root in imported(source.tree) if root == "torch"}


def _modules(source: Source) -> set[str]:
    """The names under which the file has modules that are not torch's, ours among them."""
    return {name for name, _ in imported(source.tree)} - _torch_names(source)


def _ours(sources: list[Source]) -> set[str]:
    """The attributes that our own classes, modules and objects have."""
    found: set[str] = set()
    for source in sources:
        outer: list[ast.AST] = [source.tree]
        for node in ast.walk(source.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
            if isinstance(node, ast.ClassDef):
                outer.append(node)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.add(node.attr)
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("__setattr__"):
                found |= {str(one.value) for one in node.args if isinstance(one, ast.Constant)}
        for one in (statement for scope in outer for statement in getattr(scope, "body", [])):
            targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def _taken(source: Source) -> Iterator[tuple[int, str]]:
    """What is taken of the table."""
    for node in ast.walk(source.tree):
        direct = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if direct and isinstance(node, ast.Attribute) and _root(node) == ALIAS:
            yield node.lineno, node.attr


def _otherwise(source: Source, package: str) -> Iterator[int]:
    """Imports of the table under another name than ALIAS, which would hide what is taken."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom):
            whole = [(f"{node.module}.{one.name}", one.asname) for one in node.names]
            if node.module == f"{package}.private_names" or any(
                name == f"{package}.private_names" and alias != ALIAS for name, alias in whole
            ):
                yield node.lineno


def _words(source: Source) -> set[str]:
    return {
        node.value
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def _tables(source: Source) -> Iterator[ast.Dict]:
    for node in source.tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
            yield node.value


def _rows(source: Source) -> Iterator[tuple[str, int]]:
    for table in list(_tables(source))[:1]:
        for key in table.keys:
            if isinstance(key, ast.Constant):
                yield str(key.value), key.lineno


def _functions(tree: Tree, table: str) -> set[str]:
    """What the module of the table has beside its rows."""
    own = [node for s in tree.code if s.path == table for node in s.tree.body]
    return {node.name for node in own if isinstance(node, ast.FunctionDef | ast.ClassDef)} | {
        ast.unparse(node.target) for node in own if isinstance(node, ast.AnnAssign)
    }


def _twice(tree: Tree, path: str) -> Iterator[Finding]:
    for source in (s for s in tree.code if s.path == path):
        for table in _tables(source):
            keys: dict[str, int] = {}
            places: dict[str, str] = {}
            for key, value in zip(table.keys, table.values, strict=True):
                if key is None:
                    continue
                name, place = ast.unparse(key), ast.unparse(value)
                if name in keys:
                    yield Finding(path, key.lineno, f"{name} stands twice")
                elif place in places and isinstance(value, ast.Constant | ast.JoinedStr):
                    yield Finding(
                        path, key.lineno, f"{name} and {places[place]} are one name of torch"
                    )
                keys[name] = key.lineno
                places.setdefault(place, name)

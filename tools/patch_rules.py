# tools/patch_rules.py: the rules of check_design.py that keep Graft from changing what it does not own.
"""Graft plugs into PyTorch by PyTorch's own functions: it writes into no module of torch, and into no
import. Into other libraries its integrations alone write, by what can be undone."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from source_scan import Finding, Source, Tree, imported, root_name

SHIPPED_PYTHON = ("python/", "conformance/torch_conformance/")
PATCHED_ROOTS = ("torch", "copy")
# Each may be written once, by this file. torch has no registration function for them: its maker of
# storage methods and its copier make memory by UntypedStorage(n, device=...), which has a fixed list
# of device types.
PATCHES = {
    ("python/torch_graft/ve/__init__.py", "torch.UntypedStorage.ve"),
    ("python/torch_graft/ve/__init__.py", "copy._deepcopy_dispatch[torch.UntypedStorage]"),
}
INTEGRATIONS = "python/torch_graft/integrations/"
UNDONE = f"{INTEGRATIONS}changes.py"  # keeps what stood there, and refuses torch at run time
WRITERS = ("replace", "replace_function", "put")  # its methods; the first argument is written into
OWN = ("torch_graft", "torch_conformance", "graft_sdk", *PATCHED_ROOTS)  # torch has its own rule
# Where Python lets others into its imports.
IMPORT_HOOKS = {
    "meta_path",
    "path_hooks",
    "path_importer_cache",
    "MetaPathFinder",
    "PathEntryFinder",
    "Loader",
}


def monkeypatches(tree: Tree) -> Iterator[Finding]:
    """Writes into a module of torch or into copy's table: assignments, deletions, setattr, sys.modules."""
    for source in _shipped(tree):
        missing = {target for path, target in PATCHES if path == source.path}
        # sys.modules reaches torch without an import.
        names = {"torch", *(n for n, root in imported(source.tree) if root in PATCHED_ROOTS)}
        places = _origins(source.tree)
        for node in ast.walk(source.tree):
            for target in (*_written(node), *_integrated(node)):
                text = ast.unparse(target)
                if root_name(target) not in names and places.get(root_name(target)) != "torch":
                    continue
                if text in missing:
                    missing.remove(text)
                    continue
                text = f"writes {text}: use a registration function of torch"
                yield Finding(source.path, getattr(node, "lineno", 1), text)
        for text in sorted(missing):
            yield Finding(source.path, 1, f"no longer writes {text}: take it out of PATCHES")


def _shipped(tree: Tree) -> list[Source]:
    return [s for s in tree.code if s.path.startswith(SHIPPED_PYTHON) and s.is_python]


def library_writes(tree: Tree) -> Iterator[Finding]:
    """Writes into another library: integrations make them through changes.py, other files none."""
    for source in _shipped(tree):
        inside = source.path.startswith(INTEGRATIONS)
        libraries = {
            name
            for name, root in _origins(source.tree).items()
            if root not in sys.stdlib_module_names and root not in OWN
        }
        for node in ast.walk(source.tree):
            for target in (*_written(node), *(() if inside else _integrated(node))):
                if root_name(target) in libraries:
                    remedy = (
                        f"use the Changes of {UNDONE}" if inside else f"only {INTEGRATIONS} may"
                    )
                    text = f"writes {ast.unparse(target)}, of another library: {remedy}"
                    yield Finding(source.path, getattr(node, "lineno", 1), text)


def _origins(tree: ast.Module) -> dict[str, str]:
    """Names that stand for something imported, also by one assignment, and the top module of each."""
    found = {name: root for name, root in imported(tree) if root}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
            for name in (t.id for t in node.targets if isinstance(t, ast.Name)):
                if root_name(node.value) in found:
                    found.setdefault(name, found[root_name(node.value)])
    return found


def _integrated(node: ast.AST) -> list[ast.expr]:
    """What a call of Changes writes into."""
    call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return [node.args[0]] if call and node.func.attr in WRITERS and node.args else []  # type: ignore[attr-defined]


def _written(node: ast.AST) -> list[ast.expr]:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign | ast.Delete):
        targets = list(node.targets)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    elif isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        if name in ("setattr", "delattr", "object.__setattr__", "type.__setattr__") and node.args:
            return [node.args[0]]
        if name.endswith(".__dict__.update"):
            return [node.func]
    found = []
    for target in targets:
        found += list(target.elts) if isinstance(target, ast.Tuple | ast.List) else [target]
    return [t for t in found if not isinstance(t, ast.Name)]


def import_hooks(tree: Tree) -> Iterator[Finding]:
    """Ways to act when somebody else's module is loaded."""
    for source in _shipped(tree):
        for node in ast.walk(source.tree):
            name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "name", "")
            hook = name in IMPORT_HOOKS or (
                isinstance(node, ast.Attribute)
                and node.attr == "__import__"
                and isinstance(node.ctx, ast.Store)
            )
            if hook:
                text = f"{name} is an import hook: use a registration function, or load the module"
                yield Finding(source.path, getattr(node, "lineno", 1), text)


PATCH_RULES = [monkeypatches, library_writes, import_hooks]

# tools/patch_rules.py: the rules of check_design.py that keep Graft from changing what it does not own.
"""Graft plugs into PyTorch by PyTorch's own functions: it writes into no module of torch, and into no
import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Protocol

from source_scan import Finding, Source, root_name

SHIPPED_PYTHON = ("python/", "conformance/torch_conformance/")
PATCHED_ROOTS = ("torch", "copy")
# Each may be written once, by this file. torch has no registration function for them: its maker of
# storage methods and its copier make memory by UntypedStorage(n, device=...), which has a fixed list
# of device types.
PATCHES = {
    ("python/torch_graft/ve/__init__.py", "torch.UntypedStorage.ve"),
    ("python/torch_graft/ve/__init__.py", "copy._deepcopy_dispatch[torch.UntypedStorage]"),
}
# Where Python lets others into its imports.
IMPORT_HOOKS = {
    "meta_path",
    "path_hooks",
    "path_importer_cache",
    "MetaPathFinder",
    "PathEntryFinder",
    "Loader",
}


class Files(Protocol):
    code: list[Source]


def monkeypatches(tree: Files) -> Iterator[Finding]:
    """Writes into a module of torch or into copy's table: assignments, deletions, setattr, sys.modules."""
    for source in tree.code:
        if source.path.startswith(SHIPPED_PYTHON) and source.is_python:
            missing = {target for path, target in PATCHES if path == source.path}
            names = _patched_names(source.tree)
            for node in ast.walk(source.tree):
                for target in _written(node):
                    text = ast.unparse(target)
                    if root_name(target) not in names:
                        continue
                    if text in missing:
                        missing.remove(text)
                        continue
                    text = f"writes {text}: use a registration function of torch"
                    yield Finding(source.path, getattr(node, "lineno", 1), text)
            for text in sorted(missing):
                yield Finding(source.path, 1, f"no longer writes {text}: take it out of PATCHES")


def _patched_names(tree: ast.Module) -> set[str]:
    names = {"torch"}  # sys.modules reaches it without an import
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                root = one.name.split(".")[0]
                if root in PATCHED_ROOTS:
                    names.add(one.asname or root)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            root = (node.module or "").split(".")[0]
            names.update(a.asname or a.name for a in node.names if root in PATCHED_ROOTS)
    return names


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


def import_hooks(tree: Files) -> Iterator[Finding]:
    """Ways to act when somebody else's module is loaded."""
    for source in tree.code:
        if not (source.path.startswith(SHIPPED_PYTHON) and source.is_python):
            continue
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


PATCH_RULES = [monkeypatches, import_hooks]

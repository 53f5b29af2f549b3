# tools/torch_probe.py: what one torch has of the Python names that we use; run by that torch's Python.
"""Reads a request (JSON) from standard input and answers on standard output, see torch_audit.Probe.

Standard library and torch alone: the environment has nothing of ours."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

# torch's distributed tests read these when they are imported.
for _variable, _value in {"BACKEND": "gloo", "WORLD_SIZE": "2"}.items():
    os.environ.setdefault(_variable, _value)


def main() -> None:
    request = json.load(sys.stdin)
    out = os.dup(1)
    os.dup2(2, 1)  # what torch's modules print when they are imported is no answer
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        sys.exit(f"{sys.executable} has no torch")
    # For packages that torch's own tests want: behind all that this environment has itself.
    sys.path += request["more"]
    import torch

    tables = {path: _loaded(path) for path in request["tables"]}
    any_table = next(iter(tables.values()))
    answer = {
        "version": torch.__version__,
        "folder": str(Path(spec.origin).parent),
        "rows": {
            path: {name: _found(table, table.places(name)) for name in table.TORCH}
            for path, table in tables.items()
        },
        "members": {
            path: {place: _members(table, place) for place in getattr(table, "MEMBERS", ())}
            for path, table in tables.items()
        },
        "torchgen": {place: _found(any_table, (place,)) for place in request["torchgen"]},
        "schemas": {name: _schema(torch, name) for name in request["schemas"]},
    }
    os.write(out, json.dumps(answer).encode())


def _loaded(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("table", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _found(table: Any, places: tuple[str, ...]) -> dict[str, Any]:
    """form: how it is called, None where Python does not know. missing: why it is not there."""
    reasons = []
    for place in places:
        try:
            owner, of_instances, attribute = place.partition("().")
            found = table.found_at(owner)
            if not of_instances:
                return {"form": form(found)}
            if _has(found, attribute):
                return {"form": None}
            reasons.append(f"{place}{_like(attribute, _known(found))}")
        except (ImportError, AttributeError) as error:
            reasons.append(f"{place}{_near(table, place, error)}")
        except Exception as error:
            reasons.append(f"{place}: {type(error).__name__}: {error}")
    return {"missing": "; ".join(reasons)}


def _near(table: Any, place: str, error: Exception) -> str:
    """What that torch has instead, if it has something like it."""
    module, _, path = place.partition(":")
    if isinstance(error, ModuleNotFoundError):
        other = error.name or ""
        if other.split(".")[0] not in ("torch", "torchgen"):
            return f" was not looked at, since it needs the package {other}"
        parent, _, last = other.rpartition(".")
        try:
            folder = Path(table.found_at(parent).__file__).parent
        except (ImportError, AttributeError):
            return ": no such module"
        return f": no module {other}{_like(last, [p.stem for p in folder.iterdir()])}"
    owner, _, last = path.rpartition(".")
    try:
        return _like(last, dir(table.found_at(f"{module}:{owner}" if owner else module)))
    except (ImportError, AttributeError) as other_error:
        return f": {other_error}"


def _like(name: str, among: list[str]) -> str:
    near = difflib.get_close_matches(name, among, n=3, cutoff=0.7)
    return f" (torch has {', '.join(near)})" if near else ""


def form(found: Any) -> str | None:
    if inspect.ismodule(found):
        return None
    try:
        given = inspect.signature(found)
        bare = [
            one.replace(annotation=inspect.Parameter.empty) for one in given.parameters.values()
        ]
        text = str(given.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    except (TypeError, ValueError):  # pybind11 writes the signature into the first line
        text = (getattr(found, "__doc__", None) or "").strip().split("\n")[0]
        if "(" not in text:
            return None
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def _members(table: Any, place: str) -> dict[str, Any]:
    try:
        found = table.found_at(place)
    except (ImportError, AttributeError) as error:
        return {"missing": f"{place}{_near(table, place, error)}"}
    known = _known(found)
    return {"absent": {name: _like(name, known) for name in table.MEMBERS[place]
                       if not _has(found, name)}}  # fmt: skip


def _has(found: Any, name: str) -> bool:
    return hasattr(found, name) or name in _known(found)


def _known(found: Any) -> list[str]:
    """The names of a module, or of a class and its instances, as far as the class's text tells."""
    known = dir(found)
    for one in getattr(found, "__mro__", ()):
        known += inspect.get_annotations(one)
        try:
            known += re.findall(r"\bself\.(\w+)\b[^=\n]*=(?!=)", inspect.getsource(one))
        except (OSError, TypeError):
            continue
    return known


def _schema(torch: Any, name: str) -> str | None:
    full, _, overload = name.partition(".")
    try:
        return str(torch._C._get_schema(full, overload))
    except RuntimeError:
        return None


if __name__ == "__main__":
    main()

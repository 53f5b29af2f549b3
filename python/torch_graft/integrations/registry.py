# python/torch_graft/integrations/registry.py: which libraries have an integration, for which versions, and which are on.
"""The table is libraries.json; each row is a file of this folder with `apply(changes, device)`."""

from __future__ import annotations

import json
import os
import re
import runpy
import sys
import warnings
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import torch  # noqa: F401 - attaches Graft, before attaching is imported

from torch_graft.attaching import attached_name
from torch_graft.integrations.changes import Changes

VARIABLE = "GRAFT_INTEGRATIONS"
SCRIPT = "GRAFT_SCRIPT"


class Library(NamedTuple):
    """since <= version < before are known. changes: (registered or changed, what, why)."""

    name: str
    distribution: str
    since: str
    before: str
    needs: list[str]
    changes: list[tuple[str, str, str]]


_enabled: dict[str, Changes] = {}
_refused: set[str] = set()


@cache
def libraries() -> dict[str, Library]:
    rows = json.loads(Path(__file__).with_name("libraries.json").read_text())
    return {row["name"]: Library(**row) for row in rows}


def installed(name: str) -> str | None:
    """The library's version in the environment; None where it is not installed."""
    try:
        return metadata.version(libraries()[name].distribution)
    except metadata.PackageNotFoundError:
        return None


def flaw(name: str) -> str | None:
    """Why the installed version stays as it is; None if it is a known one."""
    library, version = libraries()[name], installed(name)
    if version is None:
        return f"{library.distribution} is not installed"
    if _numbers(library.since) <= _numbers(version) < _numbers(library.before):
        return None
    return (f"{library.distribution} {version} is not known to Graft, which knows {library.since} and later "
            f"before {library.before}")  # fmt: skip


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.match(r"\d*(?:\.\d+)*", version)[0].split(".") if n)  # type: ignore[index]


def enabled() -> list[str]:
    """The names of the integrations that are on in this process."""
    return list(_enabled)


def enable(name: str) -> bool:
    """Lets the library use the attached device; True where it is on. Done twice, it changes nothing more.

    A version that is not known gets one warning and no change. ValueError: no such integration.
    ModuleNotFoundError: the library is not installed.
    """
    if name in _enabled:
        return True
    if name not in libraries():
        raise ValueError(f"no integration '{name}': expected one of {', '.join(libraries())}")
    if installed(name) is None:
        raise ModuleNotFoundError(flaw(name))
    device = attached_name()
    problem = flaw(name) if device else "Graft is not attached"
    if device is None or problem:
        if name not in _refused:
            _refused.add(name)
            warnings.warn(
                f"{problem}: {name} is left as it is, and may not use the device.", stacklevel=2
            )
        return False
    for need in libraries()[name].needs:
        if installed(need):
            enable(need)
    module = import_module(f"torch_graft.integrations.{name}")
    if name not in _enabled:  # importing the module may have done it
        changes = Changes()
        try:
            module.apply(changes, device)
        except BaseException:
            changes.undo()
            raise
        _enabled[name] = changes
    return True


def disable(name: str) -> None:
    """Takes back what enable(name) did, after the integrations that need this one."""
    for other in enabled():
        if name in libraries()[other].needs:
            disable(other)
    if name in _enabled:
        _enabled.pop(name).undo()


def load_script(names: dict[str, Any]) -> CodeType:
    """Enables what GRAFT_INTEGRATIONS names and makes a main module's names those of the script, whose code it returns.

    The script's path is sys.argv[1]; a spawned child, whose sys.argv[0] is no longer its parent's, finds it in
    GRAFT_SCRIPT.
    """
    for name in chosen():
        enable(name)
    if names["__name__"] == "__main__":
        del sys.argv[0]
        if sys.argv[0] == "-m":
            del sys.argv[0]
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
            raise SystemExit
        os.environ[SCRIPT] = os.path.abspath(sys.argv[0])
        sys.path[0] = os.path.dirname(os.environ[SCRIPT])
    path = os.environ[SCRIPT]
    names.update(__file__=path, __doc__=None, __package__=None, __cached__=None)
    del names["_load_script"]
    return compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)


def chosen() -> list[str]:
    """The names in GRAFT_INTEGRATIONS."""
    return [name for name in os.environ.get(VARIABLE, "").split(",") if name not in ("", "none")]

# python/torch_graft/device/additions.py: what packages of vendors add to the device's module.
"""An entry point of the group "graft.device_module" becomes an attribute of torch.<name>: its name is
the attribute's, its value what is imported when the attribute is first asked for."""

from __future__ import annotations

import logging
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

from torch_graft import drivers

GROUP = "graft.device_module"
_ANSWERED = ("Scheduling", "default_generators")  # by the module's __getattr__
_log = logging.getLogger("torch_graft.device")
_added: dict[str, EntryPoint] = {}
_flaws: list[str] = []


def install(module: ModuleType) -> None:
    """Called once, by attach, when the module has all that is Graft's. Imports no package."""
    for entry in drivers.entries(GROUP):
        flaw = _flaw(module, entry)
        if flaw is None:
            _added[entry.name] = entry
        else:
            _flaws.append(
                f"the package '{drivers.package(entry)}' asks for {module.__name__}.{entry.name} by its "
                f"entry point '{entry.name} = {entry.value}' (group {GROUP}), which is not possible: "
                f"{flaw}. Rename the entry point."
            )
            drivers.tell(_flaws[-1])
    if _added:
        _extend(module)


def added() -> dict[str, str]:
    """The name of each attribute that is added, with its package."""
    return {name: drivers.package(entry) for name, entry in _added.items()}


def flaws() -> list[str]:
    """A text for each entry point that adds nothing."""
    return list(_flaws)


def _flaw(module: ModuleType, entry: EntryPoint) -> str | None:
    name = entry.name
    if not name.isidentifier() or name.startswith("_"):
        return "a name of a public attribute is expected"
    if name in vars(module) or name in _ANSWERED:
        return f"the package 'torch-graft' has {module.__name__}.{name}"
    if name in _added:
        return f"the package '{drivers.package(_added[name])}' adds {module.__name__}.{name}"
    return None


def _extend(module: ModuleType) -> None:
    before = module.__getattr__

    def lookup(name: str) -> Any:
        if name not in _added:
            return before(name)
        value = vars(module)[name] = _load(module, name)
        return value

    vars(module).update(__getattr__=lookup, __dir__=lambda: sorted({*vars(module), *_added}))


def _load(module: ModuleType, name: str) -> Any:
    """Raises AttributeError, so that hasattr answers."""
    entry = _added[name]
    _log.debug("%s.%s comes from '%s'", module.__name__, name, entry.value)
    try:
        return entry.load()
    except Exception as error:
        raise AttributeError(
            f"{module.__name__}.{name} of the package '{drivers.package(entry)}' cannot be imported from "
            f"'{entry.value}': {type(error).__name__}: {error}. Update, repair or uninstall the package."
        ) from error

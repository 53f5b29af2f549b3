# python/torch_graft/drivers.py: driver libraries that installed packages offer.
"""Finds drivers by the entry-point group "graft.drivers".

Each entry point is a function that returns the absolute path of a driver library, or a pair of
that path and the name that the device shall have, or None where it has no driver for this machine.
A package that fails, or gives anything else, is told of and left out; the others work.
GRAFT_DRIVER_PACKAGES names the packages that are asked; code of others is not imported.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

GROUP = "graft.drivers"
EXPECTED = ("the absolute path of a driver library, a pair of that path and the device's name, "
            "or None")  # fmt: skip
_SHOWN = 200  # characters of a wrong value or of an error
_log = logging.getLogger("torch_graft.drivers")
_recorded: set[tuple[Any, ...]] = set()


@dataclass(frozen=True)
class Offer:
    """What one entry point gave."""

    entry: str
    path: str
    device_name: str | None
    package: str


def __getattr__(name: str) -> Callable[[], str | None]:
    """The entry point of one of this package's own drivers, by the driver's name.

    It gives the library's path, or None where the package was built without that driver.
    """
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    path = Path(__file__).absolute().parent / "drivers" / f"graft_{name}.so"
    return lambda: str(path) if path.exists() else None


class _Refused(Exception):
    """Says what a package did instead of giving a driver."""


def _path(given: Any) -> str:
    path = os.fspath(given) if isinstance(given, (str, os.PathLike)) else None
    if not isinstance(path, str):
        raise _Refused(f"its path is {_shown(given)}")
    if not path:
        raise _Refused("its path is empty")
    if not os.path.isabs(path):
        raise _Refused(f"its path {_shown(path)} is relative")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise _Refused(f"its path {_shown(path)} is not UTF-8") from None
    if "\0" in path:
        raise _Refused(f"its path {_shown(path)} holds a zero byte")
    return path


def _offer(entry: EntryPoint, given: Any) -> Offer:
    if not isinstance(given, tuple):
        if not isinstance(given, (str, os.PathLike)):
            raise _Refused(f"it returned {_shown(given)}")
        return Offer(entry.name, _path(given), None, package(entry))
    if len(given) != 2:
        raise _Refused(f"it returned {_shown(given)}")
    path, name = given
    if name is not None and (not isinstance(name, str) or not name):
        raise _Refused(f"its device name is {_shown(name)}")
    return Offer(entry.name, _path(path), name, package(entry))


def _shown(value: Any) -> str:
    return f"{_cut(ascii(value))} ({type(value).__name__})"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _words(error: BaseException) -> str:
    try:
        return _cut(" ".join(str(error).split()))
    except Exception:  # a class of the package's own, whose __str__ raises
        return "without words"


def _ask(entry: EntryPoint) -> Offer | None:
    """Raises _Refused for whatever an entry point does but end the program by Ctrl-C."""
    try:
        given = entry.load()()
        return None if given is None else _offer(entry, given)
    except (_Refused, KeyboardInterrupt):
        raise
    except SystemExit as error:
        raise _Refused(f"it called sys.exit({_words(error)})") from error
    except BaseException as error:
        raise _Refused(f"it raised {type(error).__name__}: {_words(error)}") from error


def package(entry: EntryPoint) -> str:
    """The name of the package that an entry point is of."""
    name = None if entry.dist is None else entry.dist.metadata["Name"]
    return name or entry.value.split(":")[0]


def _normal(name: str) -> str:
    """A package's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _trusted(entry: EntryPoint) -> bool:
    names = os.environ.get("GRAFT_DRIVER_PACKAGES")
    return names is None or _normal(package(entry)) in map(_normal, names.split(","))


def _order(entry: EntryPoint) -> tuple[bool, str, str]:
    """The drivers of other packages come before those of this one, each in the order of the names."""
    return entry.value.startswith(f"{__name__}:"), entry.name, package(entry)


def entries(group: str) -> list[EntryPoint]:
    """The entry points of a group that may be asked.

    Their order does not depend on the folders of the packages.
    """
    return sorted(filter(_trusted, entry_points(group=group)), key=_order)


def strangers() -> list[str]:
    """The packages with drivers whose entry points GRAFT_DRIVER_PACKAGES leaves out."""
    if "GRAFT_DRIVER_PACKAGES" not in os.environ:
        return []
    return sorted({package(one) for one in entry_points(group=GROUP) if not _trusted(one)})


def ask() -> tuple[list[Offer], list[str]]:
    """Asks the trusted entry points.

    Returns what they give, and a text for each that gives nothing useful.
    """
    found: list[Offer] = []
    flaws: list[str] = []
    if left_out := strangers():
        _log.debug("GRAFT_DRIVER_PACKAGES leaves out %s", ", ".join(left_out))
    for entry in entries(GROUP):
        try:
            offer = _ask(entry)
        except _Refused as flaw:
            flaws.append(
                f"the driver package '{package(entry)}' returned no driver from its entry point "
                f"'{entry.name} = {entry.value}': {flaw}. Expected {EXPECTED}. Update, repair or "
                "uninstall the package; the other drivers work."
            )
        else:
            found += [] if offer is None else [offer]
            path = "no driver" if offer is None else offer.path
            _log.debug("the package entry '%s' offers %s", entry.name, path)
    return found, flaws


def offers() -> list[Offer]:
    """What the entry points give; each that gives nothing useful becomes a warning."""
    found, flaws = ask()
    for flaw in flaws:
        tell(flaw)
    return found


def tell(text: str) -> None:
    """Warns while Graft attaches. Under -W error the devices stay, and the text is printed."""
    try:
        warnings.warn(text, stacklevel=3)
    except Warning:
        print(f"Graft: {text}", file=sys.stderr)


def record() -> None:
    """Logs what became of the drivers, each fact once. Loads them first if nothing has."""
    if not _log.isEnabledFor(logging.INFO):
        return
    from torch_graft import _C

    for name, path in _C.drivers():
        _once("'%s' loaded from %s", name, path)
    for path, reason in _C.refusals():
        _once("%s refused: %s", path, reason)
    for name, reason in _C.absences():
        _once("'%s' finds no device: %s", name, reason or "it gives no reason")
    count = _C.device_count()
    for name, ordinal, device, index in _C.found_devices():
        use = "not used" if index < 0 else f"device {index}"
        _once("%s:%d is '%s' (%s)", name, ordinal, device,
              use if index < count else "carries a device of torch.device('ve')")  # fmt: skip


def _once(text: str, *facts: Any) -> None:
    if (text, *facts) not in _recorded:
        _recorded.add((text, *facts))
        _log.info(text, *facts)

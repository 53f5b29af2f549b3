# python/torch_graft/drivers.py: driver libraries that installed packages offer.
"""Finds drivers by the entry-point group "graft.drivers".

Each entry point is a function that returns the absolute path of a driver library, or a pair of
that path and the name that the device shall have, or None where it has no driver for this machine.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

GROUP = "graft.drivers"


@dataclass(frozen=True)
class Offer:
    """What one entry point gave."""

    entry: str
    path: str
    device_name: str | None


FOLDER = Path(__file__).absolute().parent / "drivers"


def __getattr__(driver: str) -> Callable[[], str | None]:
    """The entry point of a driver in this package, by its name: gives the library's path.

    None where the package was built without it, because its vendor's headers were missing.
    """
    if driver.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {driver!r}")
    path = FOLDER / f"graft_{driver}.so"
    return lambda: str(path) if path.exists() else None


def offers() -> list[Offer]:
    """Asks every entry point; one that fails becomes a warning."""
    found = []
    for entry in entry_points(group=GROUP):
        try:
            given = entry.load()()
            if given is None:
                continue
            path, name = given if isinstance(given, tuple) else (given, None)
            found.append(Offer(entry.name, str(path), name))
        except Exception as error:
            warnings.warn(
                f"the driver package '{entry.name}' ({entry.value}) gave no driver: "
                f"{type(error).__name__}: {error}. Repair or uninstall it.",
                stacklevel=2,
            )
    return found

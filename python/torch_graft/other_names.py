# python/torch_graft/other_names.py: what to type instead of a name that another package offers.
"""PyTorch has one name for a device type of others. Who types another package's gets PyTorch's error,
which comes from C++ and cannot be changed; this adds a note to it where Python prints an error that
nobody caught, by sys.excepthook, and answers for checkpoints by torch.serialization.register_package.
Nothing is registered unless an installed package offers a name that the devices do not have."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import torch

from torch_graft import ve
from torch_graft.drivers import Offer
from torch_graft.naming import DEFAULT, VARIABLE

_UNKNOWN = re.compile(r"at start of device string: (\w+)")
_PRIORITY = 41  # after the device types that torch.serialization knows itself
_LONGEST = 10  # errors in a chain
_attached = ""
_others: dict[str, Offer | None] = {}  # name -> who offers it; None: Graft's default
_Hook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]


def explain(attached: str, offered: list[Offer]) -> None:
    """Called once, by attach."""
    global _attached
    _attached = attached
    for offer in offered:
        if offer.device_name and offer.device_name != attached:
            _others.setdefault(offer.device_name, offer)
    if not _others:
        return
    if attached != DEFAULT:
        _others.setdefault(DEFAULT, None)
    sys.excepthook = _with_note(sys.excepthook)
    torch.serialization.register_package(_PRIORITY, lambda storage: None, _refuse)


def instead(name: str) -> str:
    """What to type. REQUIRES: name is one of another package's. Counts the devices."""
    offer = _others[name]
    if offer is None:
        return f"The devices of Graft are called '{_attached}' here: use device='{_attached}'."
    offers = f"'{name}' is the name that the package '{offer.package}' offers for its devices"
    places = _places(offer)
    if not places:
        return f"{offers}, but none of them is used here. `python -m torch_graft doctor` says why."
    others = "" if len(places) == 1 else f" (all: {', '.join(places)})"
    return (
        f"{offers}. They are called '{places[0].partition(':')[0]}' here: use "
        f"device='{places[0]}'{others}. {VARIABLE}={name} before `import torch` gives all devices "
        f"of '{_attached}' the name '{name}'."
    )


def _places(offer: Offer) -> list[str]:
    """The devices of a package, as torch.device takes them."""
    from torch_graft import _C

    count = _C.device_count()
    if ve.attached():
        _C.ve.device_count()  # asks the drivers for the slot's devices
    path = os.path.realpath(offer.path)
    names = [name for name, loaded in _C.drivers() if loaded == path]
    return [
        f"{_attached}:{index}" if index < count else f"{ve.NAME}:{index - _C.FIRST_CARRIED}"
        for driver, _, _, index in _C.found_devices()
        if driver in names and index >= 0
    ]


def _with_note(before: _Hook) -> _Hook:
    def excepthook(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        try:
            notes = [(one, instead(name)) for one in _chain(error) if (name := _named(one))]
        except Exception:  # the error itself is what the user must see
            notes = []
        for one, text in notes:
            if sys.version_info >= (3, 11):
                one.add_note(text)
        before(kind, error, trace)
        if sys.version_info < (3, 11):
            for _, text in notes:
                print(text, file=sys.stderr)

    return excepthook


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_LONGEST):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _named(error: BaseException) -> str | None:
    """The other package's name that an error of PyTorch or of Python complains of."""
    name = None
    if isinstance(error, ModuleNotFoundError):
        root, _, name = str(error.name).partition(".")
        name = name.partition(".")[0] if root == "torch" else None
    elif isinstance(error, AttributeError):
        known = (torch.Tensor, torch.nn.Module, torch.UntypedStorage, torch.TypedStorage)
        if error.obj is torch or isinstance(error.obj, known):
            name = str(error.name).removeprefix("is_")
    elif isinstance(error, RuntimeError) and (found := _UNKNOWN.search(str(error))):
        name = found[1]
    return name if name in _others else None


def _refuse(storage: Any, location: str) -> None:
    """Called by torch.load for a location that nobody before has restored."""
    name = location.partition(":")[0]
    if name in _others:
        raise RuntimeError(
            f"The checkpoint was saved on the device '{location}'. {instead(name)} To load it, give "
            "torch.load a map_location."
        )

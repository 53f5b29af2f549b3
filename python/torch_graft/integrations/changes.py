# python/torch_graft/integrations/changes.py: what one integration writes into a library, and how it is taken back.
"""Only this file writes into objects of other packages; it refuses those of torch."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, MutableMapping
from types import ModuleType
from typing import Any

_ABSENT = object()


class Changes:
    """The writes of one integration, undone in reverse. Not for several threads at once."""

    def __init__(self) -> None:
        self._back: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, value: Any) -> Any:
        """Sets owner.name and returns what stood there (None if nothing did). ValueError: owner is torch's."""
        where = owner.__name__ if isinstance(owner, ModuleType) else owner.__module__
        if where.split(".")[0] == "torch":
            raise ValueError(
                f"{where}.{name} belongs to torch: use a registration function of torch"
            )
        before = vars(owner).get(name, _ABSENT)
        setattr(owner, name, value)

        def back() -> None:
            if vars(owner).get(name, _ABSENT) is not value:
                warnings.warn(
                    f"{where}.{name} was changed again after Graft's integration: it stays.",
                    stacklevel=4,
                )
            elif before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

        self._back.append(back)
        return None if before is _ABSENT else before

    def replace_function(self, old: Callable[..., Any], new: Callable[..., Any]) -> None:
        """Puts new where modules hold old, which may have come there by `from x import old`."""
        _swap(old, new)
        self._back.append(lambda: _swap(new, old))

    def put(self, table: MutableMapping[str, Any], key: str, value: Any) -> None:
        """Sets an entry of a table, such as a registry or os.environ; undoing restores or removes it."""
        before = table.get(key, _ABSENT) if key in table else _ABSENT
        table[key] = value
        if before is _ABSENT:
            self._back.append(lambda: table.__delitem__(key))
        else:
            self._back.append(lambda: table.__setitem__(key, before))

    def undo(self) -> None:
        while self._back:
            self._back.pop()()


def _swap(old: Any, new: Any) -> None:
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType) and module.__name__.split(".")[0] not in (
            "torch",
            "torch_graft",
        ):
            for name, value in list(vars(module).items()):
                if value is old:
                    setattr(module, name, new)

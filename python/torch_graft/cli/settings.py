# python/torch_graft/cli/settings.py: the table of the environment variables that Graft reads.
"""Each variable stands once, in settings.json: name, readers, values, default, meaning, and the page that says more.
docs/use/settings.md is written from it, the doctor prints it, and tools/check_design.py compares it with the code that
reads variables.

Readers are core, binding, the drivers by name, tests and build; the first one gives the section of the page.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

PREFIX = "GRAFT_"
PAGE = "docs/use/settings.md"
_NEAR = 0.85  # how much of a name must agree for a slip of the hand


class Setting(NamedTuple):
    """readers: names with commas between. meaning: what the variable is or does. page: more, from docs/use."""

    name: str
    readers: str
    values: str
    default: str
    meaning: str
    page: str = ""

    @property
    def for_users(self) -> bool:
        return self.readers not in ("tests", "build")


# Read as a file, not as a module's resource: tests read the table of a tree that is not installed.
_TABLE = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
SETTINGS = tuple(Setting(*row) for row in _TABLE["ours"])
FOREIGN = tuple(Setting(*row) for row in _TABLE["of others"])  # which change what Graft does


def in_force(environment: Mapping[str, str]) -> list[tuple[Setting, str]]:
    """The variables of the table that are set, with their values."""
    return [
        (one, environment[one.name]) for one in (*SETTINGS, *FOREIGN) if one.name in environment
    ]


def not_set(environment: Mapping[str, str]) -> list[str]:
    """The names that a user could set."""
    return [one.name for one in SETTINGS if one.for_users and one.name not in environment]


def unknown(environment: Mapping[str, str]) -> list[tuple[str, str | None]]:
    """Variables that look like Graft's and are not in the table, with the name that was probably meant."""
    parts = {one.name.removeprefix(PREFIX): one.name for one in SETTINGS}
    found: list[tuple[str, str | None]] = []
    for name in sorted(environment):
        if name.startswith(PREFIX) and name.removeprefix(PREFIX) not in parts:
            near = difflib.get_close_matches(name.removeprefix(PREFIX), parts, 1, _NEAR)
            found.append((name, parts[near[0]] if near else None))
    return found

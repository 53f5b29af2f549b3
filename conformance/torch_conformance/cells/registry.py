# conformance/torch_conformance/cells/registry.py: the suites and aspects that this process can run.
"""A module registers its functions when it is imported; who runs cells imports such modules first.

@registry.suite("op")
def run(session, cell): ...

@registry.aspect("op", "forward")
def forward(case): ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

# A suite's function takes a session and a cell; it gives an outcome, or None if each sample was right.
suites: dict[str, Callable[[Any, Any], Any]] = {}
# (suite, aspect) -> what the suite's function calls, with arguments of the suite's choice.
aspects: dict[tuple[str, str], Callable[..., Any]] = {}


def suite(name: str) -> Callable[[_Function], _Function]:
    return _into(suites, name)


def aspect(of: str, name: str) -> Callable[[_Function], _Function]:
    return _into(aspects, (of, name))


def _into(table: dict[Any, Any], key: Any) -> Callable[[_Function], _Function]:
    def register(function: _Function) -> _Function:
        table[key] = function
        return function

    return register


def runner(name: str) -> Callable[[Any, Any], Any]:
    """The function of a suite. Raises LookupError if no imported module registered one."""
    if name not in suites:
        raise LookupError(
            f"no suite '{name}' is registered, only {[*suites]}: import the module that has it first"
        )
    return suites[name]

# conformance/torch_conformance/testing/items.py: the runner's cells as pytest items, for a vendor's own CI.
"""Three lines make a test file:

    import torch_npu  # whatever makes the device known, when it does not load by itself
    from torch_conformance.testing import add_tests
    add_tests(globals(), device="npu")

The items go through PyTorch's instantiate_device_type_tests and PrivateUse1TestBase, so what a vendor
set there (set_test_configs, PYTORCH_TESTING_DEVICE_ONLY_FOR, ...) holds. Names are PyTorch's:
TestOpNPU::test_backward_nn_functional_relu_npu_float32.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from torch_conformance import SetupError
from torch_conformance import private_names as inside
from torch_conformance.cells import cases
from torch_conformance.cells.cases import Cell
from torch_conformance.cells.expectations import Expectations
from torch_conformance.cells.session import FALLBACK_POLICIES, Session
from torch_conformance.device.capabilities import (
    Capabilities,
    capabilities,
    requires,
    requires_autocast,
    requires_complex,
    requires_devices,
    requires_distributed,
    requires_dtype,
    requires_fp64,
    requires_generator,
    requires_memory_statistics,
    requires_pinned_memory,
    requires_streams,
    requires_timed_events,
)
from torch_conformance.device.lookup import load_plugin
from torch_conformance.suites import upstream  # noqa: F401 (registers the suites)

__all__ = [
    "Capabilities", "add_tests", "capabilities", "declared_dtypes", "instantiate_device_type_tests",
    "requires", "requires_autocast", "requires_complex", "requires_devices", "requires_distributed",
    "requires_dtype", "requires_fp64", "requires_generator", "requires_memory_statistics",
    "requires_pinned_memory", "requires_streams", "requires_timed_events",
]  # fmt: skip

_Parametrizer: Any = cases.from_tests("TestParametrizer")
_TestCase: Any = cases.from_tests("TestCase")
instantiate_device_type_tests = cases.from_tests("instantiate_device_type_tests")

_KINDS: dict[str, Callable[[torch.dtype], bool]] = {
    "floating": lambda d: d.is_floating_point,
    "complex": lambda d: d.is_complex,
    "integral": lambda d: not (d.is_floating_point or d.is_complex or d == torch.bool),
    "bool": lambda d: d == torch.bool,
}
_Parameters = tuple[Callable[..., Any], str, dict[str, Any], Callable[[Any], list[Any]]]


def _type_of(device_class: Any) -> str:
    """The device type of a class of instantiate_device_type_tests, before and after its set-up."""
    name: str = device_class.device_type
    return inside.privateuse1_name() if name == "privateuse1" else name


class declared_dtypes(_Parametrizer):
    """Decorator: the test takes `dtype` and runs for each dtype that the device declares.

    kinds: "floating", "complex", "integral", "bool"; all of them when none is given.
    """

    def __init__(self, *kinds: str) -> None:
        unknown = set(kinds) - _KINDS.keys()
        if unknown:
            raise SetupError(f"no kind of dtype is called {sorted(unknown)}; there are {[*_KINDS]}")
        self.kinds = [_KINDS[kind] for kind in kinds or _KINDS]

    def _parametrize_test(
        self, test: Callable[..., Any], generic_cls: Any, device_cls: Any
    ) -> Iterator[_Parameters]:
        for dtype in capabilities(_type_of(device_cls)).dtypes():
            if any(kind(dtype) for kind in self.kinds):
                yield test, "", {"dtype": dtype}, lambda _: []


class _cells(_Parametrizer):
    """Decorator: the test takes `cell` and runs for each cell whose dtype the device declares."""

    def __init__(self, cells: list[Cell]) -> None:
        self.cells = cells

    def _parametrize_test(
        self, test: Callable[..., Any], generic_cls: Any, device_cls: Any
    ) -> Iterator[_Parameters]:
        found = capabilities(_type_of(device_cls))
        for cell in self.cells:
            allowed = device_cls.op_allowlist
            if cell.suite == "op" and allowed is not None and cell.entry not in allowed:
                continue
            parameters: dict[str, Any] = {"cell": cell}
            if cell.dtype != cases.ANY:
                parameters["dtype"] = getattr(torch, cell.dtype)
                if not found.supports(parameters["dtype"]):
                    continue
            marks = functools.partial(_overrides, device_cls, generic_cls, test, cell)
            yield _fresh(test), _plain(cell.entry), parameters, marks


def _fresh(test: Callable[..., Any]) -> Callable[..., Any]:
    """A copy of its own for each item, since decorators write into what they decorate."""

    @functools.wraps(test)
    def one(*args: Any, **kwargs: Any) -> Any:
        return test(*args, **kwargs)

    return one


def _plain(name: str) -> str:
    """A name as part of a test's: nn.functional.relu -> nn_functional_relu."""
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name)


def _overrides(
    device_cls: Any, generic_cls: Any, test: Any, cell: Cell, parameters: dict[str, Any]
) -> list[Any]:
    """The decorators that a vendor set for an operator through set_test_configs."""
    found: list[Any] = []
    for row in (device_cls.op_overrides or {}).get(cell.entry, []) if cell.suite == "op" else []:
        where = generic_cls.__name__, test.__name__, _type_of(device_cls), parameters.get("dtype")
        if row.is_active(*where, parameters):
            found.extend(row.decorators)
    return found


class CellTests(_TestCase):
    """What the classes of add_tests share: the session, and how an outcome becomes a test's."""

    options: dict[str, Any] = {}
    session: Session
    policy: str | None = None  # of the fallback, before these tests

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        device = cls.get_primary_device()
        counter = getattr(capabilities(device).module, "fallback", None)
        cls.policy = counter.policy() if counter is not None else None
        more = [Path(path) for path in cls.options["expectations"]]
        expectations = Expectations.built_in(torch.device(device).type, more)
        cls.session = Session(
            device, plugin=cls.options["plugin"], expectations=expectations,
            fallback=cls.options["fallback"],
        )  # fmt: skip

    @classmethod
    def tearDownClass(cls) -> None:
        if cls.policy is not None and cls.session.counter is not None:
            cls.session.counter.set_policy(cls.policy)
        super().tearDownClass()

    def run_cell(self, cell: Cell) -> None:
        outcome = self.session.run(cell)
        if outcome.status in ("skip", "xfail"):
            self.skipTest(f"{outcome.status}: {outcome.reason}")
        if outcome.status != "pass":
            self.fail(f"{outcome.status}: {outcome.message}")


def _test(aspect: str, cells: list[Cell]) -> Callable[..., None]:
    def test(self: CellTests, device: str, cell: Cell, dtype: torch.dtype | None = None) -> None:
        self.run_cell(cell)

    test.__name__ = test.__qualname__ = f"test_{aspect}"
    made: Callable[..., None] = _cells(cells)(test)
    return made


def _check(device: str | None, fallback: str, shard: tuple[int, int]) -> None:
    if device is not None and not capabilities(device).count:
        raise SetupError(f"there is no device of type '{device}' on this machine")
    if fallback not in FALLBACK_POLICIES or not 1 <= shard[0] <= shard[1]:
        raise SetupError(
            f"fallback={fallback!r} must be one of {[*FALLBACK_POLICIES]}, and shard={shard} must be "
            "(k, n) with 1 <= k <= n"
        )


def add_tests(
    scope: dict[str, Any],
    device: str | None = None,
    *,
    suites: list[str] | None = None,
    ops: list[str] | None = None,
    dtypes: list[str] | None = None,
    aspects: list[str] | None = None,
    shard: tuple[int, int] = (1, 1),
    fallback: str = "allow",
    expectations: list[str | os.PathLike[str]] | None = None,
    plugin: str | None = None,
    prefix: str = "",
) -> list[type]:
    """Adds the runner's cells to scope, the globals() of a test file, as pytest items.

    device: a device type; None adds every one that instantiate_device_type_tests gives. ops, dtypes,
    aspects, suites: names and shell patterns as on the runner's command line. expectations: files of
    rows with reasons. plugin: a module to import first, as the command line's --plugin. prefix: part
    of the classes' names, where a file adds several selections. Returns the classes that were added;
    raises SetupError for what is unknown.
    """
    loaded = load_plugin(plugin)
    _check(device, fallback, shard)
    cells = cases.select(suites, ops, dtypes, aspects, shard)
    options = {"plugin": loaded, "fallback": fallback, "expectations": expectations or []}
    kind = torch.device(device).type if device is not None else None
    if inside.is_privateuse1_available():
        inside.PrivateUse1TestBase.setUpClass()  # the first class gets the device's name too
    added: dict[str, type] = {}
    for suite in dict.fromkeys(cell.suite for cell in cells):
        tests: dict[str, Any] = {"options": options, "__module__": scope.get("__name__", __name__)}
        for aspect in dict.fromkeys(cell.aspect for cell in cells if cell.suite == suite):
            mine = [c for c in cells if (c.suite, c.aspect) == (suite, aspect)]
            tests[f"test_{aspect}"] = _test(aspect, mine)
        name = f"Test{prefix}{suite.capitalize()}"
        added[name] = type(name, (CellTests,), tests)
        instantiate_device_type_tests(
            added[name], added, only_for=kind and (kind,), allow_mps=kind == "mps",
            allow_xpu=kind == "xpu",
        )  # fmt: skip
    if not added:
        raise SetupError(
            f"PyTorch gives no test class for '{device}': instantiate_device_type_tests knows cpu, "
            "cuda, xpu, mps, hpu and the device registered as PrivateUse1"
        )
    if taken := added.keys() & scope.keys():
        raise SetupError(f"the file already has {sorted(taken)}: give add_tests another prefix=")
    scope.update(added)
    return list(added.values())

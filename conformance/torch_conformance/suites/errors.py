# conformance/torch_conformance/suites/errors.py: the aspect errors: wrong inputs are refused as the CPU refuses them.
"""The exception's type and text come from the databases' own error inputs."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import torch

from torch_conformance import private_names as inside
from torch_conformance.cells import registry
from torch_conformance.cells.cases import Cell
from torch_conformance.cells.outcome import NotApplicable
from torch_conformance.cells.session import Session
from torch_conformance.suites.case import Case
from torch_conformance.suites.sample_loop import Place, all_samples, one_line, require
from torch_conformance.tensors.samples import Carrier


def expect(function: Callable[[], Any], kind: Any, pattern: str) -> None:
    """function must raise kind with a text that holds pattern."""
    try:
        with warnings.catch_warnings():
            if isinstance(kind, type) and issubclass(kind, Warning):
                warnings.simplefilter("error", kind)
            function()
    except Exception as error:
        if isinstance(error, kind) and re.search(pattern, str(error)):
            return
        name = getattr(kind, "__name__", kind)
        require(f"raises {one_line(error)} instead of {name} with '{pattern}'")
    require(f"raises nothing instead of {getattr(kind, '__name__', kind)} with '{pattern}'")


def _surfaces_late(session: Session, function: Callable[[], Any]) -> bool:
    """function returns, and the next synchronisation raises."""
    try:
        function()
    except Exception:
        return False
    try:
        session.synchronize()
    except Exception:
        return True
    return False


def _all(session: Session, cell: Cell, rows: list[Any], call: Callable[[Place, Any], Any]) -> None:
    """rows: error inputs, or (the device's, the CPU's own) pairs of them."""

    def check(place: Place, number: int, row: Any) -> None:
        on_cpu = place.device.type == "cpu"
        chosen = row[on_cpu and session.device.type != "cpu"] if isinstance(row, tuple) else row

        def run() -> None:
            call(place, chosen)
            if not on_cpu:
                session.synchronize()

        late = not on_cpu and session.expectations.late_errors(cell)
        with place.surrounding():
            if late and _surfaces_late(session, lambda: call(place, chosen)):
                return
            expect(run, chosen.error_type, chosen.error_regex)

    all_samples(session, cell, rows, check, Carrier(session.device))


def _made(make: Callable[[], Any]) -> list[Any]:
    try:
        return list(make())
    except Exception as error:
        raise NotApplicable(f"upstream's error inputs cannot be made: {error}") from error


@registry.aspect("op", "errors")
def operator(case: Case) -> None:
    """The device's own error inputs, since some are about devices; the CPU's where they differ."""
    own = str(case.session.device)
    theirs = _made(lambda: case.info.error_inputs("cpu"))
    rows = theirs if own == "cpu" else _made(lambda: case.info.error_inputs(own))
    if len(rows) == len(theirs):
        rows = list(zip(rows, theirs, strict=True))

    def call(place: Place, row: Any) -> Any:
        sample = row.sample_input
        return case.call((sample.input, sample.args, sample.kwargs))

    _all(case.session, case.cell, rows, call)


def module(session: Session, cell: Cell, info: Any) -> None:
    def rows() -> Any:
        return info.module_error_inputs_func(
            info, device="cpu", dtype=torch.float32, requires_grad=False, training=False
        )

    def call(place: Place, row: Any) -> Any:
        given = row.module_error_input
        made = given.constructor_input
        module = info.module_cls(*made.args, **made.kwargs)
        if row.error_on == inside.ModuleErrorEnum.CONSTRUCTION_ERROR:
            return module
        args, kwargs = place.carrier((given.forward_input.args, given.forward_input.kwargs))
        return module.to(place.device)(*args, **kwargs)

    _all(session, cell, _made(rows), call)


def optimizer(session: Session, cell: Cell, info: Any) -> None:
    def call(place: Place, row: Any) -> Any:
        given = row.optimizer_error_input
        params = given.params
        if params is None:
            params = [torch.nn.Parameter(torch.ones(10, 10))]
        optimizer = info.optim_cls(_carried(params, place), **place.carrier(given.kwargs, True))
        if row.error_on == inside.OptimizerErrorEnum.STEP_ERROR:
            for group in optimizer.param_groups:
                for p in group["params"]:
                    p.grad = torch.ones_like(p)
            optimizer.step()

    _all(session, cell, _made(lambda: info.optim_error_inputs_func("cpu", torch.float32)), call)


def _carried(params: Any, place: Place) -> Any:
    """Parameters of any structure on the device; one given twice stays one."""
    seen: dict[int, Any] = {}

    def carry(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            copy = value.detach().to(place.device, copy=True)
            return seen.setdefault(id(value), torch.nn.Parameter(copy))
        if isinstance(value, list | tuple):
            return type(value)(map(carry, value))
        return {k: carry(v) for k, v in value.items()} if isinstance(value, dict) else value

    return carry(params)

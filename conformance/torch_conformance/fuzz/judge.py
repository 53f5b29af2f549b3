# conformance/torch_conformance/fuzz/judge.py: runs the calls of a plan on the CPU and the device, and judges them.
"""The CPU comes first: what it cannot run in its time and memory is drawn again.

A call may kill or hang its process on either side; sample numbers tell the pool where it was.
"""

from __future__ import annotations

import contextlib
import functools
import re
import resource
import signal
import time
from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.cells import registry
from torch_conformance.cells.cases import Cell
from torch_conformance.cells.session import Session
from torch_conformance.fuzz import entries, undefined
from torch_conformance.fuzz.calls import DRAWS, SUITE, Call, Entry, Overload, Plan, Subject, subject
from torch_conformance.fuzz.findings import Finding, FuzzOutcome
from torch_conformance.fuzz.trial import HOME, Elsewhere, Result, perform
from torch_conformance.suites.sample_loop import is_random, one_line
from torch_conformance.tensors import compare, samples, ties

CPU_SECONDS = 3  # of processor time, then the process ends: the CPU itself hangs
CPU_SLOW = 1.0  # a call that takes longer is drawn again
MEMORY = 1 << 30  # bytes that the CPU may take beside what it has
TIMES = 10  # the tolerances: the fuzz looks for wrong numbers, not for roundings
FLOATING = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64,
            torch.complex128, torch.complex32)  # fmt: skip
NO_MEMORY = re.compile(r"can't allocate memory|bad_alloc|MemoryError|out of memory|alloc_cpu", re.I)
NO_KERNEL = re.compile(
    r"Could not run '|is not implemented for .*CPU|no kernel image|MKL FFT error: .*Inconsistent"
)
NARROW = re.compile(
    r"not (?:implemented|supported) for '?\"?(?:Half|BFloat16|ComplexHalf|Float8|UInt(?:16|32|64)|torch\.(?:float16|bfloat16))"
)
UNTYPED = re.compile(r"^\w+::\w+\(\) (?:Expected a value|expected at most|is missing|got)")
UNTYPED_KERNEL = re.compile(r"not implemented for '")
FOREIGN = ("to('meta')", ".cpu()")


def place(number: int, attempt: int, there: bool) -> int:
    """The number that the pool sees while a call runs; read by placed()."""
    return 2 * (number * DRAWS + attempt) + there


def placed(value: int) -> tuple[int, int, bool]:
    number, attempt = divmod(value // 2, DRAWS)
    return number, attempt, bool(value % 2)


@contextlib.contextmanager
def _clock(kind: int, seconds: float) -> Any:
    """The process dies of the timer's signal if the block takes longer."""
    signal.setitimer(kind, seconds)
    try:
        yield
    finally:
        signal.setitimer(kind, 0)


@functools.cache
def _limit_memory() -> None:
    """A CPU kernel that would take much memory is refused it, and its call is drawn again."""
    with open("/proc/self/status") as file:
        used = next((int(line.split()[1]) for line in file if line.startswith("VmData:")), 0) << 10
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY, hard))


@registry.suite(SUITE)
def run(session: Session, cell: Cell) -> FuzzOutcome:
    """The outcome of one cell, whose aspect is the text of its plan."""
    for name in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(name, signal.SIG_DFL)
    with contextlib.suppress(OSError, ValueError):
        _limit_memory()
    what, plan = subject(cell.entry), Plan.of(cell.aspect)
    judge = Judge(session, what, plan)
    with torch.no_grad():
        for number in range(plan.first, plan.last):
            judge.found.next = number + 1
            if not judge.trial(number):
                judge.found.status = "error"
                break
            session.samples += 1
    return judge.found


class Judge:
    """Runs and judges the calls of one plan."""

    def __init__(self, session: Session, what: Subject, plan: Plan) -> None:
        self.session = session
        self.what = what
        self.plan = plan
        self.cell = Cell(SUITE, what.name, "any", "values")
        self.around: Callable[[], Any] = lambda: session.on_device(self.cell)
        self.home_form = _dense if session.expectations.dense_arguments(self.cell) else _given
        self.found = FuzzOutcome("pass")
        info = entries.entry(what.name) if isinstance(what, Entry) else None
        self.allowed = {
            dtype: compare.Tolerance(TIMES * one.relative, TIMES * one.absolute)
            for dtype in FLOATING
            for one in [(session.tolerances(info) if info else {}).get(dtype, compare.default_tolerance(dtype))]
        }  # fmt: skip

    def trial(self, number: int) -> bool:
        """Draws and runs one call; False when the device no longer works."""
        for attempt, call in enumerate(self.plan.draws(self.what, number)):
            if attempt < self.plan.attempt:
                continue
            self.session.progress(place(number, attempt, False))
            home = self._at_home(call) if self.plan.at_home else None
            if home is None and self.plan.at_home:
                self.found.counts["drawn again"] += 1
                continue
            self.session.progress(place(number, attempt, True))
            return self._there(number, call, home)
        self.found.counts["not drawn"] += 1
        return True

    def _at_home(self, call: Call) -> Result | None:
        """What the CPU gives; None for a call that is no use."""
        start = time.perf_counter()
        with _clock(signal.ITIMER_PROF, CPU_SECONDS):
            home = perform(call, HOME, contextlib.nullcontext(), self.home_form)
        slow = time.perf_counter() - start > CPU_SLOW
        text = f"{type(home.error).__name__}: {home.error}" if home.error else ""
        if slow or not home.built or NO_MEMORY.search(text) or UNTYPED.search(str(home.error)):
            return None
        return home

    def _there(self, number: int, call: Call, home: Result | None) -> bool:
        """Runs the call on the device and judges it; False when the device no longer works."""
        text = None
        with _clock(signal.ITIMER_REAL, self.plan.seconds):
            there = perform(call, self.session.device, self.around())
            try:
                self.session.synchronize()
                if home is not None and home.error is None and there.error is None:
                    text = self._difference(call, there, home)
            except Exception as error:
                there = there._replace(error=there.error or error)
            works = there.error is None or self.session.usable()
        if isinstance(there.error, Elsewhere):
            self.found.counts["no tensor of the device"] += 1
            return True
        if there.error is not None and not works:
            self._add("survives", "error", f"the device no longer works after {one_line(there.error)}",
                      number, call)  # fmt: skip
            return False
        if home is None:
            self.found.counts["CPU dies"] += 1
        elif home.error is not None and there.error is not None:
            self._both_refuse(number, call, home.error, there.error)
        elif home.error is not None:
            self._taken(number, call, home.error, there)
        elif there.error is not None:
            self._refused(number, call, there)
        else:
            self.found.counts["compared"] += 1
            if text:
                self._add("values", "fail", text, number, call)
        return True

    def _add(self, aspect: str, status: str, message: str, number: int, call: Call) -> None:
        self.found.findings.append(Finding(aspect, status, message, number, call.packed()))

    def _both_refuse(self, number: int, call: Call, home: Exception, there: Exception) -> None:
        self.found.counts["refused by both"] += 1
        inner = "INTERNAL ASSERT" in str(there) and "INTERNAL ASSERT" not in str(home)
        if type(home) is not type(there) or inner:
            text = f"{one_line(there, 160)} -- the CPU: {one_line(home, 160)}"
            self._add("words", "pass", text, number, call)

    def _taken(self, number: int, call: Call, error: Exception, there: Result) -> None:
        text = str(error)
        if NO_KERNEL.search(text) or NARROW.search(text) or "INTERNAL ASSERT" in text:
            self.found.counts["the CPU has no kernel"] += 1
            return
        results = list(compare.leaves(there.value))
        if UNTYPED_KERNEL.search(text) and results and not any(t.numel() for t in results):
            self.found.counts["another dtype, but no element"] += 1
            return
        self.found.counts["compared"] += 1
        self._add("refuses", "fail", f"taken; the CPU raises {one_line(error)}", number, call)

    def _refused(self, number: int, call: Call, there: Result) -> None:
        if any(word in a.text for a in call.arguments for word in FOREIGN):
            self.found.counts["tensors of two devices refused"] += 1
            return
        self.found.counts["compared"] += 1
        assert there.error is not None
        how = one_line(there.error) if there.built else f"no argument: {one_line(there.error)}"
        self._add("accepts", "error", how, number, call)

    def _difference(self, call: Call, there: Result, home: Result) -> str | None:
        actual, expected = there.compared(), home.compared()
        if self.home_form is _dense:  # copies are views of nothing
            del actual[2], expected[2]
        if any(t.is_meta for t in (*compare.leaves(actual), *compare.leaves(expected))):
            return compare.metadata_difference(actual[0], expected[0])
        text = compare.difference(actual, expected, self.allowed)
        if text is None:
            return None
        reason = undefined.open_value(call, home, expected)
        if reason:
            self.found.counts[reason] += 1
            return compare.metadata_difference(actual, expected)
        if undefined.same_but_infinite(actual, expected, home.arguments, self.allowed):
            self.found.counts["infinity or NaN, of infinite inputs"] += 1
            return None
        if not self.session.values_compared(self.cell) or self._random(call):
            return compare.metadata_difference(actual, expected)
        if self._near(call, actual, expected):
            return None
        if _unwritten(call, expected):
            self.found.counts["memory that the CPU does not write"] += 1
            return compare.metadata_difference(actual, expected)
        if ties.same_elements(self._tie_name(), there.value, home.value, _inputs(call)):
            return None
        return text

    def _random(self, call: Call) -> bool:
        if isinstance(self.what, Overload):
            return self.what.draws_numbers
        return is_random(lambda: perform(call, HOME, contextlib.nullcontext()))

    def _tie_name(self) -> str:
        return (
            self.what.name
            if isinstance(self.what, Entry)
            else self.what.name.split("::")[1].split(".")[0]
        )

    def _near(self, call: Call, actual: Any, expected: Any) -> bool:
        with samples.default_dtype(torch.float64):
            exact = perform(call, HOME, contextlib.nullcontext(),
                            lambda value: samples.upcast(self.home_form(value)))  # fmt: skip
        if exact.error is not None or compare.difference(actual[2:], expected[2:], self.allowed):
            return False
        try:  # an upcast tensor is no view: what views are of, is compared above
            return compare.no_farther(actual[:2], expected[:2], exact.compared()[:2], self.allowed)
        except RuntimeError:
            return False


def _given(value: Any) -> Any:
    return value


def _dense(value: Any) -> Any:
    strided = isinstance(value, torch.Tensor) and samples.is_strided(value)
    return value.contiguous() if strided else value


def _inputs(call: Call) -> tuple[Any, Any, Any]:
    """The arguments on the CPU, as (first, others, named)."""
    given = perform(call, HOME, contextlib.nullcontext()).arguments
    count = sum(not a.keyword for a in call.arguments)
    names = [a.name for a in call.arguments[count:]]
    return given[0], given[1:count], dict(zip(names, given[count:], strict=False))


def _unwritten(call: Call, expected: Any) -> bool:
    """Whether the CPU's result has elements that nothing wrote: they change if new memory is filled."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)  # fills what empty() gives
    try:
        again = perform(call, HOME, contextlib.nullcontext())
    finally:
        torch.use_deterministic_algorithms(before)
    return again.error is None and compare.difference(again.compared(), expected, {}) is not None

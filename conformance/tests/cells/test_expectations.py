# conformance/tests/cells/test_expectations.py: rows decide what a failure or a pass means, and each has a reason.
from __future__ import annotations

import fnmatch

import pytest
import torch

from torch_conformance import SetupError
from torch_conformance.cells import cases
from torch_conformance.cells.cases import Cell
from torch_conformance.cells.expectations import (
    ACCELERATOR,
    BUILT_IN,
    Expectations,
    _patterns,
    _toml,
    dropped_launches,
    upstream_mark,
)
from torch_conformance.cells.outcome import Outcome
from torch_conformance.suites import errors

CELL = Cell("op", "fft.fft", "complex64", "backward")


def rows(tmp_path, text, device="npu"):
    path = tmp_path / "own.toml"
    path.write_text(text)
    return Expectations.built_in(device, [path])


def row(kind="xfail", **patterns):
    lines = [f'{name} = "{value}"' for name, value in patterns.items()]
    return "\n".join(["[[expectation]]", f'kind = "{kind}"', 'reason = "why"', *lines, ""])


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        ({}, True),
        ({"suite": "op", "entry": "fft.*", "dtype": "complex*", "aspect": "backward"}, True),
        ({"entry": "fft"}, False),
        ({"entry": "fftx*"}, False),
        ({"dtype": "float*"}, False),
        ({"device": "npu"}, True),
        ({"device": "cuda"}, False),  # device-specific
    ],
)
def test_patterns(patterns, found, tmp_path):
    assert (rows(tmp_path, row(**patterns)).find(CELL) is not None) == found


@pytest.mark.parametrize(
    ("names", "found"),
    [('entry = ["add", "fft.*"]', True), ('entry = ["add", "mul"]', False),
     ('aspect = ["forward", "back*"]', True), ('dtype = ["bool", "float*"]', False),
     ('device = ["cuda", "n*"]', True), ('device = ["cuda", "cpu"]', False)],
)  # fmt: skip
def test_one_row_may_name_several(names, found, tmp_path):
    text = f'[[expectation]]\n{names}\nkind = "skip"\nreason = "why"\n'
    assert (rows(tmp_path, text).find(CELL) is not None) == found


def test_a_later_row_wins(tmp_path):
    assert rows(tmp_path, row("skip") + row("values", entry="fft.*")).find(CELL).kind == "values"


@pytest.mark.parametrize(
    ("status", "judged"),
    [("fail", "xfail"), ("error", "xfail"), ("crash", "xfail"), ("hang", "xfail"),
     ("pass", "xpass"), ("skip", "skip")],
)  # fmt: skip
def test_expected_failures(status, judged, tmp_path):
    found = rows(tmp_path, row()).judged(CELL, Outcome(status))
    assert found.status == judged
    assert found.reason == ("why" if judged != "skip" else "")


@pytest.mark.parametrize(
    "text",
    ['[[expectation]]\nkind = "xfail"\n', row("maybe"), row(entyr="add"), "[[expectation]\n",
     '[[expectation]]\nkind = "skip"\nreason = " "\n'],
)  # fmt: skip
def test_bad_rows_are_refused(text, tmp_path):
    with pytest.raises(SetupError, match=r"own\.toml"):
        rows(tmp_path, text)


def test_built_in_rows_name_entries_that_exist():
    schemas = torch._C._jit_get_all_schemas()
    overloads = {f"{s.name}.{s.overload_name}".rstrip(".") for s in schemas}
    databases = {entry for suite in cases.SUITES for entry in cases.entries(suite)}
    for row in _toml(BUILT_IN)["expectation"]:
        known = databases | overloads if row.get("suite") == "fuzz" else databases
        for pattern in _patterns(row, "entry"):
            assert fnmatch.filter(known, pattern), row


def test_an_upstream_mark_excuses_only_with_a_reason():
    random = Cell("op", "bernoulli", "float32", "forward")
    assert "non-deterministic" in upstream_mark(random, "npu")
    found = Expectations.built_in("npu").judged(random, Outcome("fail"))
    assert found.status == "xfail"
    assert found.reason.startswith("upstream's TestCommon.test_compare_cpu")
    silent = Cell("op", "linalg.lu", "float32", "forward")  # marked, but without a word
    assert upstream_mark(silent, "npu") is None
    assert Expectations.built_in("npu").judged(random, Outcome("pass")).status == "pass"


class _Device:
    """A session whose device finds an error when it is waited for, or none."""

    def __init__(self, error):
        self.error = error

    def synchronize(self):
        if self.error:
            raise RuntimeError(self.error)


@pytest.mark.parametrize(
    ("raises_at_the_call", "error", "late"),
    [(False, "out of range", True), (True, "out of range", False), (False, None, False)],
)
def test_only_an_error_of_the_synchronisation_is_late(raises_at_the_call, error, late):
    def call():
        if raises_at_the_call:
            raise IndexError("wrong words")

    assert errors._surfaces_late(_Device(error), call) == late


def test_late_errors_are_of_the_rows_that_say_so():
    cell = Cell("module", "nn.Embedding", "float32", "errors")
    assert Expectations.built_in("cuda").late_errors(cell)  # device-specific
    assert not Expectations.built_in("cpu").late_errors(cell)
    other = cell._replace(entry="nn.Linear")
    assert not Expectations.built_in("cuda").late_errors(other)  # device-specific


def test_what_holds_for_accelerators_holds_under_each_name_but_not_for_the_cpu():
    cell = Cell("op", "native_layer_norm", "bfloat16", "forward")
    for name in ("cuda", "npu", "anything"):  # device-specific
        assert Expectations.built_in(name).find(cell).kind == "skip"
    assert Expectations.built_in("cpu").find(cell) is None


def test_the_runners_own_rows_name_no_package_s_device():
    """Rows about one device's implementation are stated by its package."""
    named = {name for row in _toml(BUILT_IN)["expectation"] for name in _patterns(row, "device")}
    assert named == {"*", ACCELERATOR, "cuda"}  # device-specific


def test_environments_in_which_launches_are_dropped(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text('[[dropped_launches]]\nA = "1"\n[[dropped_launches]]\nA = "1"\nB = "x"\n')
    assert dropped_launches([BUILT_IN, path]) == [{"A": "1"}, {"A": "1", "B": "x"}]
    for text in ("[[dropped_launches]]\n", "[[dropped_launches]]\nA = 1\n"):
        path.write_text(text)
        with pytest.raises(SetupError, match="dropped_launches 1"):
            dropped_launches([path])

# conformance/tests/run/test_planted.py: ten wrong kernels, two crashes and one hang are found, and nothing else.
from __future__ import annotations

import pytest

import planted
from invocation import run

FORWARD = ("--suites", "op", "--dtypes", "float32", "--aspects", "forward", "--plugin", "planted")


@pytest.mark.seldom
def test_exactly_the_planted_faults_are_found(tmp_path):
    done = run(tmp_path, *FORWARD, "--time-limit", "20")
    assert done.code == 1, done.err
    cells = done.results()["cells"]
    red = {c["entry"]: c["status"] for c in cells if c["status"] not in ("pass", "skip")}
    expected = dict.fromkeys(planted.WRONG.values(), "fail")
    expected |= dict.fromkeys(planted.CRASHING.values(), "crash")
    expected |= dict.fromkeys(planted.HANGING.values(), "hang")
    assert red == expected
    for entry in expected:
        assert f" {entry} float32 forward" in done.out
    messages = {c["entry"]: c["message"] for c in cells}
    assert "SIGSEGV" in messages["frac"]
    assert "takes the process with it" in messages["frac"]
    assert "SIGABRT" in messages["histc"]
    assert "20 s" in messages["kthvalue"]
    assert "8 of 9 samples" in messages["hypot"]
    assert "not close" in messages["hypot"]
    skipped = [c for c in cells if c["status"] == "skip"]
    assert all(c["reason"] for c in skipped)
    names = {c["entry"].split("_")[0] for c in skipped}
    assert names == {"jiterator"}  # what CUDA compiles


def test_a_crash_leaves_the_other_aspects_of_its_entry(tmp_path):
    aspects = ("--aspects", "backward,forward,out,errors", "--plugin", "planted")
    done = run(tmp_path, "--suites", "op", "--ops", "frac,abs", "--dtypes", "float32", *aspects)
    found = done.statuses()
    assert found["frac forward"] == found["frac out"] == "crash"
    assert {v for k, v in found.items() if k.startswith("abs")} == {"pass"}
    assert len(found) == 6, found

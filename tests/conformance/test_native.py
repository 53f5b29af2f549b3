# tests/conformance/test_native.py: only what the device computed counts as native.
from __future__ import annotations

import pytest
import torch

from invocation import run
from sandbox import NAME, ROOT, build_c
from torch_graft.conformance.native import Origin, origin, verdict

X = torch.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("expected", "kind"),
    [
        (X + 0.5, Origin.COMPUTED),
        ((X.clone(), X.exp()), Origin.COMPUTED),
        (X.sum(), Origin.MAYBE_COPIED),  # one value is a constant for all that can be seen
        (X.t(), Origin.NOTHING),
        (X[1:], Origin.NOTHING),
        (torch.zeros(5), Origin.MAYBE_COPIED),
        (torch.full((3,), torch.nan), Origin.NOTHING),
        (torch.nn.functional.pad(X, (1, 2)), Origin.MAYBE_COPIED),
        (torch.ones(0), Origin.NOTHING),
        (X.clone(), Origin.MAYBE_COPIED),
        (X.amax(0), Origin.MAYBE_COPIED),
        (X.flip(0), Origin.MAYBE_COPIED),
        (X.int(), Origin.COMPUTED),
        ("text", Origin.NOTHING),
    ],
)
def test_where_values_come_from(expected, kind):
    assert origin(expected, [(X,), {}]) is kind


@pytest.mark.parametrize(
    ("found", "fallbacks", "native"),
    [
        ([True, True], {}, True),
        ([True, None], {}, True),
        ([True, False], {}, False),
        ([None, None], {}, None),
        ([True, True], {"aten::sort": 1}, False),
    ],
)
def test_verdict_of_both_runs(found, fallbacks, native):
    assert verdict(found, fallbacks) is native


def test_native_and_fallback_cells_of_the_device(tmp_path):
    names = "exp,mm,nn.functional.relu,sum,linalg.eig,clone,zeros_like"
    done = run(tmp_path, "--device", NAME, "--suites", "op", "--ops", names, "--dtypes", "float32",
               "--aspects", "forward,backward", "--prove-native")  # fmt: skip
    if NAME == "cpu":
        assert "does not drop its launches" in done.err
        return
    assert done.code == 0, done.out + done.err
    cells = done.results()["cells"]
    native = {f"{c['entry']} {c['aspect']}": c["native"] for c in cells}
    for entry in ("exp", "mm", "nn.functional.relu"):
        assert native[f"{entry} forward"] is native[f"{entry} backward"] is True
    assert native["linalg.eig forward"] is native["linalg.eig backward"] is False
    assert native["zeros_like forward"] is None
    assert (
        next(c["fallbacks"] for c in cells if c["entry"] == "linalg.eig")["aten::linalg_eig.out"]
        > 0
    )


def test_a_driver_that_cannot_give_the_proof_is_told_at_once(tmp_path):
    if NAME == "cpu":
        return
    tiny = build_c(tmp_path / "tiny.so", (ROOT / "tests/drivers/tiny.c").read_text())
    few = (
        "--device",
        NAME,
        "--suites",
        "op",
        "--ops",
        "exp",
        "--dtypes",
        "float32",
        "--aspects",
        "forward",
    )
    devices = {"GRAFT_DRIVER_PATH": tiny, "GRAFT_DEVICES": "tiny"}
    done = run(tmp_path / "out", *few, "--prove-native", **devices)
    assert done.code == 2
    for words in (f"'{NAME}' (driver 'tiny') does not drop its launches", "GRAFT_HOST_FAULTS=launch:drop",
                  "read each cell's fallbacks", "--fallback forbid"):  # fmt: skip
        assert words in done.err, done.err
    assert not (tmp_path / "out").exists(), "cells ran first"
    plain = run(tmp_path / "plain", *few, **devices)
    assert plain.code == 0, plain.out + plain.err
    (cell,) = plain.results()["cells"]
    assert cell["native"] is None
    assert sum(cell["fallbacks"].values()) > 0, "without the proof a run tells what fell back"

# tests/conformance/test_native.py: only what the device computed counts as native.
from __future__ import annotations

import pytest
import torch

from invocation import run
from sandbox import NAME
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

# tests/conformance/test_native.py: the proof of nativeness on the host driver, and on a driver that cannot give it.
from __future__ import annotations

from invocation import run
from sandbox import NAME, ROOT, build_c


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
    for words in (f"'{NAME}' (driver 'tiny') does not drop its launches", "GRAFT_DRIVER_TRACE=drop=launches",
                  "read each cell's fallbacks", "--fallback forbid"):  # fmt: skip
        assert words in done.err, done.err
    assert not (tmp_path / "out").exists(), "cells ran first"
    plain = run(tmp_path / "plain", *few, **devices)
    assert plain.code == 0, plain.out + plain.err
    (cell,) = plain.results()["cells"]
    assert cell["native"] is None
    assert sum(cell["fallbacks"].values()) > 0, "without the proof a run tells what fell back"

# tests/conformance/test_devices.py: Graft's devices, under any name, as torch-conformance finds and judges them.
from __future__ import annotations

from pathlib import Path

import pytest
import tomllib

import torch_graft
from invocation import run
from sandbox import NAME
from torch_conformance.cells import cases
from torch_conformance.cells.cases import Cell
from torch_conformance.cells.expectations import Expectations, dropped_launches
from torch_conformance.device import package
from torch_conformance.testing import add_tests
from vendor_file import ran, scope

FEW = ("--suites", "op", "--ops", "add,linalg.eig", "--dtypes", "float32", "--aspects", "forward")
# Rows name each of these entries.
EXPECTED = ("--suites", "op,module", "--dtypes", "float32,bfloat16", "--aspects", "forward,autocast,errors",
            "--ops", "native_layer_norm,tensordot,nn.functional.binary_cross_entropy,nn.BCELoss,nn.Embedding")  # fmt: skip
FILE = Path(torch_graft.__file__).with_name("expectations.toml")


def test_the_runner_needs_nothing_of_graft(tmp_path):
    (tmp_path / "torch_graft.py").write_text("raise ImportError('not installed')\n")
    done = run(tmp_path / "out", *FEW, first=str(tmp_path),
               TORCH_DEVICE_BACKEND_AUTOLOAD="0")  # fmt: skip
    assert done.code == 0, done.err
    assert len(done.results()["cells"]) == 2


def test_a_device_under_another_name_gets_the_same_verdicts(tmp_path):
    """Under each name the rows hold that Graft's package states, and those for accelerators."""
    if NAME == "cpu":
        return
    names = {"usual": NAME, "other": "npu"}
    found = {key: run(tmp_path / key, "--device", name, *EXPECTED, GRAFT_DEVICE_NAME=name)
             for key, name in names.items()}  # fmt: skip
    for key, done in found.items():
        assert done.code == 0, done.out + done.err
        device = done.results()["device"]
        assert device["name"] == device["label"] == names[key]
        assert device["package"].startswith("torch-graft ")
    verdicts = [
        {(c["entry"], c["dtype"], c["aspect"]): (c["status"], c["samples"], c["reason"])
         for c in done.results()["cells"]}
        for done in found.values()
    ]  # fmt: skip
    assert verdicts[0] == verdicts[1]
    skipped = {entry for (entry, *_), (status, *_) in verdicts[0].items() if status == "skip"}
    assert {"tensordot", "nn.BCELoss", "native_layer_norm"} <= skipped
    assert verdicts[0]["nn.Embedding", "any", "errors"][0] == "pass"


def test_graft_states_rows_and_environments_for_its_devices():
    assert Path(FILE).is_file()
    assert package.files("cpu") == []
    embedding = Cell("module", "nn.Embedding", "any", "errors")
    for name in torch_graft_devices():
        assert package.files(name) == [FILE]
        assert Expectations.built_in(name).late_errors(embedding)
    assert [sorted(one) for one in dropped_launches([FILE])] == [
        ["GRAFT_DRIVER_TRACE"],
        ["GRAFT_DRIVER_TRACE"],
    ]


def torch_graft_devices():
    return [] if NAME == "cpu" else [NAME, "ve"]


def test_entries_of_graft_s_rows_exist():
    databases = {entry for suite in cases.SUITES for entry in cases.entries(suite)}
    for row in tomllib.loads(FILE.read_text())["expectation"]:
        entries = row["entry"] if isinstance(row["entry"], list) else [row["entry"]]
        assert set(entries) <= databases, row


def test_fallbacks_are_counted_and_forbidden(tmp_path):
    if NAME == "cpu":
        return
    allowed = run(tmp_path / "a", "--device", NAME, *FEW, "--start", "spawn")
    found = {c["entry"]: c["fallbacks"] for c in allowed.results()["cells"]}
    assert allowed.code == 0, allowed.out
    assert found["add"] == {}
    assert found["linalg.eig"]["aten::linalg_eig.out"] > 0
    forbidden = run(tmp_path / "b", "--device", NAME, *FEW, "--fallback", "forbid")
    assert forbidden.statuses() == {"add forward": "pass", "linalg.eig forward": "error"}
    assert "linalg_eig" in forbidden.out


def test_forbidden_fallback_fails_the_item():
    if NAME == "cpu":
        return
    found = ran(*add_tests(scope(), NAME, ops=["linalg.eig"], dtypes=["float32"],
                           aspects=["forward"], fallback="forbid"))  # fmt: skip
    assert "error: " in found[f"test_forward_linalg_eig_{NAME}_float32"]


@pytest.mark.parametrize(("devices", "index"), [("opencl:0", 0), ("host:0,opencl:0", 1)])
def test_a_runtime_that_forbids_forks_gets_workers_of_its_own(tmp_path, devices, index):
    """Counting OpenCL's devices, which importing op_db does, starts the vendors' threads."""
    chosen = ["--suites", "op", "--ops", "add", "--dtypes", "int64", "--aspects", "forward"]
    done = run(
        tmp_path, "--device", f"graft:{index}", *chosen, GRAFT_DEVICES=devices, OCL_ICD_VENDORS="",
        POCL_DEVICES="pthread",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.statuses() == {"add forward": "pass"}
    assert done.results()["device"]["hardware"].startswith("pthread")

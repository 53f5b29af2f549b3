# tests/conformance/test_devices.py: any device is found by its name, with or without Graft's compiled part.
from __future__ import annotations

from pathlib import Path

import pytest

import torch_graft
from invocation import run
from sandbox import NAME
from torch_graft.conformance import SetupError, devices

FEW = ("--suites", "op", "--ops", "add,linalg.eig", "--dtypes", "float32", "--aspects", "forward")


def test_the_runner_needs_nothing_of_the_compiled_part(tmp_path):
    package = tmp_path / "torch_graft"
    package.mkdir()
    source = Path(torch_graft.__file__).parent
    for name in ("__init__.py", "version.py", "conformance"):  # Python alone
        (package / name).symlink_to(source / name)
    done = run(tmp_path / "out", *FEW, first=str(tmp_path),
               TORCH_DEVICE_BACKEND_AUTOLOAD="0")  # fmt: skip
    assert done.code == 0, done.err
    assert len(done.results()["cells"]) == 2


def test_a_device_under_another_name(tmp_path):
    if NAME == "cpu":
        return
    done = run(tmp_path, "--device", "npu", *FEW, GRAFT_DEVICE_NAME="npu")
    assert done.code == 0, done.out + done.err
    device = done.results()["device"]
    assert device["name"] == device["label"] == "npu"
    assert device["package"].startswith("torch-graft ")


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


def test_the_device_that_is_tested_is_described():
    found = devices.describe("cpu", {"label": None})
    assert found["name"] == found["label"] == "cpu"
    assert found["package"] is None
    assert " x " in found["machine"]


@pytest.mark.parametrize("name", ["npuu", "cuda:", "meta"])
def test_devices_that_cannot_be_tested(name):
    with pytest.raises(SetupError, match=name.rstrip(":")):
        devices.check(name, None)


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

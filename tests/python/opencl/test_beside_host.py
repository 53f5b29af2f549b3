"""The host's device and OpenCL's in one process, in both orders; ranks on each are distributed/test_faults.py's."""

import json
import os
import subprocess
import sys

import pytest

import beside_host
from sandbox import ROOT

pytestmark = pytest.mark.one_mode


@pytest.fixture(scope="module", params=["host:0,opencl:0", "opencl:0,host:0"])
def outcomes(request):
    """What a process with both says of each check."""
    environment = {**os.environ, "GRAFT_DEVICES": request.param}
    environment.pop("OCL_ICD_VENDORS", None)
    command = [sys.executable, str(ROOT / "tests/python/opencl/beside_host.py")]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize("name", beside_host.NAMES)
def test_host_and_opencl(outcomes, name):
    assert outcomes[name] is None, outcomes[name]

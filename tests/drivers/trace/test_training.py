"""Programs of torch under the trace layer: nothing is found on two drivers, and each bug of faulty ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
pytestmark = pytest.mark.one_mode
PROGRAM = """
import torch
from torch import nn

torch.manual_seed(0)
inputs = torch.randn(256, 32)
classes = (inputs.sum(1) > 0).long()
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2)).to("graft")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(30):
    chosen = torch.randperm(256)[:64]
    loss = nn.functional.cross_entropy(model(inputs[chosen].to("graft")), classes[chosen].to("graft"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
side = torch.Stream("graft")
with side:
    doubled = torch.ones(1000, device="graft") * 2
torch.accelerator.current_stream().wait_stream(side)
graph = torch.graft.Graph()  # lives longer than the device
with torch.graft.graph(graph):
    doubled.mul_(1).add_(0)
graph.replay()
print(loss.item() < 0.3, doubled.sum().item())
"""


def train(driver: str, settings: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"GRAFT_DEVICES": driver, "GRAFT_DRIVER_TRACE": settings}
    if driver == "opencl":
        environment.pop("OCL_ICD_VENDORS", None)
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment
    )


@pytest.mark.parametrize("driver", ["host", pytest.param("opencl", marks=pytest.mark.seldom)])
def test_nothing_is_found(driver: str, tmp_path: Path) -> None:
    done = train(driver, f"verify=0.2,log={tmp_path}/calls.json")
    assert done.stdout == "True 2000.0\n", done.stderr
    assert f"'{driver}': " in done.stderr
    assert " calls, 0 findings in the driver, 0 in its caller" in done.stderr, done.stderr
    [log] = tmp_path.glob(f"calls.{driver}.*.json")
    events = json.loads(log.read_text())
    assert {"name", "ph", "ts", "pid", "tid", "args"} <= events[0].keys()
    calls = [event for event in events if event["ph"] == "X"]
    assert {"copy", "memory_allocate", "stream_create"} <= {call["name"] for call in calls}
    for call in calls:
        assert {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"} <= call.keys()
        assert call["args"]["status"] in {"OK", "BUSY", "NOT_FOUND", "UNSUPPORTED"}
    [copy] = [call for call in calls if call["name"] == "copy"][:1]
    assert {"stream", "to", "from", "bytes", "kind", "tag"} <= copy["args"].keys()


def test_planted_faults_reach_torch() -> None:
    done = train("host", "fail=kernel_launch:3:LAUNCH_FAILED")
    assert done.returncode == 1
    assert "a planted fault of kernel_launch: LAUNCH_FAILED" in done.stderr


def test_wrong_settings_are_named() -> None:
    done = train("host", "fast=1")
    assert "GRAFT_DRIVER_TRACE: 'fast=1': is unknown; the settings are log" in done.stderr


def found(variables: dict[str, str], settings: str) -> str:
    """What the layer writes about that driver while traffic.py runs on it."""
    name, device = variables["GRAFT_VARIANT"], os.environ.get("GRAFT_TEST_DEVICE", "graft")
    environment = os.environ | variables | {"GRAFT_DRIVER_TRACE": settings, "DEVICE": device}
    program = [sys.executable, str(HERE / "traffic.py")]
    done = subprocess.run(program, capture_output=True, text=True, env=environment, timeout=120)
    assert f"graft-driver-trace: '{name}': " in done.stderr, done.stderr
    return done.stderr


# Bugs that torch's traffic shows.
@pytest.mark.seldom
@pytest.mark.parametrize(
    ("name", "rule", "settings"),
    [
        ("stale_marks", "early", "1"),
        ("keeps_pattern", "kept-pointer", "verify=1"),
        ("shares_pinned", "overlap", "1"),
        ("whole_lines", "refused", "1"),
        ("microseconds", "impossible", "1"),
        ("one_busy_stream", "early", "1"),
        ("waits_by_thread", "early", "1"),
        ("shares_staging", "wrong-bytes", "1"),
    ],
)
def test_bugs_under_torch_are_found(
    variant: Callable[[str], dict[str, str]], name: str, rule: str, settings: str
) -> None:
    text = found(variant(name), settings)
    assert any(
        f"driver '{name}': " in line and f"[{rule}]" in line for line in text.splitlines()
    ), text


@pytest.mark.seldom
@pytest.mark.parametrize("name", ["plain", "late_copies"])
def test_nothing_is_found_in_right_drivers(
    variant: Callable[[str], dict[str, str]], name: str
) -> None:
    text = found(variant(name), "verify=0.3")
    [summary] = [line for line in text.splitlines() if f": '{name}': " in line]
    assert " calls, 0 findings in the driver, 0 in its caller" in summary, text


def test_dropped_launches_compute_nothing() -> None:
    program = "import torch; print((torch.arange(4, device='graft') + 3).tolist())"
    environment = os.environ | {"GRAFT_DEVICES": "host", "GRAFT_DRIVER_TRACE": "drop=launches"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout != "[3, 4, 5, 6]\n"
    assert " calls, 0 findings in the driver, 0 in its caller" in done.stderr

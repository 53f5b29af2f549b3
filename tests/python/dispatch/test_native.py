"""Native means computed by the driver: when launches are dropped, every result comes out wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROBE = Path(__file__).with_name("native_probe.py")


def probe(device, **environment):
    ran = subprocess.run(
        [sys.executable, str(PROBE)], env=os.environ | {"DEVICE": device} | environment,
        capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_results_are_right_without_the_fault(device):
    found = probe(device, GRAFT_FALLBACK="forbid")
    assert {name: v for name, v in found.items() if v != "right"} == {}
    assert len(found) > 45


@pytest.mark.parametrize("mode", ["async", "inline"])
def test_results_are_wrong_when_launches_are_dropped(device, mode):
    found = probe(device, GRAFT_HOST_FAULTS="launch:drop", GRAFT_HOST_MODE=mode)
    assert {name: v for name, v in found.items() if v != "wrong"} == {}


STEP = """
    from torch.profiler import ProfilerActivity, profile
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Dropout(), torch.nn.Linear(72, 10)).to(D)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.randn(32, 1, 8, 8).to(D), torch.arange(32).remainder(10).to(D)
    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    step(); step()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        step()
    # A scalar that Python wraps takes 8 bytes on the CPU; data of an operator takes more.
    heavy = {e.name: e.self_cpu_memory_usage for e in found.events()
             if e.self_cpu_memory_usage > 64}
    counts = getattr(torch, 'graft', None)
    print(json.dumps([heavy, counts.fallback.total() if counts else 0]))
"""


def test_a_training_step_puts_no_data_on_the_cpu(device, python):
    heavy, fallbacks = python(STEP).value()
    assert device == "cpu" or (heavy == {} and fallbacks == 0)

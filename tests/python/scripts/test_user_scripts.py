"""Scripts as users write them, which know nothing of Graft, train on the device without the CPU."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from sandbox import ROOT, interpret

pytestmark = pytest.mark.one_mode

SCRIPTS = Path(__file__).parent
# Scripts that one process runs: transformers must not meet torchvision, which lies apart (tools/setup).
TOGETHER = {
    "hugging face": ("accelerate_loop", "trainer_bert"),
    "vision": ("torchvision_resnet50", "timm_vit"),
}
# Schemas that torchvision's library of C++ operators, which this wheel of torch cannot load, defines.
MISSING = """
library = torch.library.Library("torchvision", "DEF")
library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""
WATCH = """
import runpy
from torch.utils._pytree import tree_leaves

def watch(path):
    torch.graft.fallback.reset()
    before = torch.graft.statistics()["launches"]
    found = runpy.run_path(path)
    torch.graft.synchronize()
    counts = torch.graft.fallback.counts()
    places = lambda tree: sorted({t.device.type for t in tree_leaves(tree) if torch.is_tensor(t)})
    states = found["optimizer"].state.values()
    trained = {id(p) for g in found["optimizer"].param_groups for p in g["params"]}
    return {
        "launches": torch.graft.statistics()["launches"] - before,
        "fallbacks": {name: count.calls for name, count in counts.items()},
        "parameters": places([list(found["model"].parameters()), list(found["model"].buffers())]),
        "trained": all(id(p) in trained for p in found["model"].parameters()),
        "losses": [float(loss) for loss in found["losses"]],
        "losses on": places(found["losses"]),
        "state": {k: places([s.get(k) for s in states]) for k in {k for s in states for k in s}},
        "steps": sum(len(s) > 0 for s in states),
        "more": {k: v for k, v in found.items() if isinstance(v, (bool, float))},
        "results on": places([v for k, v in found.items() if k in ("logits", "gathered")]),
    }

print(json.dumps({name: watch(folder + "/" + name + ".py") for name in names}))
"""


@cache
def records(group):
    """What became of the scripts of one group, by name."""
    code = f"names, folder = {list(TOGETHER[group])}, {str(SCRIPTS)!r}\n"
    environment = {"ACCELERATE_TORCH_DEVICE": "graft", "TRANSFORMERS_VERBOSITY": "error"}
    if group == "vision":
        code += MISSING
        environment["PYTHONPATH"] = str(Path(sys.prefix) / "vision")
    return interpret(code + WATCH, timeout=280, **environment).value()


@pytest.mark.parametrize(
    ("group", "script"), [(group, name) for group, names in TOGETHER.items() for name in names]
)
def test_the_script_trains_on_the_device(group, script):
    found = records(group)[script]
    assert found["parameters"] == ["graft"]
    assert found["trained"], "the optimizer holds other parameters than the model"
    assert found["steps"] > 0
    # torch.optim keeps its count of steps on the CPU unless the step is fused or capturable.
    assert {key: on for key, on in found["state"].items() if key != "step"} != {}
    assert all(on == ["graft"] for key, on in found["state"].items() if key != "step")
    assert found["launches"] > 100
    assert found["fallbacks"] == {}
    losses = found["losses"]
    assert sum(losses[-2:]) < sum(losses[:2])


def test_results_stay_on_the_device():
    for group, names in TOGETHER.items():
        for name in names:
            found = records(group)[name]
            # The Trainer logs numbers, the others keep the losses where they were computed.
            assert found["losses on"] == ([] if name == "trainer_bert" else ["graft"])
            assert found["results on"] == ([] if name == "trainer_bert" else ["graft"])


def test_the_trainer_learns_and_evaluates():
    more = records("hugging face")["trainer_bert"]["more"]
    assert more["accuracy"] > 0.9


def test_accelerate_restores_a_checkpoint():
    assert records("hugging face")["accelerate_loop"]["more"]["restored"]


def test_the_scripts_know_nothing_of_graft():
    for names in TOGETHER.values():
        for name in names:
            assert "graft" not in (SCRIPTS / f"{name}.py").read_text().lower()


@pytest.mark.parametrize(("script", "lines"), [("amp_training", 3), ("resume", 4)])
def test_the_example_runs(tmp_path, script, lines):
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{script}.py"), "--out", str(tmp_path)],
        capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("  ok ") >= lines
    assert "FAIL" not in ran.stdout
    json.loads((tmp_path / f"{script}.json").read_text())

# tests/conformance/test_graft.py: the shard of Graft's own conformance run that every `make test` repeats.
"""float32, forward and backward, of op_db, module_db and optim_db; `make conformance` runs the whole.

On OpenCL's devices, whose kernels PoCL takes long to compile: a part of that, and of op_db in five dtypes.
"""

from __future__ import annotations

import os

import pytest

from invocation import run

pytestmark = [pytest.mark.any_driver, pytest.mark.any_runtime]

ASPECTS = "forward,backward,step,errors"
WHOLE = [("op,module,optim", "float32", ASPECTS, "1/1")]
PARTS = [
    ("op", "float32,int64,bool,bfloat16,float16", "forward,backward,errors", "7/40"),
    ("module,optim", "float32", ASPECTS, "3/12"),
]
CHOSEN = PARTS if "opencl" in os.environ.get("GRAFT_DEVICES", "") else WHOLE

ENTRIES = ["abs", "sub"] if CHOSEN is PARTS else [
    "abs", "sub", "addcdiv", "atan2", "fmod", "ge", "log", "logaddexp", "max.binary", "flip", "chunk",
    "masked_scatter", "diag_embed", "nn.functional.pad.circular"]  # fmt: skip


def nothing_to_compare(cell):
    """Upstream's databases have no sample that the CPU itself computes; no row of ours excuses it."""
    return cell["status"] == "skip" and cell["reason"].startswith("not applicable: ")


@pytest.mark.timeout(1500)
@pytest.mark.parametrize(("suites", "dtypes", "aspects", "shard"), CHOSEN)
def test_graft(suites, dtypes, aspects, shard, tmp_path):
    chosen = ["--suites", suites, "--dtypes", dtypes, "--aspects", aspects, "--shard", shard]
    done = run(tmp_path, "--device", "graft:0", *chosen, limit=1400)
    cells = done.results()["cells"]
    bad = [c for c in cells if c["status"] != "pass" and not nothing_to_compare(c)]
    assert not bad, "\n".join(f"{c['entry']} {c['aspect']}: {c['message']}" for c in bad)
    assert done.code == 0, done.out + done.err
    passed = sum(c["status"] == "pass" for c in cells)
    assert passed > 0.95 * len(cells)
    assert {c["suite"] for c in cells} == set(suites.split(","))


@pytest.mark.timeout(1500)
def test_layouts_and_refusals(tmp_path):
    chosen = ["--suites", "op", "--ops", ",".join(ENTRIES), "--dtypes", "float32,int64"]
    aspects = ["--aspects", "layouts,refusals"]
    done = run(tmp_path, "--device", "graft:0", *chosen, *aspects, limit=1400)
    cells = done.results()["cells"]
    bad = [c for c in cells if c["status"] != "pass"]
    assert not bad, "\n".join(f"{c['entry']} {c['dtype']}: {c['message']}" for c in bad)
    assert sum(c["samples"] for c in cells) > 10 * len(cells)

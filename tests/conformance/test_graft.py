# tests/conformance/test_graft.py: the shard of Graft's own conformance run that every `make test` repeats.
"""float32, forward and backward, of op_db, module_db and optim_db; `make conformance` runs the whole."""

from __future__ import annotations

import pytest

from invocation import run


def nothing_to_compare(cell):
    """Upstream's databases have no sample that the CPU itself computes; no row of ours excuses it."""
    return cell["status"] == "skip" and cell["reason"].startswith("not applicable: ")


@pytest.mark.timeout(1500)
def test_graft_in_float32(tmp_path):
    aspects = "forward,backward,step,errors"
    settings = ["--device", "graft", "--dtypes", "float32", "--aspects", aspects]
    done = run(tmp_path, *settings, limit=1400)
    cells = done.results()["cells"]
    bad = [c for c in cells if c["status"] != "pass" and not nothing_to_compare(c)]
    assert not bad, "\n".join(f"{c['entry']} {c['aspect']}: {c['message']}" for c in bad)
    assert done.code == 0, done.out + done.err
    passed = sum(c["status"] == "pass" for c in cells)
    assert passed > 0.95 * len(cells)
    assert {c["suite"] for c in cells} == {"op", "module", "optim"}

# conformance/tests/run/test_green.py: the CPU compared with itself in float64 is green, all suites and aspects.
from __future__ import annotations

import pytest

from invocation import run
from torch_conformance.cells import cases

DRAWN = {"layouts", "refusals"}  # a quarter of their cells: each computes everything twice


@pytest.mark.timeout(1500)
@pytest.mark.seldom
def test_the_cpu_in_float64(tmp_path):
    aspects = {aspect for suite in cases.SUITES for aspect in cases.ASPECTS[suite]} - DRAWN
    cells = green(tmp_path, "--aspects", ",".join(sorted(aspects)))
    assert {c["status"] for c in cells} == {"pass", "skip"}
    assert {c["suite"] for c in cells} == {"op", "module", "optim"}
    assert sum(c["samples"] for c in cells) > 80000


@pytest.mark.timeout(1500)
@pytest.mark.seldom
def test_layouts_and_refusals_of_the_cpu_in_float64(tmp_path):
    cells = green(tmp_path, "--aspects", ",".join(sorted(DRAWN)), "--shard", "2/4")
    assert {c["aspect"] for c in cells} == DRAWN
    assert sum(c["samples"] for c in cells) > 8 * len(cells)


def green(folder, *chosen):
    done = run(folder, "--dtypes", "float64", *chosen, limit=1400)
    assert done.code == 0, done.out + done.err
    cells = done.results()["cells"]
    for cell in cells:
        assert cell["status"] == "pass" or cell["reason"].startswith("not applicable: "), cell
    return cells

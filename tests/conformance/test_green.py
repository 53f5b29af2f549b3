# tests/conformance/test_green.py: the CPU compared with itself in float64 is green, all suites and aspects.
from __future__ import annotations

import pytest

from invocation import run


@pytest.mark.timeout(1500)
def test_the_cpu_in_float64(tmp_path):
    done = run(tmp_path, "--dtypes", "float64", limit=1400)
    assert done.code == 0, done.out + done.err
    cells = done.results()["cells"]
    assert {c["status"] for c in cells} == {"pass", "skip"}
    assert {c["suite"] for c in cells} == {"op", "module", "optim"}
    assert sum(c["samples"] for c in cells) > 80000
    for cell in cells:
        assert cell["status"] == "pass" or cell["reason"].startswith("not applicable: "), cell

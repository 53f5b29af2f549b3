# tests/conformance/test_fuzz.py: the fuzz of operators ends no process on Graft.
from __future__ import annotations

import pytest

from invocation import fuzz


@pytest.mark.timeout(600)
@pytest.mark.seldom
def test_graft(tmp_path):
    code, out, err = fuzz(tmp_path, "--device", "graft:0", "--calls", "1500", "--least", "1", "--aspects", "survives",
                          limit=580)  # fmt: skip
    assert code == 0, out + err

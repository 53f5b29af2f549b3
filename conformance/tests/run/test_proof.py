# conformance/tests/run/test_proof.py: only what the device computed counts as native.
from __future__ import annotations

import pytest
import torch

from torch_conformance.run.proof import Origin, origin
from torch_conformance.run.proving import verdict

X = torch.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("expected", "kind"),
    [
        (X + 0.5, Origin.COMPUTED),
        ((X.clone(), X.exp()), Origin.COMPUTED),
        (X.sum(), Origin.MAYBE_COPIED),  # one value is a constant for all that can be seen
        (X.t(), Origin.NOTHING),
        (X[1:], Origin.NOTHING),
        (torch.zeros(5), Origin.MAYBE_COPIED),
        (torch.full((3,), torch.nan), Origin.NOTHING),
        (torch.nn.functional.pad(X, (1, 2)), Origin.MAYBE_COPIED),
        (torch.ones(0), Origin.NOTHING),
        (X.clone(), Origin.MAYBE_COPIED),
        (X.amax(0), Origin.MAYBE_COPIED),
        (X.flip(0), Origin.MAYBE_COPIED),
        (X.int(), Origin.COMPUTED),
        ("text", Origin.NOTHING),
    ],
)
def test_where_values_come_from(expected, kind):
    assert origin(expected, [(X,), {}]) is kind


@pytest.mark.parametrize(
    ("found", "fallbacks", "native"),
    [
        ([True, True], {}, True),
        ([True, None], {}, True),
        ([True, False], {}, False),
        ([None, None], {}, None),
        ([True, True], {"aten::sort": 1}, False),
    ],
)
def test_verdict_of_both_runs(found, fallbacks, native):
    assert verdict(found, fallbacks) is native

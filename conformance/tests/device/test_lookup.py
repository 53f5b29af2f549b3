# conformance/tests/device/test_lookup.py: a device is found by its name and described, or the run says why not.
from __future__ import annotations

import pytest

from torch_conformance import SetupError
from torch_conformance.device import lookup


def test_the_device_that_is_tested_is_described():
    found = lookup.describe("cpu", {"label": None})
    assert found["name"] == found["label"] == "cpu"
    assert found["package"] is None
    assert " x " in found["machine"]


@pytest.mark.parametrize("name", ["npuu", "cuda:", "meta"])
def test_devices_that_cannot_be_tested(name):
    with pytest.raises(SetupError, match=name.rstrip(":")):
        lookup.check(name, None)

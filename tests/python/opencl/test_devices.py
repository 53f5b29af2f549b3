# tests/python/opencl/test_devices.py: when the devices of the OpenCL driver count.
"""PoCL's device is the CPU: it counts where GRAFT_DEVICES names it, and nowhere else."""

import pytest

from torch_graft import drivers

pytestmark = pytest.mark.one_mode

LISTING = """
import torch_graft._C as core
names = [torch.graft.get_device_properties(i).driver for i in range(torch.graft.device_count())]
found = [device[0] for device in core.found_devices()]
print(json.dumps([list(dict.fromkeys(names)), sorted(set(found))]))
"""


@pytest.mark.parametrize(
    ("listed", "counted", "asked"),
    [
        (None, ["host"], ["host", "opencl"]),
        ("opencl", ["opencl"], ["opencl"]),
        ("host,opencl", ["host", "opencl"], ["host", "opencl"]),
        ("opencl:0,host:1", ["opencl", "host"], ["host", "opencl"]),
        ("host", ["host"], ["host"]),
    ],
)
def test_the_list_decides(python, listed, counted, asked):
    ran = python(LISTING, GRAFT_DEVICES=listed, OCL_ICD_VENDORS=None)
    assert ran.value() == [counted, asked]


def test_without_opencl_nothing_changes(python):
    ran = python(LISTING, GRAFT_DEVICES=None, OCL_ICD_VENDORS="/nonexistent")
    assert ran.value() == [["host"], ["host"]]
    assert ran.err == ""


def test_a_package_may_have_no_driver_for_this_machine(monkeypatch):
    class Nothing:
        name, value, dist = "nothing", "package:nothing", None

        @staticmethod
        def load():
            return lambda: None

    monkeypatch.setattr(drivers, "entry_points", lambda group: [Nothing()])
    assert drivers.offers() == []
    assert drivers.never_built() is None


def test_the_doctor_names_them(python):
    text = "from torch_graft.cli import doctor; doctor.examine()"
    ran = python(text, GRAFT_DEVICES=None, OCL_ICD_VENDORS=None)
    assert "opencl:0 is '" in ran.out
    assert "not used; name this device in GRAFT_DEVICES to use it" in ran.out
    ran = python(text, GRAFT_DEVICES="host")
    assert "not used: GRAFT_DEVICES does not name this driver" in ran.out

"""What a vendor's package adds to the device's module by the group graft.device_module."""

import pytest

from sandbox import doctor
from vendor_packages import install

pytestmark = pytest.mark.one_mode

CODE = """
import sys
print("imported", __name__, file=sys.stderr)

def fan_speed(device=None):
    "Revolutions per minute."
    return 1200

class Lamp:
    color = "red"

def synchronize():
    raise AssertionError("Graft's is meant")
"""
ADDS = {"fan_speed": ":fan_speed", "Lamp": ":Lamp", "tools": "", "color": ":Lamp.color",
        "lost": ":nothing", "gone": "_not_installed:x"}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    return install(folder, "torch-zeta", adds=ADDS, code=CODE)


def test_the_attributes_come_from_the_package_when_they_are_asked_for(python, place):
    ran = python(
        """
        m = torch.zeta
        assert "vendor_torch_zeta" not in sys.modules
        assert {"fan_speed", "Lamp", "tools", "synchronize"} <= set(dir(m))
        assert not hasattr(m, "fan_sped") and "vendor_torch_zeta" not in sys.modules
        assert m.fan_speed() == 1200 and m.fan_speed.__doc__ == "Revolutions per minute."
        assert m.fan_speed is m.fan_speed is vars(m)["fan_speed"]
        from torch.zeta import Lamp, tools
        assert Lamp.color == m.color == "red" and tools is sys.modules["vendor_torch_zeta"]
        m.synchronize()
        assert (torch.ones(2, device="zeta") + 1).tolist() == [2, 2]
        try:
            m.fan_sped
        except AttributeError as error:
            assert str(error) == "module 'torch.zeta' has no attribute 'fan_sped'", error
        assert not hasattr(torch.ve, "fan_speed")
        """,
        PYTHONPATH=place, GRAFT_DEVICE_NAME="zeta",
    ).good()  # fmt: skip
    assert ran.err.count("imported vendor_torch_zeta") == 1


@pytest.mark.seldom
def test_a_compiled_function_calls_them(python, place):
    python(
        """
        @torch.compile(fullgraph=True)
        def f(x):
            return x * torch.zeta.fan_speed()
        assert torch.zeta.fan_speed
        assert f(torch.ones(2, device="zeta")).tolist() == [1200, 1200]
        """,
        timeout=250, PYTHONPATH=place, GRAFT_DEVICE_NAME="zeta",
    ).good()  # fmt: skip


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("lost", "':nothing': AttributeError: module 'vendor_torch_zeta' has no attribute"),
        ("gone", "ModuleNotFoundError: No module named 'vendor_torch_zeta_not_installed'"),
    ],
)
def test_what_cannot_be_imported_is_no_attribute(python, place, name, why):
    ran = python(f"assert not hasattr(torch.graft, {name!r})\ntorch.graft.{name}", PYTHONPATH=place)
    said = ran.err.splitlines()[-1]
    assert said.startswith(f"AttributeError: torch.graft.{name} of the package 'torch-zeta' cannot")
    assert why.removeprefix("':nothing': ") in said
    assert "Update, repair or uninstall the package" in said


# What a package may not add, with the reason.
REFUSED = {
    "synchronize": "the package 'torch-graft' has torch.graft.synchronize",
    "memory": "the package 'torch-graft' has torch.graft.memory",
    "default_generators": "the package 'torch-graft' has torch.graft.default_generators",
    "_lazy_init": "a name of a public attribute is expected",
    "__path__": "a name of a public attribute is expected",
    "two words": "a name of a public attribute is expected",
    "fan_speed": "the package 'torch-alpha' adds torch.graft.fan_speed",
}


def test_a_name_that_is_taken_is_refused_with_both_packages(python, tmp_path):
    folders = [
        install(tmp_path / "a", "torch-alpha", adds={"fan_speed": ":fan_speed"}, code=CODE),
        install(tmp_path / "z", "torch-zeta", adds=dict.fromkeys([*REFUSED, "more"], ":Lamp")),
    ]
    for path in (":".join(folders), ":".join(folders[::-1])):
        ran = python(
            """
            assert torch.graft.fan_speed() == 1200 and "more" in dir(torch.graft)
            torch.graft.synchronize()
            assert torch.graft.memory.memory_allocated() == 0
            """,
            PYTHONPATH=path,
        ).good()
        for name, why in REFUSED.items():
            said = [line for line in ran.err.splitlines() if f"'{name} = vendor_torch_zeta" in line]
            assert len(said) == 1, ran.err
            assert f"the package 'torch-zeta' asks for torch.graft.{name} by its" in said[0]
            assert why in said[0]
            assert "Rename the entry point" in said[0]
        assert ran.err.count("Rename the entry point") == len(REFUSED)
    ran = doctor(PYTHONPATH=path)
    assert ran.returncode == 1
    assert "  torch.graft.fan_speed is of the package 'torch-alpha'" in ran.stdout
    assert "  PROBLEM  the package 'torch-zeta' asks for torch.graft.synchronize" in ran.stdout
    assert ran.stdout.count("Rename the entry point") == len(REFUSED)

"""Packages of two vendors in one environment: whose name the devices have, and what is said of it."""

import pytest

from sandbox import doctor
from vendor_packages import build_driver, install

pytestmark = pytest.mark.one_mode

SHOW = """
name = torch._C._get_privateuse1_backend_name()
m = torch.get_device_module(name)
print(json.dumps([name, [p.driver for p in m.devices()]]))
"""
# What the environment says -> the name, the drivers of its devices in order, whether one warns.
CASES = {
    "both": ({}, "omega", ["omega", "zeta"], True),
    "first-without-devices": ({"OMEGA_DEVICES": "0"}, "zeta", ["zeta"], False),
    "second-without-devices": ({"ZETA_DEVICES": "0"}, "omega", ["omega"], False),
    "neither": ({"OMEGA_DEVICES": "0", "ZETA_DEVICES": "0"}, "graft", ["host"], False),
    "two-of-one": ({"ZETA_DEVICES": "2"}, "omega", ["omega", "zeta", "zeta"], True),
    "name-of-the-second": ({"GRAFT_DEVICE_NAME": "zeta"}, "zeta", ["omega", "zeta"], False),
    "name-of-the-first": ({"GRAFT_DEVICE_NAME": "omega"}, "omega", ["omega", "zeta"], False),
    "name-of-neither": ({"GRAFT_DEVICE_NAME": "npu"}, "npu", ["omega", "zeta"], False),
    "ordered": ({"GRAFT_DEVICES": "zeta,omega"}, "zeta", ["zeta", "omega"], True),
    "second-alone": ({"GRAFT_DEVICES": "zeta"}, "zeta", ["zeta"], False),
    "neither-used": ({"GRAFT_DEVICES": "host"}, "graft", ["host"], False),
    "in-the-slot": (
        {"GRAFT_DEVICES": "omega", "GRAFT_VE_DEVICES": "zeta"}, "omega", ["omega"], False,
    ),
    "in-the-slot-and-counted": ({"GRAFT_VE_DEVICES": "zeta"}, "omega", ["omega", "zeta"], False),
}  # fmt: skip
CLEAN = {"GRAFT_DEVICES": None, "GRAFT_DEVICE_NAME": None, "GRAFT_HOST_DEVICES": "1"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folders of two packages, in the order of the packages' names."""
    drivers = tmp_path_factory.mktemp("drivers")
    return [
        install(
            tmp_path_factory.mktemp(name), f"torch-{name}", driver=build_driver(drivers, name),
            device=name,
        )
        for name in ("omega", "zeta")
    ]  # fmt: skip


def places(folders, turned=False):
    return ":".join(reversed(folders) if turned else folders)


@pytest.mark.parametrize(
    ("case", "turned"),
    [*((case, False) for case in CASES), ("both", True), ("first-without-devices", True)],
)
def test_the_name_is_that_of_the_first_package_with_devices(python, folders, case, turned):
    environment, name, drivers, warns = CASES[case]
    ran = python(SHOW, PYTHONPATH=places(folders, turned), **(CLEAN | environment))
    assert ran.value() == [name, drivers], ran.err
    told = [line for line in ran.err.splitlines() if "PyTorch has one name for all" in line]
    assert len(told) == warns, ran.err
    for driver in ("omega", "zeta"):
        assert ran.err.count(f"{driver}: asked for its table") == 1
    if warns:
        other = "zeta" if name == "omega" else "omega"
        for word in (f"'torch-{name}' and 'torch-{other}'", f"GRAFT_DEVICE_NAME={other}",
                     f"GRAFT_DEVICES={other}", f"GRAFT_VE_DEVICES={other}"):  # fmt: skip
            assert word in told[0]


def test_what_the_warning_proposes_gives_the_second_package_the_slot(python, folders):
    ran = python(
        """
        x = torch.arange(3.0, device="ve")
        assert torch.ve.get_device_properties().driver == "zeta"
        assert torch.omega.device_count() == 1
        print(json.dumps([(x + 1).tolist(), str(x.device), str(x.to("omega").device)]))
        """,
        PYTHONPATH=places(folders), GRAFT_DEVICES="omega", GRAFT_VE_DEVICES="zeta",
    )  # fmt: skip
    assert ran.value() == [[1, 2, 3], "ve:0", "omega:0"]
    assert "PyTorch has one name" not in ran.err


def test_simulated_devices_leave_the_name_to_real_ones_and_come_before_the_hosts(
    python, folders, tmp_path
):
    library = build_driver(tmp_path, "alpha", simulated=True)
    alpha = install(tmp_path / "alpha", "torch-alpha", driver=library, device="alpha")
    both = python(SHOW, PYTHONPATH=f"{alpha}:{folders[1]}", **CLEAN)
    assert both.value() == ["zeta", ["zeta"]]
    assert "PyTorch has one name" not in both.err
    assert python(SHOW, PYTHONPATH=alpha, **CLEAN).value() == ["alpha", ["alpha", "host"]]


def test_a_library_that_is_refused_takes_no_name(python, folders, tmp_path):
    bad = tmp_path / "graft_bad.so"
    bad.write_text("no library")
    place = install(tmp_path / "bad", "torch-bad", driver=str(bad), device="bad")
    ran = python(SHOW, PYTHONPATH=f"{place}:{folders[1]}", **CLEAN)
    assert ran.value() == ["zeta", ["zeta"]]
    assert ran.err.count(f"Graft did not take the driver {bad}") == 1


def test_import_loads_no_driver_whose_name_is_not_needed(python, folders):
    ran = python("", PYTHONPATH=places(folders), **(CLEAN | {"GRAFT_DEVICE_NAME": "npu"})).good()
    assert "asked for its table" not in ran.err


def test_an_invalid_name_leaves_the_next_one(python, folders, tmp_path):
    library = build_driver(tmp_path, "alpha")
    alpha = install(tmp_path / "alpha", "torch-alpha", driver=library, device="nn")
    ran = python(SHOW, PYTHONPATH=f"{alpha}:{folders[1]}", **CLEAN)
    assert ran.value() == ["zeta", ["alpha", "zeta"]]
    assert "PyTorch already has torch.nn. The device is called 'zeta' instead" in ran.err


def test_warnings_that_are_errors_take_nothing_away(python, folders):
    ran = python(SHOW, PYTHONPATH=places(folders), PYTHONWARNINGS="error::UserWarning", **CLEAN)
    assert ran.value() == ["omega", ["omega", "zeta"]]
    assert "'torch-omega' and 'torch-zeta' have devices" in ran.err


def test_the_doctor_names_both(folders):
    ran = doctor(PYTHONPATH=places(folders), GRAFT_DEVICES="omega,zeta")
    assert ran.returncode == 1
    problem = next(line for line in ran.stdout.splitlines() if "PyTorch has one name" in line)
    assert "  PROBLEM  The driver packages 'torch-omega' and 'torch-zeta' have devices" in problem
    assert "GRAFT_DEVICE_NAME=zeta takes the name of 'torch-zeta'" in ran.stdout
    said = "the package 'torch-zeta' offers the name 'zeta', which the devices do not have: "
    assert f"{said}another package has it" in ran.stdout
    ran = doctor(PYTHONPATH=places(folders), GRAFT_DEVICE_NAME="omega", GRAFT_DEVICES="omega,zeta")
    assert "PyTorch has one name" not in ran.stdout
    assert f"{said}GRAFT_DEVICE_NAME chooses 'omega'" in ran.stdout
    ran = doctor(PYTHONPATH=places(folders), ZETA_DEVICES="0", GRAFT_DEVICES="omega,zeta")
    assert f"{said}no device of this package is used" in ran.stdout
    assert "PyTorch has one name" not in ran.stdout


# What a user types -> PyTorch's own error for it.
TYPED = {
    "torch.device('zeta')": "device type at start of device string: zeta",
    "torch.ones(2, device='zeta:0')": "device type at start of device string: zeta",
    "torch.ones(2).to('zeta')": "device type at start of device string: zeta",
    "torch.zeta.synchronize()": "module 'torch' has no attribute 'zeta'",
    "import torch.zeta": "No module named 'torch.zeta'",
    "torch.ones(2).zeta()": "'Tensor' object has no attribute 'zeta'",
    "torch.ones(2).is_zeta": "'Tensor' object has no attribute 'is_zeta'",
    "torch.nn.Linear(1, 1).zeta()": "'Linear' object has no attribute 'zeta'",
}
NOTE = (
    "'zeta' is the name that the package 'torch-zeta' offers for its devices. They are called "
    "'omega' here: use device='omega:1' (all: omega:1, omega:2). GRAFT_DEVICE_NAME=zeta before "
    "`import torch` gives all devices of 'omega' the name 'zeta'."
)


def test_pytorchs_error_for_the_other_name_says_what_to_type(python, folders):
    environment = CLEAN | {"ZETA_DEVICES": "2", "PYTHONPATH": places(folders)}
    ran = python("torch.device('zeta')", **environment)
    assert ran.code == 1
    error, note = ran.err.splitlines()[-2:]
    assert error.endswith(TYPED["torch.device('zeta')"])
    assert note == NOTE
    ran = python(
        f"""
        for typed in {list(TYPED)!r}:
            try:
                exec(typed)
            except Exception:
                print("typed:", typed, file=sys.stderr)
                sys.excepthook(*sys.exc_info())
        """,
        **environment,
    ).good()
    for typed, error in TYPED.items():
        said = ran.err.split(f"typed: {typed}\n")[1].split("typed: ")[0]
        assert said.endswith(f"{error}\n{NOTE}\n")


def test_the_note_stands_below_the_error_that_it_explains(python, folders):
    ran = python(
        """
        try:
            torch.device("zeta")
        except RuntimeError as error:
            raise ValueError("no model") from error
        """,
        PYTHONPATH=places(folders), **CLEAN,
    )  # fmt: skip
    assert ran.err.splitlines()[-1] == "ValueError: no model"
    assert ran.err.index("start of device string: zeta\n'zeta' is the name") < ran.err.index("no m")


def test_other_errors_and_names_have_no_note(python, folders):
    ran = python(
        """
        for typed in ("torch.device('sigma')", "torch.sigma", "{}['zeta']", "json.zeta", "1 / 0"):
            try:
                exec(typed)
            except Exception:
                sys.excepthook(*sys.exc_info())
        """,
        PYTHONPATH=places(folders), **CLEAN,
    ).good()  # fmt: skip
    assert ran.err.count("Traceback (most recent call last)") == 5
    assert "is the name that the package" not in ran.err


@pytest.mark.parametrize(
    ("environment", "typed", "said"),
    [
        ({"ZETA_DEVICES": "0"}, "zeta", "but none of them is used here. `python -m torch_graft"),
        ({}, "graft", "The devices of Graft are called 'omega' here: use device='omega'."),
        ({"GRAFT_DEVICES": "omega", "GRAFT_VE_DEVICES": "zeta"}, "zeta", "use device='ve:0'."),
        ({"GRAFT_DEVICE_NAME": "npu"}, "omega", "use device='npu:0'."),
    ],
)
def test_the_note_says_where_the_devices_are(python, folders, environment, typed, said):
    ran = python(f"torch.device('{typed}')", PYTHONPATH=places(folders), **(CLEAN | environment))
    assert f"at start of device string: {typed}\n" in ran.err
    assert said in ran.err.splitlines()[-1]


def test_another_hook_for_errors_is_called_and_none_is_set_without_need(python, folders):
    ran = python(
        "print(sys.excepthook is sys.__excepthook__)", PYTHONPATH=folders[1], **CLEAN
    ).good()
    assert ran.out.strip() == "True"
    ran = python(
        """
        hook, sys.excepthook = sys.excepthook, lambda *_: print("replaced")
        assert hook is not sys.__excepthook__
        torch.device("zeta")
        """,
        PYTHONPATH=places(folders), **CLEAN,
    )  # fmt: skip
    assert ran.out.strip() == "replaced"


def test_a_checkpoint_of_the_other_name_says_what_to_give(python, folders, tmp_path):
    file = str(tmp_path / "saved.pt")
    saving = f"torch.save(torch.ones(2, device='zeta'), {file!r})"
    python(saving, PYTHONPATH=places(folders), **(CLEAN | {"GRAFT_DEVICE_NAME": "zeta"})).good()
    ran = python(
        f"""
        try:
            torch.load({file!r})
        except RuntimeError as error:
            print(error)
        print(torch.load({file!r}, map_location="omega:1"))
        """,
        PYTHONPATH=places(folders), **CLEAN,
    ).good()  # fmt: skip
    assert "The checkpoint was saved on the device 'zeta:0'. 'zeta' is the name that" in ran.out
    assert "use device='omega:1'" in ran.out
    assert "device='omega:1')" in ran.out

"""Packages whose entry point lies or fails: a warning names them, and every other device is there."""

import json
import time

import pytest

from sandbox import ROOT, build_c, doctor

# package -> (body of its entry point, what the warning shows of it)
LIES = {
    "number": ("return 7", "it returned 7 (int)"),
    "nothing-useful": ("return False", "it returned False (bool)"),
    "empty": ("return ''", "its path is empty"),
    "relative": ("return 'drivers/x.so'", "its path 'drivers/x.so' (str) is relative"),
    "bytes": ("return b'/opt/x.so'", "it returned b'/opt/x.so' (bytes)"),
    "list": ("return ['/opt/x.so', 'npu']", "(list)"),
    "one": ("return ('/opt/x.so',)", "it returned ('/opt/x.so',) (tuple)"),
    "three": ("return ('/opt/x.so', 'npu', 1)", "(tuple)"),
    "turned": ("return ('npu', '/opt/x.so')", "its path 'npu' (str) is relative"),
    "path-number": ("return (1, 'npu')", "its path is 1 (int)"),
    "name-number": ("return ('/opt/x.so', 3)", "its device name is 3 (int)"),
    "name-empty": ("return ('/opt/x.so', '')", "its device name is '' (str)"),
    "zero-byte": ("return '/opt/\\0x.so'", "holds a zero byte"),
    "no-utf8": ("return '/opt/\\udc80x.so'", "is not UTF-8"),
    "long": ("return '/' * 3 + 'x' * 5000 + '\\0'", "holds a zero byte"),
    "raises": ("raise ValueError('no hardware')", "it raised ValueError: no hardware"),
    "exits": ("import sys; sys.exit(3)", "it called sys.exit(3)"),
    "quits": ("raise GeneratorExit", "it raised GeneratorExit"),
    "own-base": ("class E(BaseException): pass\n    raise E('own')", "it raised E: own"),
    "bad-text": (
        "class E(Exception):\n        def __str__(self): raise OSError\n    raise E",
        "it raised E: without words",
    ),
    "talks": ("raise ValueError('a\\n' * 5000)", "it raised ValueError: a a a a"),
    "bad-repr": (
        "class R:\n        def __repr__(self): raise OSError('no repr')\n    return R()",
        "it raised OSError: no repr",
    ),
}
PAUSE = 60.0  # generous: what a child may take, beside torch's import


def package(folder, name, body, module=None):
    module = module or "vendor_" + name.replace("-", "_")
    (folder / f"{module}.py").write_text(f"def driver():\n    {body}\n")
    described = folder / f"{module}-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(f"[graft.drivers]\n{name} = {module}:driver\n")
    return described


@pytest.fixture(scope="module")
def many(tmp_path_factory, python):
    """One process with a package of each lie, a sound one, and Graft's own."""
    folder = tmp_path_factory.mktemp("packages")
    tiny = build_c(folder / "tiny.so", (ROOT / "tests/drivers/tiny.c").read_text())
    for name, (body, _) in LIES.items():
        package(folder, name, body)
    package(folder, "zz-sound", f"return {tiny!r}")
    (package(folder, "no-module", "pass") / "entry_points.txt").write_text(
        "[graft.drivers]\nno-module = not_installed_anywhere:driver\n"
    )
    (package(folder, "no-function", "pass") / "entry_points.txt").write_text(
        "[graft.drivers]\nno-function = vendor_no_function:missing\n"
    )
    began = time.monotonic()
    ran = python(
        """
        m = torch.get_device_module(D)
        here = {p.driver: (torch.ones(2, device=f"{D}:{i}") + 1).tolist()
                for i, p in enumerate(m.devices())}
        print(json.dumps([here, m.get_device_properties(0).driver, torch.accelerator.device_count()]))
        """,
        PYTHONPATH=str(folder), GRAFT_DEVICES="host,tiny", GRAFT_HOST_DEVICES="2",
    )  # fmt: skip
    return ran, time.monotonic() - began, folder


def test_every_other_device_computes(many):
    ran, seconds, _ = many
    computed, first, count = ran.value()
    assert computed == {"host": [2, 2], "tiny": [2, 2]}
    assert (first, count) == ("host", 3)
    assert seconds < PAUSE


@pytest.mark.parametrize("name", LIES)
def test_the_warning_names_the_package_what_it_gave_and_what_to_do(many, name):
    line = said_of(many, name)
    assert LIES[name][1] in line, line
    assert f"'{name} = vendor_{name.replace('-', '_')}:driver'" in line
    assert "Expected the absolute path" in line
    assert "Update, repair or uninstall" in line
    assert len(line) < 800


@pytest.mark.parametrize(
    ("name", "why"),
    [("no-module", "ModuleNotFoundError"), ("no-function", "AttributeError")],
)
def test_an_entry_point_that_cannot_be_loaded(many, name, why):
    assert f"it raised {why}" in said_of(many, name)


def said_of(many, name):
    lines = [line for line in many[0].err.splitlines() if f"driver package '{name}'" in line]
    assert len(lines) == 1, many[0].err
    return lines[0]


def test_the_doctor_lists_them(many):
    import os
    import subprocess
    import sys

    ran = subprocess.run(
        [sys.executable, "-m", "torch_graft", "doctor"], capture_output=True, text=True, timeout=100,
        env=os.environ | {"PYTHONPATH": str(many[2]), "GRAFT_DEVICES": "host,tiny"},
    )  # fmt: skip
    assert ran.returncode == 1
    for name, (_, shown) in LIES.items():
        assert f"'{name}'" in ran.stdout
        assert shown in ran.stdout
    assert "host:0" in ran.stdout


@pytest.mark.parametrize(
    ("named", "imported", "drivers"),
    [
        (None, ["my_vendor", "other"], {"host", "tiny"}),
        ("torch-graft", [], {"host"}),
        ("torch_graft, My.Vendor", ["my_vendor"], {"host", "tiny"}),
        ("", [], set()),
    ],
)
def test_packages_that_are_not_named_are_not_imported(tmp_path, python, named, imported, drivers):
    tiny = build_c(tmp_path / "tiny.so", (ROOT / "tests/drivers/tiny.c").read_text())
    for name, given in (("My-Vendor", repr(tiny)), ("other", "None")):
        module = name.replace("-", "_").lower()
        body = f"open({str(tmp_path / module)!r} + '.ran', 'w').close()\n    return {given}"
        package(tmp_path, name, body, module)
    ran = python(
        """
        import torch_graft
        names = [name for name, _ in torch_graft._C.drivers()]
        print(json.dumps([names, sorted(set(sys.modules) & {"my_vendor", "other"})]))
        """,
        PYTHONPATH=str(tmp_path), GRAFT_DRIVER_PACKAGES=named, GRAFT_DEVICES=None,
    )  # fmt: skip
    loaded, modules = ran.value()
    assert modules == imported
    assert {path.stem for path in tmp_path.glob("*.ran")} == set(imported)
    assert set(loaded) & {"host", "tiny"} == drivers


def test_the_doctor_names_packages_that_are_not_asked(tmp_path):
    package(tmp_path, "stranger", "raise SystemExit")
    ran = doctor(
        PYTHONPATH=str(tmp_path), GRAFT_DRIVER_PACKAGES="torch-graft", GRAFT_DEVICES="host"
    )
    assert "not asked 'stranger' (GRAFT_DRIVER_PACKAGES does not name it)" in ran.stdout
    assert ran.returncode == 0, ran.stdout


def test_warnings_that_are_errors_take_nothing_away(tmp_path, python):
    package(tmp_path, "exits", "import sys; sys.exit(0)")
    ran = python(
        "print((torch.ones(2, device=D) + 1).tolist())",
        PYTHONPATH=str(tmp_path), PYTHONWARNINGS="error::UserWarning",
    ).good()  # fmt: skip
    assert "[2.0, 2.0]" in ran.out
    assert "driver package 'exits'" in ran.err
    assert "it called sys.exit(0)" in ran.err


def test_ctrl_c_is_the_users(tmp_path, python):
    package(tmp_path, "interrupted", "raise KeyboardInterrupt")
    ran = python("", PYTHONPATH=str(tmp_path))
    assert ran.code != 0
    assert "KeyboardInterrupt" in ran.err
    assert json.dumps(ran.out) == '""'

"""What an integration promises, shown with a faked library."""

import json
import os
import subprocess
import sys

import pytest
import torch

import faked_library
import torch_graft.integrations
from sandbox import ROOT, doctor
from torch_graft.integrations import changes, registry

pytestmark = pytest.mark.one_mode

FOLDER = ROOT / "python" / "torch_graft" / "integrations"


@pytest.mark.every_run
def test_each_row_is_a_file_and_each_file_a_row():
    frame = {"__init__", "changes", "flex_attention", "lightning_device", "registry", "script"}
    assert {path.stem for path in FOLDER.glob("*.py")} - frame == set(registry.libraries())
    for library in registry.libraries().values():
        assert library.changes
        assert {how for how, _, _ in library.changes} <= {"registered", "changed"}
        assert set(library.needs) <= set(registry.libraries())


@pytest.mark.every_run
def test_importing_the_package_changes_nothing():
    assert torch_graft.integrations.enabled() == []


@pytest.mark.every_run
def test_torch_is_refused_at_run_time():
    made = changes.Changes()
    for owner in (torch.nn.Linear, torch.nn.functional, torch):
        with pytest.raises(ValueError, match="belongs to torch"):
            made.replace(owner, "forward", None)
    made.undo()


def test_an_unknown_name_is_an_error():
    with pytest.raises(ValueError, match="no integration 'acelerate': expected one of accelerate"):
        torch_graft.integrations.enable("acelerate")


def test_a_library_that_is_not_installed_is_an_error(monkeypatch):
    row = registry.libraries()["safetensors"]._replace(distribution="not-installed-anywhere")
    monkeypatch.setitem(registry.libraries(), "safetensors", row)
    with pytest.raises(ModuleNotFoundError, match="not-installed-anywhere is not installed"):
        torch_graft.integrations.enable("safetensors")


def test_what_was_changed_again_stays_and_is_said():
    class Library:
        value = 1

    Library.__module__ = "library"
    made = changes.Changes()
    assert made.replace(Library, "value", 2) == 1
    Library.value = 3
    with pytest.warns(UserWarning, match=r"library\.value was changed again"):
        made.undo()
    assert Library.value == 3


def test_undoing_restores_what_stood_there_also_nothing():
    class Library:
        kept = property(lambda self: 1)

    Library.__module__ = "library"
    before, table, made = vars(Library)["kept"], {"a": 1}, changes.Changes()
    made.replace(Library, "kept", 2)
    made.replace(Library, "new", 2)
    made.put(table, "a", 2)
    made.put(table, "b", 2)
    assert (Library.kept, Library.new, table) == (2, 2, {"a": 2, "b": 2})
    made.undo()
    assert vars(Library)["kept"] is before
    assert not hasattr(Library, "new")
    assert table == {"a": 1}


@pytest.mark.parametrize(
    ("version", "known"),
    [("0.8", True), ("0.8.3.post1", True), ("0.7.9", False), ("0.9.0rc1", False), ("9", False)],
)
def test_known_versions(version, known, monkeypatch):
    monkeypatch.setattr(registry.metadata, "version", lambda _: version)
    assert (registry.flaw("safetensors") is None) is known


def test_a_version_that_is_not_known_changes_nothing_and_is_said_once(python, tmp_path):
    ran = python(
        """
        import warnings, safetensors
        before = dict(vars(safetensors))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            import torch_graft.integrations.safetensors
            assert not torch_graft.integrations.enable("safetensors")
        assert vars(safetensors) == before and "safetensors.torch" not in sys.modules
        print(json.dumps([torch_graft.integrations.enabled(), *(str(one.message) for one in told)]))
        """,
        PYTHONPATH=faked_library.write(tmp_path, "9.9"),
    )
    enabled, *told = ran.value()
    assert enabled == []
    assert told == [
        "safetensors 9.9 is not known to Graft, which knows 0.8 and later before 0.9: safetensors is left "
        "as it is, and may not use the device."
    ]


EACH = """
import warnings
from importlib import import_module
from torch_graft import integrations
from torch_graft.integrations import registry

told = {}
for name, library in registry.libraries().items():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        import_module("torch_graft.integrations." + name)
        assert not integrations.enable(name)
    told[name] = [str(one.message) for one in said]
loaded = {name.split(".")[0] for name in sys.modules}
print(json.dumps([told, integrations.enabled(), sorted(loaded & set(registry.libraries()))]))
"""


def test_no_librarys_newer_version_is_touched(python, tmp_path):
    """Each integration says so by itself, and does not even import its library."""
    rows = registry.libraries().values()
    folder = faked_library.state(tmp_path, "99.1", *(row.distribution for row in rows))
    told, enabled, loaded = python(EACH, PYTHONPATH=folder).value()
    assert (enabled, loaded) == ([], [])
    for row in rows:
        [said] = told[row.name]
        assert said.startswith(f"{row.distribution} 99.1 is not known to Graft")
        assert said.endswith(f"{row.name} is left as it is, and may not use the device.")


def test_the_doctor_lists_what_would_be_changed_and_what_is_not_known(tmp_path):
    out = doctor(PYTHONPATH=faked_library.write(tmp_path, "9.9")).stdout
    assert "safetensors 9.9 is not known to Graft" in out
    assert "accelerate             1." in out
    assert "changed get_max_memory: " in out


def test_enabled_twice_undone_and_enabled_again_under_a_vendors_name(python, tmp_path):
    python(
        """
        import torch_graft.integrations.safetensors
        from torch_graft import integrations
        import safetensors, safetensors.torch
        once = [safetensors.safe_open]  # in a list: a name of this module is swapped, too
        original = [once[0].__wrapped__]
        assert once[0] is safetensors.torch.safe_open and once != original
        assert integrations.enable("safetensors") and safetensors.safe_open is once[0]
        assert integrations.enabled() == ["safetensors"]
        place = torch.device("zeta", 1)
        for given, taken in (("zeta", 0), ("zeta:1", 1), (place, 1), ("cpu", "cpu"), ("graft:1", "graft:1"), (0, 0)):
            assert safetensors.safe_open("a", "pt", device=given) == taken, given
        integrations.disable("safetensors")
        integrations.disable("safetensors")
        assert safetensors.safe_open is original[0] is safetensors.torch.safe_open
        assert integrations.enabled() == []
        assert integrations.enable("safetensors") and safetensors.torch.safe_open("a", "pt", "zeta") == 0
        """,
        PYTHONPATH=faked_library.write(tmp_path, "0.8.7"), GRAFT_DEVICE_NAME="zeta",
    ).good()  # fmt: skip


def test_a_failure_in_the_middle_takes_back_what_was_done(monkeypatch):
    class Library:
        value = 1

    Library.__module__ = "library"

    def apply(made, device):
        made.replace(Library, "value", device)
        assert Library.value == device
        raise RuntimeError("in the middle")

    module = type(sys)("integration")
    module.apply = apply
    monkeypatch.setattr(registry, "import_module", lambda _: module)
    monkeypatch.setattr(registry, "flaw", lambda _: None)
    with pytest.raises(RuntimeError, match="in the middle"):
        torch_graft.integrations.enable("safetensors")
    assert Library.value == 1
    assert torch_graft.integrations.enabled() == []


CHILDREN = """
import multiprocessing
{first}
import safetensors

class Mine:
    value = 7

def look(mine):
    return safetensors.safe_open("a", "pt", device="graft:1"), mine.value, __name__

if __name__ == "__main__":
    for way in ("fork", "spawn"):
        with multiprocessing.get_context(way).Pool(1) as pool:
            print(way, *pool.apply(look, (Mine(),)))
"""


@pytest.mark.parametrize("launched", [False, True])
def test_children_by_any_start_method_have_the_integrations(tmp_path, launched, device):
    """By the script's import, which children repeat, or by the launcher, whose main module they repeat."""
    script = tmp_path / "train.py"
    first = "" if launched else "import torch_graft.integrations.safetensors"
    script.write_text(CHILDREN.format(first=first).replace("graft:1", f"{device}:1"))
    launcher = ["-m", "torch_graft", "run", "--nproc", "1"] * launched
    environment = {**os.environ, "PYTHONPATH": faked_library.write(tmp_path, "0.8.7")}
    ran = subprocess.run(
        [sys.executable, *launcher, str(script)], capture_output=True, text=True, timeout=200,
        env=environment,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["fork 1 7 __main__", "spawn 1 7 __mp_main__"]


def test_the_table_is_one_json_file():
    rows = json.loads((FOLDER / "libraries.json").read_text())
    assert [row["name"] for row in rows] == list(registry.libraries())

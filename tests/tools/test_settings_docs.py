# tests/tools/test_settings_docs.py: the page of settings says what the table says, and the table answers the doctor.
from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import setting_rules
import settings_docs

pytestmark = pytest.mark.every_run

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / setting_rules.TABLE


@pytest.fixture(scope="module")
def settings() -> ModuleType:
    """The table of this tree, not that of the installed package."""
    spec = importlib.util.spec_from_file_location("settings_table", TABLE.with_suffix(".py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_page_is_fresh() -> None:
    script = ROOT / "tools" / "settings_docs.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_changed_row_changes_the_page() -> None:
    text = TABLE.read_text()
    changed = text.replace("the number of virtual devices", "how many virtual devices there are")
    assert changed != text
    assert "how many virtual devices there are" in settings_docs.page(changed)


def test_every_row_is_on_the_page_with_its_reader(settings: ModuleType) -> None:
    page = settings_docs.PAGE.read_text()
    assert len(settings.SETTINGS) > 30
    for setting in settings.SETTINGS:
        head = page[: page.index(f"\n| `{setting.name}` |")].rpartition("\n## ")[2]
        reader = setting.readers.split(", ")[0]
        assert head.startswith(settings_docs.words(reader)[0]), setting.name


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("GRAFT_DEVCES", "GRAFT_DEVICES"),
        ("GRAFT_CACHEDIR", "GRAFT_CACHE_DIR"),
        ("GRAFT_HOST_THREAD", "GRAFT_HOST_THREADS"),
        ("GRAFT_NPU_DEVICES", None),  # another driver's
        ("GRAFT_NPU_MODE", None),
    ],
)
def test_the_nearest_name(settings: ModuleType, name: str, near: str | None) -> None:
    assert settings.unknown({name: "1", "GRAFT_DEVICES": "host", "PATH": ""}) == [(name, near)]


def test_what_is_set_and_what_is_not(settings: ModuleType) -> None:
    environment = {"OMP_NUM_THREADS": "2", "GRAFT_VE": "0", "GRAFT_X": "", "GRAFT_SHARE": "1/3"}
    names = [setting.name for setting, _ in settings.in_force(environment)]
    assert names == ["GRAFT_VE", "GRAFT_SHARE", "OMP_NUM_THREADS"]
    missing = settings.not_set(environment)
    assert "GRAFT_DEVICES" in missing
    assert not {"GRAFT_VE", "GRAFT_SHARE", "GRAFT_TORCHES"} & {*missing}

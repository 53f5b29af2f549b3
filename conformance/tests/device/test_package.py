# conformance/tests/device/test_package.py: a device's package states rows for its devices, whatever their names are.
from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch

from torch_conformance import SetupError
from torch_conformance.cells.cases import Cell
from torch_conformance.cells.expectations import Expectations
from torch_conformance.device import package

CELL = Cell("op", "exp", "float32", "forward")
ROW = '[[expectation]]\nentry = "exp"\nkind = "xfail"\nreason = "the exponential is coarse"\n'


@pytest.fixture
def vendor(tmp_path, monkeypatch):
    """Makes an installed package torch_vendor, whose device has the given name."""

    def make(device: str, rows: str | None = ROW, entry: str = "torch_vendor") -> None:
        folder = tmp_path / "torch_vendor"
        folder.mkdir()
        (folder / "__init__.py").write_text("def device_count():\n    return 1\n")
        if rows is not None:
            (folder / "expectations.toml").write_text(rows)
        metadata = tmp_path / "torch_vendor-1.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Name: torch_vendor\nVersion: 1\n")
        (metadata / "entry_points.txt").write_text(f"[{package.GROUP}]\nany = {entry}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "torch_vendor", raising=False)
        module = ModuleType(f"torch.{device}")
        module.device_count = __import__("torch_vendor").device_count  # type: ignore[attr-defined]
        monkeypatch.setattr(torch, device, module, raising=False)

    return make


@pytest.mark.parametrize("name", ["vendor", "renamed"])
def test_the_rows_hold_under_each_name_of_the_device(vendor, name, tmp_path):
    vendor(name)
    assert package.owner(name) == "torch_vendor"
    assert package.files(name) == [tmp_path / "torch_vendor" / "expectations.toml"]
    row = Expectations.built_in(name).find(CELL)
    assert (row.kind, row.reason) == ("xfail", "the exponential is coarse")


def test_the_rows_hold_for_no_other_device(vendor):
    vendor("vendor")
    for name in ("cpu", "cuda", "nosuch"):  # device-specific
        assert package.files(name) == []
        assert Expectations.built_in(name).find(CELL) is None


def test_a_file_of_the_run_wins_over_the_package(vendor, tmp_path):
    vendor("vendor")
    path = tmp_path / "more.toml"
    path.write_text(ROW.replace("xfail", "skip"))
    assert Expectations.built_in("vendor", [path]).find(CELL).kind == "skip"


def test_files_that_a_worker_found_are_taken_instead(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(ROW)
    assert Expectations.built_in("nosuch", [], [path]).find(CELL).kind == "xfail"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rows": None}, "a package without a file expectations.toml"),
        ({"entry": "torch_vendor.gone"}, "names no package"),
        ({"rows": "[[expectation]]\n"}, "expectations.toml: row 1"),
    ],
)
def test_what_a_package_states_wrongly_is_named(vendor, given, words):
    vendor("vendor", **given)
    with pytest.raises(SetupError, match=words):
        Expectations.built_in("vendor")


def test_a_package_without_an_entry_point_states_nothing(vendor):
    vendor("vendor", entry="other_package")
    assert package.files("vendor") == []

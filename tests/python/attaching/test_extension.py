"""The extension for the installed torch is chosen at import; without one, one warning says so."""

import importlib.metadata
import os
import re
from pathlib import Path

import pytest


@pytest.fixture
def package(tmp_path):
    """torch_graft with extensions for other minor versions alone; returns the folder to import from."""
    import torch_graft

    folder = tmp_path / "torch_graft"
    folder.mkdir()
    for path in Path(torch_graft.__file__).parent.iterdir():
        if path.name not in ("extensions", "__pycache__"):
            (folder / path.name).symlink_to(path)

    def make(*minors):
        for minor in minors:
            (folder / "extensions" / minor).mkdir(parents=True)
        return str(tmp_path)

    return make


def test_the_installed_version_has_one(python):
    minors, where, version = python(
        """
        from torch_graft import _C, extension
        print(json.dumps([extension.minors(), _C.__file__, torch.__version__]))
        """
    ).value()
    minor = ".".join(version.split(".")[:2])
    assert minor in minors
    assert Path(where).parent.name == minor


def test_another_version_gets_one_warning_and_torch_works(python, package):
    ran = python(
        """
        print(torch.ones(2).add(1).tolist(), hasattr(torch, D))
        """,
        PYTHONPATH=os.pathsep.join([package("2.9", "2.10"), os.environ.get("PYTHONPATH", "")]),
    ).good()
    assert ran.out.split() == ["[2.0,", "2.0]", "False"]
    warnings = [line for line in ran.err.splitlines() if "UserWarning" in line]
    assert len(warnings) == 1, ran.err
    assert re.search(r"torch 2\.\d+\.\S+ is installed", ran.err)
    assert "works with torch 2.9, 2.10." in ran.err, "versions are sorted as numbers"
    assert "pip install 'torch==2.10.*'" in ran.err


def test_metadata_requires_the_versions_that_have_one():
    from packaging.requirements import Requirement

    import torch_graft.extension

    required = [Requirement(line) for line in importlib.metadata.requires("torch-graft") or []]
    (torch_required,) = [r for r in required if r.name == "torch"]
    served = torch_graft.extension.minors()
    tried = [f"2.{minor}" for minor in range(30)]
    admitted = [m for m in tried if torch_required.specifier.contains(f"{m}.1")]
    assert admitted == served

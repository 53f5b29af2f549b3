"""A wheel requires exactly the minor versions of torch that it has an extension for."""

import pytest
from packaging.specifiers import SpecifierSet
from torch_requirement import minors, requirement


@pytest.fixture
def torches(tmp_path, monkeypatch):
    def make(*versions):
        folders = []
        for version in versions:
            folder = tmp_path / version
            folder.mkdir()
            (folder / "version.py").write_text(f"__version__ = '{version}'\ndebug = False\n")
            folders.append(str(folder))
        monkeypatch.setenv("GRAFT_TORCHES", ":".join(folders))

    return make


@pytest.mark.parametrize(
    ("versions", "admitted", "refused"),
    [
        (["2.15.0+cu132"], ["2.15.0", "2.15.9"], ["2.14.1", "2.16.0", "3.0.0"]),
        (["2.15.0", "2.13.0+cpu", "2.14.1"], ["2.13.0", "2.14.0", "2.15.3"], ["2.12.1", "2.16.0"]),
        (["2.13.0", "2.15.0"], ["2.13.2", "2.15.0"], ["2.14.0", "2.14.1", "2.16.0"]),
        (["2.9.1", "2.10.0"], ["2.9.0", "2.10.4"], ["2.8.0", "2.11.0"]),
    ],
)
def test_requirement(torches, versions, admitted, refused):
    torches(*versions)
    text = requirement(minors())
    assert text.startswith("torch>=")
    specifier = SpecifierSet(text.removeprefix("torch"))
    assert [v for v in admitted + refused if specifier.contains(v)] == admitted


def test_the_environments_torch_without_folders(monkeypatch):
    import torch

    monkeypatch.delenv("GRAFT_TORCHES", raising=False)
    assert [f"{a}.{b}" for a, b in minors()] == [".".join(torch.__version__.split(".")[:2])]


def test_a_folder_that_is_no_torch(tmp_path, monkeypatch):
    (tmp_path / "version.py").write_text("debug = False\n")
    monkeypatch.setenv("GRAFT_TORCHES", str(tmp_path))
    with pytest.raises(ValueError, match="states no __version__"):
        minors()

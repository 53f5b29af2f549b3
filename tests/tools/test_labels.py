"""tests/labels.cmake: which tests of a binary a label selects, and that an empty label is an error."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

LABELS = Path(__file__).parents[1] / "labels.cmake"
SOURCES = {
    "one_test.cpp": """
// labels: races gpu
TEST(Copy, Permutes) { EXPECT_EQ(a[0], 1); }

TEST(Copy, Fills) {}

// labels: gpu
TEST_P(Sizes, OfEverySize) {}
""",
    "folder/two_test.cpp": """
// labels of the file: gpu
TEST_F(Cache, Keeps) {}

// labels: races
TEST(Cache, Drops) {}
""",
}

pytestmark = pytest.mark.every_run


def configured(tree: Path, lines: str) -> subprocess.CompletedProcess[str]:
    """What CMake says of a project with these lines."""
    (tree / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.25)\nproject(labels LANGUAGES NONE)\n"
        f"include({LABELS})\n{lines}"
    )
    command = ["cmake", "-S", str(tree), "-B", str(tree / "build")]
    return subprocess.run(command, capture_output=True, text=True)


def selected(tree: Path, label: str) -> subprocess.CompletedProcess[str]:
    """What CMake says of a project whose kernels have SOURCES as tests."""
    for name, text in SOURCES.items():
        file = tree / "tests" / "kernels" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return configured(
        tree,
        f"graft_labelled(filter kernels {label})\nmessage(STATUS filter=${{filter}}.)\n"
        f"graft_if_labelled(perhaps kernels {label})\nmessage(STATUS perhaps=${{perhaps}}.)\n",
    )


@pytest.mark.parametrize(
    ("label", "tests"),
    [
        ("races", "Cache.Drops:Copy.Permutes"),
        ("gpu", "Cache.Keeps:Cache.Drops:Copy.Permutes:*/Sizes.OfEverySize/*"),
    ],
)
def test_a_label_selects_its_tests(tmp_path: Path, label: str, tests: str) -> None:
    said = selected(tmp_path, label).stdout
    assert f"filter={tests}.\n" in said
    assert f"perhaps={tests}.\n" in said


def test_a_label_without_a_test_is_an_error(tmp_path: Path) -> None:
    ran = selected(tmp_path, "blob_store")
    assert ran.returncode != 0
    assert "no test in tests/kernels has the label blob_store" in ran.stderr


def test_a_filter_that_may_be_empty(tmp_path: Path) -> None:
    lines = "graft_if_labelled(perhaps kernels blob_store)\nmessage(STATUS perhaps=${perhaps}.)\n"
    assert "perhaps=.\n" in configured(tmp_path, lines).stdout

# tests/tools/test_row_rules.py: no file of a row uses what is another one's own.
from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import check_design as design
import row_rules as rows
from source_scan import read_sources

OWN = "namespace {\nconstexpr int kOwn = 1;\nstruct Own {};\n}\n"
ROWS = {
    "src/batches.cmake": 'set(core_batches\n  "kernels a/one b/two"\n  "runtime x y")\n',
    "src/torch/CMakeLists.txt": 'set(rows\n  "ops/one ops/two")\n',
}


def tree_of(root: Path, files: dict[str, str]) -> SimpleNamespace:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    sources = read_sources(root, list(files))
    return SimpleNamespace(sources=sources, code=[s for s in sources if s.is_c])


@pytest.mark.parametrize("use", ["int a = kOwn;\n", "Own a;\n", "namespace b { int a[kOwn]; }\n"])
@pytest.mark.parametrize("place", ["src/kernels/{}.cpp", "src/torch/ops/{}.cpp"])
@pytest.mark.parametrize("owner", [0, 1])
def test_a_use_of_anothers_own_name_is_found(use, place, owner, tmp_path):
    names = ["one", "two"] if "ops" in place else ["a/one", "b/two"]
    files = {place.format(names[owner]): OWN, place.format(names[1 - owner]): use}
    found = list(rows.row_names(tree_of(tmp_path, ROWS | files)))
    assert [f.path for f in found] == [place.format(names[1 - owner])]
    assert ("kOwn" if "kOwn" in use else "Own") in found[0].text


@pytest.mark.parametrize(
    "use",
    [
        "int a = other::kOwn;\n", "// kOwn\n", "int a = b.kOwn;\n", "template <class Own>\nvoid f(Own a);\n",
        "void f() { constexpr bool kOwn = true; g(kOwn); }\n", "const char* const kOwn[] = {};\n",
    ],
)  # fmt: skip
def test_what_is_named_otherwise_or_declared_there_is_not(use, tmp_path):
    files = {"src/kernels/a/one.cpp": OWN, "src/kernels/b/two.cpp": use}
    assert not list(rows.row_names(tree_of(tmp_path, ROWS | files)))


def test_files_of_two_rows_may(tmp_path):
    files = {"src/kernels/a/one.cpp": OWN, "src/runtime/x.cpp": "int a = kOwn;\n"}
    assert not list(rows.row_names(tree_of(tmp_path, ROWS | files)))


def test_rows_of_this_tree_are_seen():
    tree = design.Tree(Path(__file__).resolve().parents[2])
    found = [name for row in rows.rows_of(tree) for name in row]
    assert len(found) > 400
    assert all((tree.root / f"{name}.cpp").exists() for name in found)

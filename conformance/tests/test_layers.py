# conformance/tests/test_layers.py: no modules of the package import one another in a circle, nor do its folders.
from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import torch_conformance
from torch_conformance.cells import cases, registry
from torch_conformance.suites import upstream  # noqa: F401 (registers what is looked at)

pytestmark = pytest.mark.every_run

PACKAGE = Path(torch_conformance.__file__).parent
Graph = dict[str, set[str]]


def modules(folder: Path) -> dict[str, Path]:
    """Dotted name -> file; a package has the name of its folder."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = [folder.name, *path.relative_to(folder).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Every import counts: inside a function and for type checkers, too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for one in node.names:
                inner = f"{node.module}.{one.name}"
                yield inner if inner in known else node.module
        elif isinstance(node, ast.ImportFrom) and node.level:
            raise AssertionError(f"{path}: import by the whole name, so that circles are seen")


def graph(folder: Path) -> Graph:
    known = modules(folder)
    return {name: {n for n in imported(path, known) if n in known} - {name}
            for name, path in known.items()}  # fmt: skip


def folders(found: Graph) -> Graph:
    """The same between the folders inside the package; a module outside of them stands for itself."""
    made: Graph = {}
    for name, targets in found.items():
        here = ".".join(name.split(".")[:2])
        there = {".".join(target.split(".")[:2]) for target in targets}
        made.setdefault(here, set()).update(there - {here})
    return made


def circles(found: Graph) -> list[set[str]]:
    """The sets of nodes that reach one another."""
    reached = {name: _reached(found, name) for name in found}
    sets = {frozenset({name} | {n for n in reached[name] if name in reached[n]}) for name in found}
    return [set(one) for one in sets if len(one) > 1]


def _reached(found: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    todo = [start]
    while todo:
        for name in found[todo.pop()] - seen:
            seen.add(name)
            todo.append(name)
    return seen


def test_no_modules_import_one_another_in_a_circle():
    assert circles(graph(PACKAGE)) == []


def test_no_folders_import_one_another_in_a_circle():
    assert circles(folders(graph(PACKAGE))) == []


@pytest.mark.parametrize(
    "statement", ["from a.up import high", "import a.up.high", "def f():\n    from a.up import high",
                  "if TYPE_CHECKING:\n    from a.up.high import H"],
)  # fmt: skip
def test_a_planted_circle_is_found(statement, tmp_path):
    for name, text in {"up/high.py": "from a.down import low\n", "up/__init__.py": "",
                       "down/low.py": statement + "\n", "down/__init__.py": "", "__init__.py": ""}.items():  # fmt: skip
        path = tmp_path / "a" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = graph(tmp_path / "a")
    assert circles(found) == [{"a.up.high", "a.down.low"}]
    assert circles(folders(found)) == [{"a.up", "a.down"}]


def test_each_suite_and_aspect_that_is_listed_is_registered():
    assert registry.suites.keys() >= set(cases.SUITES)
    for suite in ("op", "module"):  # the optimizers' one function knows its aspects itself
        listed = {name for of, name in registry.aspects if of == suite}
        assert listed == set(cases.ASPECTS[suite])


def test_a_suite_that_no_module_registered_is_named():
    with pytest.raises(LookupError, match="no suite 'nothing' is registered"):
        registry.runner("nothing")

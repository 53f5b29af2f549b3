"""The runs of other people's libraries: what counts as the CPU's numbers, what is run again, and the page."""

import json

import pytest
import torch

import library_docs
import library_runs

pytestmark = pytest.mark.every_run

WANTED = {
    "loss": torch.tensor(2.0),
    "weights[0]": torch.linspace(-1, 1, 8),
    "counts": torch.arange(4),
}


def beside(**changed):
    return library_runs.verdict(WANTED | changed, WANTED)


def test_equal_near_and_different_numbers_are_told_apart():
    assert beside() == ("equal", 0.0)
    assert beside(loss=torch.tensor(2.0000005))[0] == "equal"
    assert beside(loss=torch.tensor(2.001)) == ("near", pytest.approx(5e-4, rel=1e-2))
    assert beside(loss=torch.tensor(2.2)) == ("differs", pytest.approx(0.1, rel=1e-3))
    assert beside(counts=torch.tensor([0, 1, 2, 4]))[0] == "differs"
    assert beside(loss=torch.tensor(float("nan")))[0] == "differs"
    assert beside(loss=torch.tensor(2.0, dtype=torch.float64))[0] == "differs"
    assert beside(more=torch.tensor(0.0))[0] == "differs"


def test_a_row_counts_for_its_file_its_version_and_its_commit():
    use = library_runs.uses()[0]
    [(_, stated)] = library_runs.todo([use], {}, False)
    assert list(library_runs.todo([use], {use.name: stated | {"verdict": "equal"}}, False)) == []
    assert len(list(library_runs.todo([use], {use.name: stated}, True))) == 1
    for name in ("version", "file", "graft"):
        assert len(list(library_runs.todo([use], {use.name: stated | {name: "other"}}, False))) == 1


def test_the_reason_is_the_line_that_names_it():
    conflict = "x\nThe conflict is caused by:\n    The user requested b\n    a 1 depends on b<1\n\nTo fix\n"
    assert library_runs.conflict(conflict) == "The user requested b; a 1 depends on b<1"
    raised = 'Traceback:\n  File "a"\nValueError: no graft\nwarning: later\n'
    assert library_runs.last_line(raised) == "ValueError: no graft"


def test_each_file_has_a_version_and_each_version_a_file():
    named = {library_runs.key(use.distribution) for use in library_runs.uses()}
    known = library_runs.versions()
    assert named <= known.keys()
    text = (library_runs.FOLDER / "requirements.txt").read_text()
    wanted = {library_runs.key(line.split("==")[0]) for line in text.splitlines() if "==" in line}
    assert wanted <= named


def test_the_page_is_that_of_the_data():
    data = json.loads(library_docs.RECORDS.read_text())
    assert library_docs.PAGE.read_text() == library_docs.page(data)
    assert data["rows"].keys() <= {use.name for use in library_runs.uses()}

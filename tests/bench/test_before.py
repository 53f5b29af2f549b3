"""This tree beside another one: the other's process, and when a row counts as slower."""

import os
from contextlib import ExitStack
from importlib.util import find_spec

import pytest

import before
import worker
from other_tree import OtherTree
from pairs import ratio_row
from sandbox import ROOT


def test_the_other_trees_process_computes_and_raises():
    with OtherTree(ROOT, "torch_graft", {"GRAFT_BENCH_TEST": "there"}) as side:
        assert side.call(find_spec).origin.startswith(str(ROOT / ".venv"))
        side.device = "GRAFT_BENCH_TEST"
        assert side.call(os.getenv) == "there"
        with pytest.raises(KeyError, match="no case"):
            side.call(worker.prepare, "no case", 1)
        side.device = "cpu"
        side.call(worker.prepare, "tiny add", 1)
        assert side.call(worker.sample) > 0
        side.device = 3
        with pytest.raises(ChildProcessError, match="ended with"):
            side.call(os._exit)


def test_ranks_of_two_trees_are_measured_in_pairs():
    table = before.tables(1)["distributed"]
    trees = before.Trees(ROOT, "cpu", table, 1)
    with ExitStack() as stack:
        ours, theirs = trees.samples("all_reduce of 4 kB", trees.opened(stack))
    assert len(ours) == len(theirs) == 1
    assert min(ours + theirs) > 0


def test_a_tree_that_is_not_built_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="make setup"):
        OtherTree(tmp_path, "cpu")


def test_a_process_that_dies_at_once_is_told(tmp_path):
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to("/bin/false")
    with OtherTree(tmp_path, "cpu") as side, pytest.raises(ChildProcessError, match="ended with 1"):
        side.call(worker.sample)


@pytest.mark.parametrize(
    ("ours", "slower"),
    [([1.1, 1.2, 1.1], True), ([0.9, 1.2, 1.1], False), ([0.9, 0.8, 0.9], False)],
)
def test_a_row_is_slower_if_its_interval_is(ours, slower):
    assert before.slower(ratio_row("x", 1.0, ours, [1.0] * 3)) == slower


class Planted(before.Trees):
    """Rows that look slower at first, and in new processes as often as they say."""

    def __init__(self, **times):
        self.times = times

    def opened(self, stack):
        return ()

    def samples(self, name, sides):
        if name not in self.times:
            raise before.Lacking(name)
        return [1.1] * 5, [1.0] * 5

    def again(self, names):
        for name in names:
            self.times[name] -= 1
        return {name: [1.1] * 5 + [1.1 if self.times[name] >= 0 else 1.0] for name in names}


def test_what_only_looked_slower_is_not(capsys):
    measured, rows = before.compare(Planted(a=2, b=0, c=1), ["a", "b", "c"])
    assert measured == 3
    assert [row.name for row in rows] == ["a"]
    assert capsys.readouterr().out.count("not slower") == 2


def test_what_the_other_tree_lacks_is_said_and_not_counted(capsys):
    measured, rows = before.compare(Planted(a=0), ["a", "new"])
    assert (measured, rows) == (1, [])
    assert "new" in capsys.readouterr().out


def test_an_operator_that_the_other_tree_lacks_is_no_error():
    def prepare(side):
        if side == "there":
            raise NotImplementedError

    trees = before.Trees(None, "graft", before.Table({"x": prepare}), 1)
    with pytest.raises(before.Lacking):
        trees.samples("x", ("here", "there"))

"""The kernel table: every row can be timed, on the device itself, and drawn."""

import itertools

import pytest
import torch

import chart
from kernel_cases import KERNELS
from pairs import ratio_row


def test_names_tell_family_and_dtype():
    assert len(KERNELS) > 150
    for name, case in KERNELS.items():
        assert case.name == name
        assert ": " in name
        assert name.split()[-1] in ("float32", "float16", "bfloat16", "int64")


@pytest.mark.parametrize("family", sorted({chart_name.split(":")[0] for chart_name in KERNELS}))
def test_every_row_runs_without_the_cpu(family):
    fallback = torch.graft.fallback
    before = {op: count.calls for op, count in fallback.counts().items()}
    for name, case in KERNELS.items():
        if name.startswith(f"{family}:"):
            case.make("graft")()
    torch.accelerator.synchronize()
    after = {op: count.calls for op, count in fallback.counts().items()}
    assert {op for op in after if after[op] > before.get(op, 0)} == set()


def rows(*families):
    return [ratio_row(f"{f}: op", 1.1, [value] * 3, [1.0] * 3)
            for f, value in zip(families, itertools.cycle([0.5, 1.2, 3.0]))]  # fmt: skip


def test_columns_keep_families_whole_and_in_order():
    made = rows(*"aaaa", *"bbb", *"cc", *"ddd")
    spread = chart.columns(made)
    assert [row for column in spread for row in column] == made
    kept = [{chart.family(row) for row in column} for column in spread]
    assert kept == [{"a"}, {"b"}, {"c", "d"}]


def test_a_family_is_one_row_with_its_mean_least_and_greatest():
    [a, b] = chart.families(rows("a", "a", "b"))
    assert (a.name, a.low, a.high, a.value) == ("a (2)", 0.5, 1.2, pytest.approx(0.6**0.5))
    assert (b.name, b.low, b.high, b.verdict) == ("b (1)", 3.0, 3.0, "misses twice")


@pytest.mark.parametrize("draw", [chart.draw, chart.draw_families])
def test_the_picture_is_an_svg(tmp_path, draw):
    draw(rows("a", "b", "c"), tmp_path / "speed.svg")
    text = (tmp_path / "speed.svg").read_text()
    assert "<svg" in text
    assert all(f">{name}" in text for name in "abc")

"""The bench's statistics and the table's place in a page."""

import random

import pytest

from pairs import difference_row, median_interval, ratio_row
from report import cells, put_between


def test_interval_is_the_known_order_statistics():
    # n = 11: ranks 2 and 10 hold the median with 98.8 %, ranks 3 and 9 with 93.5 %.
    assert median_interval([float(i) for i in range(1, 12)]) == (2.0, 10.0)
    assert median_interval([3.0, 1.0, 2.0]) == (1.0, 3.0)
    assert median_interval([5.0]) == (5.0, 5.0)


def test_interval_covers_the_median():
    source = random.Random(1)
    hits = 0
    for _ in range(2000):
        low, high = median_interval([source.expovariate(1.0) for _ in range(11)])
        hits += low <= 0.6931 <= high
    assert hits / 2000 >= 0.95


@pytest.mark.parametrize(
    ("value", "verdict"), [(1.0, "holds"), (1.1, "holds"), (1.2, "misses"), (2.3, "misses twice")]
)
def test_verdicts(value, verdict):
    assert ratio_row("x", 1.1, [value] * 5, [1.0] * 5).verdict == verdict


def test_ratios_are_taken_pair_by_pair():
    row = ratio_row("x", 1.0, [1.0, 20.0, 3.0], [2.0, 10.0, 3.0])
    assert (row.value, row.low, row.high) == (1.0, 0.5, 2.0)
    assert (row.device_min, row.against_min) == (1.0, 2.0)
    assert difference_row("x", 0.1, "s", [1.5, 1.4], [1.0, 1.0]).value == pytest.approx(0.45)
    assert cells(row)[1:3] == ("≤ 1.00x", "1.00x")


def test_unequal_halves_are_refused():
    with pytest.raises(ValueError, match="argument 2"):
        ratio_row("x", 1.0, [1.0], [1.0, 2.0])


def test_block_is_replaced_once():
    text = "a\n<!-- bench -->\nold\n<!-- /bench -->\nb\n"
    assert put_between(text, "new") == "a\n<!-- bench -->\nnew\n<!-- /bench -->\nb\n"
    with pytest.raises(ValueError, match="expected one"):
        put_between("no marks", "new")

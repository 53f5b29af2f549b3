"""Positions of equal elements may differ, nothing else."""

import torch

from torch_conformance.tensors import ties
from torch_conformance.tensors.compare import Tolerance

X = torch.tensor([[2.0, 1.0, 2.0, 1.0], [float("nan"), 3.0, 3.0, float("nan")]])
SORTED = (X.sort(1).values, torch.tensor([[3, 1, 2, 0], [2, 1, 3, 0]]))


def same(name, actual, expected, *args, **kwargs):
    return ties.same_elements(name, actual, expected, (X, args, kwargs))


def test_other_positions_of_equal_elements_are_the_same_result():
    assert same("sort", SORTED, tuple(X.sort(1)), 1)
    assert same("argsort", SORTED[1], X.argsort(1), 1)
    assert same("topk", (torch.tensor([[2.0], [float("nan")]]), torch.tensor([[2], [3]])),
                tuple(X.topk(1)), 1)  # fmt: skip
    assert same("mode", (torch.tensor([1.0, 3.0]), torch.tensor([1, 2])),
                (torch.tensor([1.0, 3.0]), torch.tensor([3, 1])), 1)  # fmt: skip


def test_quantized_elements_are_equal_where_their_integers_are():
    x = torch.quantize_per_tensor(X.nan_to_num(4), 0.5, 0, torch.quint8)
    ours = (torch.sort(x).values, torch.tensor([[3, 1, 2, 0], [2, 1, 3, 0]]))
    assert ties.same_elements("sort", ours, tuple(torch.sort(x)), (x, (), {}))
    assert not ties.same_elements("sort", (ours[0], ours[1].flip(1)), ours, (x, (), {}))


def test_anything_else_is_not():
    values, positions = SORTED
    assert not same("sort", SORTED, tuple(X.sort(1)), dim=1, stable=True)
    assert not same("sort", (values, positions[:, :1].expand(2, 4)), tuple(X.sort(1)), 1)
    assert not same("sort", (values + 1, positions), tuple(X.sort(1)), 1)
    assert not same("argsort", positions + 1, X.argsort(1), 1)
    assert not same("argsort", positions.flip(1), X.argsort(1), 1)
    assert not same("cummax", SORTED, tuple(X.cummax(1)), 1)
    assert not same("median", torch.tensor(1), torch.tensor(2))


def test_gradients_are_compared_in_sum():
    inputs, tolerance = (X[:1], (1,), {}), {torch.float32: Tolerance(0, 0)}
    ours, theirs = torch.tensor([[1.0, 2, 3, 4]]), torch.tensor([[3.0, 4, 1, 2]])
    assert ties.same_sums("sort", ours, theirs, inputs, tolerance) is None
    assert ties.same_sums("sort", ours, theirs.flip(1), inputs, tolerance)
    assert ties.same_sums("cummax", ours, theirs, inputs, tolerance)

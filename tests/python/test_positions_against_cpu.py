"""Operators that read, combine or move elements by position, against the CPU."""

import pytest
import torch
from torch.nn import functional as F

from test_ops_against_cpu import FLOATS, INTEGERS, check, values

COMPLEX = [torch.complex64, torch.complex128]
ROWS = [4, 0, 2, 2, 4]


def rows(x):
    return torch.tensor(ROWS, device=x.device)


def places(x):
    return torch.arange(5 * 7, device=x.device).view(5, 7) * 3 % x.size(0)


def mask(x):
    return (torch.arange(x.numel(), device=x.device).view_as(x) * 5 % 7) < 3


REDUCTIONS = ["prod", "mean", "amax", "amin"]
POSITIONS = {
    "gather": lambda x: x.gather(0, places(x)),
    "scatter": lambda x: x.scatter(0, places(x)[:1], x[:1]),
    "scatter number": lambda x: x.scatter(0, places(x), 2),
    "scatter add": lambda x: x.scatter_add(0, places(x), x.clone()),
    "index add": lambda x: x.index_add(0, rows(x), x.clone()),
    "index add alpha": lambda x: x.index_add(0, rows(x), x.clone(), alpha=3),
    "index copy": lambda x: x.index_copy(1, rows(x)[:3], x[:, :3].clone()),
    "index fill": lambda x: x.index_fill(1, rows(x), 3),
    "index put": lambda x: x.index_put((rows(x)[:2],), x[:2].clone()),
    "index put add": lambda x: x.index_put((rows(x),), x.clone(), accumulate=True),
    "take": lambda x: x.take(places(x)),
    "put": lambda x: x.put(places(x)[0, :3], x[0, :3].clone()),
    "put add": lambda x: x.put(places(x), x.clone(), accumulate=True),
    "put transposed": lambda x: x.t().clone().t().put(places(x)[0, :3], x[0, :3].clone()),
    "masked fill": lambda x: x.masked_fill(mask(x), 1),
    "masked select": lambda x: x.masked_select(mask(x)),
    "masked scatter": lambda x: x.masked_scatter(mask(x), x.clone()),
    "masked scatter broadcast": lambda x: x.masked_scatter(mask(x[:1]), x.clone()),
    "cat": lambda x: torch.cat([x, x[:0], x[1:]]), "cat many": lambda x: torch.cat([x] * 50, 1),
    "stack": lambda x: torch.stack([x, x], 1), "flip": lambda x: x.flip(0, 1),
    "roll": lambda x: x.roll((1, -2), (0, 1)), "rot90": lambda x: torch.rot90(x),
    "repeat interleave": lambda x: x.repeat_interleave(rows(x), 0),
    "repeat interleave 2": lambda x: x.repeat_interleave(2, 1),
    "tril": lambda x: x.tril(1), "triu": lambda x: x.triu(-1), "diag": lambda x: torch.diag(x[0]),
    "diagonal": lambda x: torch.diag(x, 1), "trace": lambda x: x.trace(),
    "diag embed": lambda x: torch.diag_embed(x), "unfold": lambda x: x.unfold(0, 2, 1),
    **{f"index reduce {r}": lambda x, r=r: x.index_reduce(0, rows(x), x.clone(), r)
       for r in REDUCTIONS},
    **{f"index reduce {r} alone": lambda x, r=r: x.index_reduce(0, rows(x), x.clone(), r,
                                                                include_self=False)
       for r in REDUCTIONS},
    **{f"scatter reduce {r}": lambda x, r=r: x.scatter_reduce(0, places(x), x.clone(), r)
       for r in [*REDUCTIONS, "sum"]},
    **{f"scatter reduce {r} alone": lambda x, r=r: x.scatter_reduce(0, places(x), x.clone(), r,
                                                                    include_self=False)
       for r in [*REDUCTIONS, "sum"]},
}  # fmt: skip


@pytest.mark.parametrize("name", POSITIONS)
def test_positions(device, name):
    for dtype in [*INTEGERS, *FLOATS, *COMPLEX]:
        x = values("any", torch.float64 if dtype.is_complex else dtype, (5, 7), 1).to(dtype)
        for view in (lambda x: x, lambda x: x.t().contiguous().t()):
            torch.graft.fallback.reset()
            with torch.graft.fallback.off():
                compared = check(device, POSITIONS[name], [x], [view])
            assert not (compared and torch.graft.fallback.counts()), dtype


BAGS = {
    "sum": {"mode": "sum"}, "mean": {"mode": "mean"}, "max": {"mode": "max"},
    "padding": {"mode": "sum", "padding_idx": 2}, "padded mean": {"mode": "mean", "padding_idx": 2},
    "padded max": {"mode": "max", "padding_idx": 2},
    "last offset": {"mode": "sum", "include_last_offset": True},
}  # fmt: skip


@pytest.mark.parametrize("name", BAGS)
def test_embedding_bag(device, name):
    def call(w, scale=None):
        indices = torch.tensor([3, 1, 3, 6, 2, 2, 0, 5], device=w.device)
        offsets = torch.tensor([0, 3, 3, 4, 8], device=w.device)
        return F.embedding_bag(indices, w, offsets, per_sample_weights=scale, **BAGS[name])

    for dtype in (torch.float32, torch.float64):
        torch.graft.fallback.reset()
        with torch.graft.fallback.off():
            assert check(device, call, [values("any", dtype, (7, 70), 1)])
            if BAGS[name]["mode"] == "sum":
                weights = values("positive", dtype, (8,), 2)
                assert check(device, call, [values("any", dtype, (7, 70), 1), weights])
        assert not torch.graft.fallback.counts()


def test_embedding_bag_scales_by_frequency(device):
    # The CPU's bags halve the gradient of rows that occur once; its embedding does not.
    index, starts = torch.tensor([3, 1, 3, 6, 2, 2, 0, 5]), torch.tensor([0, 3, 3, 4])
    bags = torch.zeros(8, 7, requires_grad=True, device=device)
    F.embedding_bag(index.to(device), bags, starts.to(device), mode="sum",
                    scale_grad_by_freq=True).sum().backward()  # fmt: skip
    rows = torch.zeros(8, 7, requires_grad=True)
    F.embedding(index, rows, scale_grad_by_freq=True).sum().backward()
    torch.testing.assert_close(bags.grad.cpu(), rows.grad)


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_embedding_holds_rows_to_a_norm(device, norm):
    sides = []
    for where in ("cpu", device):
        table = values("any", torch.float32, (7, 5), 1).to(where)
        index = torch.tensor([3, 1, 3, 6], device=where)
        F.embedding(index, table, max_norm=0.7, norm_type=norm)
        sides.append(table.cpu())
    torch.testing.assert_close(sides[1], sides[0])


@pytest.mark.parametrize("make", [torch.tril_indices, torch.triu_indices])
def test_indices_of_triangles(device, make):
    for row, column, offset in ((4, 5, 0), (5, 3, 1), (3, 6, -2), (0, 4, 0), (4, 0, 1)):
        for dtype in (torch.int32, torch.int64):
            ours = make(row, column, offset, dtype=dtype, device=device)
            assert torch.equal(ours.cpu(), make(row, column, offset, dtype=dtype))


def test_a_source_that_is_too_short_is_reported(device, module):
    def run():
        x = torch.zeros(5, device=device)
        x.masked_scatter_(torch.ones(5, dtype=torch.bool, device=device), x[:2].clone())
        module.synchronize()

    with pytest.raises(RuntimeError, match="masked_scatter"):
        run()

"""Operators that read, combine or move elements by position, against the CPU."""

import re

import pytest
import torch
from torch.nn import functional as F

from cpu_comparison import FLOATS, INTEGERS, check, values

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
    "index put add of two dtypes": lambda x: x.index_put((rows(x), rows(x).int()), x[0, :5].clone(),
                                                         accumulate=True),
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
    most = 2**62
    ends = [(3, most, -1)] if make is torch.tril_indices else [(most, 3, 1)]
    ends += [(3, 4, -(2**61)), (4, 3, 2**62)]
    for row, column, offset in ((4, 5, 0), (5, 3, 1), (3, 6, -2), (0, 4, 0), (4, 0, 1), *ends):
        for dtype in (torch.int32, torch.int64):
            ours = make(row, column, offset, dtype=dtype, device=device)
            assert torch.equal(ours.cpu(), make(row, column, offset, dtype=dtype))
    with pytest.raises(NotImplementedError, match="not implemented for 'Float'"):
        make(3, 3, dtype=torch.float32, device=device)


def test_a_source_that_is_too_short_is_reported(device, module):
    def run():
        x = torch.zeros(5, device=device)
        x.masked_scatter_(torch.ones(5, dtype=torch.bool, device=device), x[:2].clone())
        module.synchronize()

    with pytest.raises(RuntimeError, match="masked_scatter"):
        run()


aten = torch.ops.aten
NONE, MANY = [None], [None, None]
# Calls in which no index selects anything, or the values do not fit.
WITHOUT_INDEX = {
    "index_put": lambda x, v, i: x.index_put([], v, True),
    "index_put_": lambda x, v, i: x.index_put_([], v, True),
    "none": lambda x, v, i: aten.index_put(x, NONE, v, True),
    "nones": lambda x, v, i: aten.index_put_(x, MANY, v, True),
    "too many nones": lambda x, v, i: aten.index_put(x, [None] * 3, v, True),
    "implementation": lambda x, v, i: aten._index_put_impl_(x, NONE, v, True, True),
    "replaced": lambda x, v, i: aten._index_put_impl_(x, NONE, v, False, True),
    "unsafe": lambda x, v, i: aten._unsafe_index_put(x, NONE, v, True),
    "out": lambda x, v, i: aten.index_put.out(x, NONE, v, True, out=x.new_empty(0)),
    "index": lambda x, v, i: aten.index(x, NONE), "empty list": lambda x, v, i: aten.index(x, []),
    "unsafe index": lambda x, v, i: aten._unsafe_index(x, MANY),
    "masked index": lambda x, v, i: aten._unsafe_masked_index(x, x > 1, NONE, 0),
    "masked put": lambda x, v, i: aten._unsafe_masked_index_put_accumulate(x, x > 1, NONE, x),
    "scalar mask": lambda x, v, i: aten.index_put(x, [i[0] == 0], v, True),
    "number": lambda x, v, i: x[0, 0].index_put([], v, True),
    "nothing": lambda x, v, i: x[:0].index_put([], v, True),
    "dtype": lambda x, v, i: x.index_put([i], v.double(), True),
    "sizes": lambda x, v, i: x.index_put([i], x.new_ones(4), True),
    "no values": lambda x, v, i: x.index_put([i], x.new_ones(0), True),
    "no rows": lambda x, v, i: x[:0].index_put([i], v, True),
    "mask": lambda x, v, i: x.index_put([x[:1] > 0], v, True),
    "floats": lambda x, v, i: x.index_put([x[0]], v, True),
    "too many": lambda x, v, i: x.index_put([i, i, i], v, True),
    "number's mask": lambda x, v, i: x[0, 0].index_put([x[0, 0] > 0], v, True),
}  # fmt: skip


def result_of(call, *args):
    """What it gives, or the exception that it raises."""
    try:
        return call(*args)
    except (RuntimeError, IndexError) as error:
        return error


@pytest.mark.parametrize("name", WITHOUT_INDEX)
def test_without_an_index_it_is_an_error(device, name):
    for values_of in (lambda x: x.new_ones(()), lambda x: x[0] + 1):
        x = torch.arange(6.0).view(2, 3)
        y, i = x.to(device), torch.tensor([1, 0])
        expected = result_of(WITHOUT_INDEX[name], x, values_of(x), i)
        found = result_of(WITHOUT_INDEX[name], y, values_of(y), i.to(device))
        assert type(found) is type(expected)
        if isinstance(found, torch.Tensor):
            torch.testing.assert_close(found.cpu(), expected)
            continue
        if not re.search("INTERNAL ASSERT|undefined Tensor", str(expected)):
            assert str(found).splitlines()[0] == str(expected).splitlines()[0]
        assert y.cpu().equal(x), "it was written before it was refused"


def test_indices_that_select_nothing(device):
    x = torch.arange(6.0).view(2, 3)
    y, none = x.to(device), torch.tensor([], dtype=torch.long)
    for call in (
        lambda t, i: t.index_put([i], t.new_ones(3), True),
        lambda t, i: t.index_put([t > 99], t.new_ones(1), True),
        lambda t, i: t.index_put([i, i], t.new_ones(1), True),
        lambda t, i: t.index_fill(0, i, 3), lambda t, i: t.index_add(0, i, t[:0]),
        lambda t, i: t.index_copy(1, i, t[:, :0]), lambda t, i: t.scatter(0, i.view(0, 3), 1.0),
        lambda t, i: t.scatter_add(1, i.view(0, 0), t), lambda t, i: t.put(i, t.new_ones(0), True),
        lambda t, i: t.scatter_reduce(0, i.view(0, 3), t, "amax"), lambda t, i: t[i], lambda t, i: t[i, i],
        lambda t, i: t.take(i), lambda t, i: t.gather(1, i.view(2, 0)), lambda t, i: t.index_select(0, i),
        lambda t, i: t[:0].index_put([i], t.new_ones(3), True), lambda t, i: t[:0][:, i],
        lambda t, i: t[:, None, :0].index_put([i], t.new_ones(0), True),
        lambda t, i: t.index_reduce(0, i, t[:0], "prod"), lambda t, i: t[..., i].sum(1),
        lambda t, i: t[0, 0].scatter(0, i, 1.0), lambda t, i: t[0, 0].index_fill(0, i, 1.0),
    ):  # fmt: skip
        torch.testing.assert_close(call(y, none.to(device)).cpu(), call(x, none))


EMPTY = {
    "gather": lambda x, i: x[:0].gather(0, i.view(1, 2)),
    "gather columns": lambda x, i: x[:, :0].gather(1, i.view(1, 2)),
    "gather line": lambda x, i: x[0, :0].gather(0, i),
    "scatter": lambda x, i: x[:0].scatter(0, i.view(1, 2), 1.0),
    "scatter source": lambda x, i: x[:0].scatter(0, i.view(1, 2), x),
    "scatter add": lambda x, i: x[:0].scatter_add(0, i.view(1, 2), x),
    "scatter reduce": lambda x, i: x[:0].scatter_reduce(0, i.view(1, 2), x, "amax"),
    "take": lambda x, i: x[:0].take(i), "put": lambda x, i: x[:0].put(i, x[0, :2], True),
    "select": lambda x, i: x[:0].index_select(0, i), "add": lambda x, i: x[:0].index_add(0, i, x),
    "fill": lambda x, i: x[:0].index_fill(0, i, 1.0), "copy": lambda x, i: x[:0].index_copy(0, i, x),
    "index": lambda x, i: x[:0][i], "columns": lambda x, i: x[:, :0][:, i],
    "index put": lambda x, i: x[:0].index_put([i], x[0]),
    "index put add": lambda x, i: x[:, :0].index_put([i, i], x[0, :2], True),
    "unsafe": lambda x, i: aten._unsafe_index(x[:0], [i]),
    "embedding": lambda x, i: F.embedding(i, x[:0]),
    "bag": lambda x, i: F.embedding_bag(i.view(1, 2), x[:0]),
    "nll": lambda x, i: F.nll_loss(x[:, :0], i),
    "nll rows": lambda x, i: F.nll_loss(x[:, :0], i, reduction="none"),
    "nll images": lambda x, i: F.nll_loss(x[None, :0, :, None], i.new_zeros(1, 3, 1)),
    "real transform": lambda x, i: aten._fft_r2c(x, [], 0, True),
    "complex transform": lambda x, i: aten._fft_c2r(x + 0j, [], 0, 4),
}  # fmt: skip


@pytest.mark.parametrize("name", EMPTY)
def test_an_index_into_nothing_is_an_error(device, name):
    x, i = torch.arange(6.0).view(2, 3), torch.tensor([1, 0])
    y, j = x.to(device), i.to(device)
    expected, found = result_of(EMPTY[name], x, i), result_of(EMPTY[name], y, j)
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(found.cpu(), expected)
    else:
        assert isinstance(found, (RuntimeError, IndexError))
    assert (y + 1).sum().item() == 21


NUMBERS = torch.arange(1.0, 25.0)
# What is at, or beyond, an end of what the operator takes.
ENDS = {
    "roll nothing": lambda x: x[:0].roll(3, 7), "roll nothing twice": lambda x: x[:0].roll((3, 4), (9, -9)),
    "channels of turned images": lambda x: torch.channel_shuffle(x.view(3, 2, 2, 2).transpose(0, 3), 2),
    "channels of images": lambda x: torch.channel_shuffle(x.view(1, 6, 2, 2), 3),
    "channels of channels_last": lambda x: torch.channel_shuffle(
        x.view(1, 6, 2, 2).contiguous(memory_format=torch.channels_last), 3),
    "channels of no image": lambda x: torch.native_channel_shuffle(x[:0].view(1, 6, 0), 3),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_ends(device, native, name):
    found, expected = ENDS[name](NUMBERS.to(device)), ENDS[name](NUMBERS)
    assert (found.shape, found.stride()) == (expected.shape, expected.stride())
    assert torch.equal(found.cpu(), expected)


def test_channels_have_gradients(device):
    x = NUMBERS.view(1, 6, 2, 2).to(device).requires_grad_()
    (torch.channel_shuffle(x, 2) * NUMBERS.view(1, 6, 2, 2).to(device)).sum().backward()
    expected = NUMBERS.view(1, 3, 2, 2, 2).transpose(1, 2).reshape(1, 6, 2, 2)
    assert torch.equal(x.grad.cpu(), expected)
    for groups in (0, -1, 4):
        with pytest.raises(RuntimeError, match="Number of"):
            torch.native_channel_shuffle(x.detach(), groups)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128, torch.int8], ids=str)
def test_diagonals_beyond_every_matrix(device, native, dtype):
    x = NUMBERS.view(2, 3, 4).to(dtype)
    for layout in (lambda x: x, lambda x: x.mT):
        y = layout(x.to(device))
        for diagonal in (2**63 - 1, 2**31, 4):
            assert torch.equal(y.tril(diagonal).cpu(), layout(x))
            assert torch.equal(y.triu(-diagonal - 1).cpu(), layout(x))
            assert not y.triu(diagonal).any()
            assert not y.tril(-diagonal - 1).any()


def test_an_identity_of_no_rows_or_columns(device):
    most = 2**63 - 1
    assert torch.eye(0, most, device=device).shape == (0, most)
    assert torch.eye(most, 0, device=device).shape == (most, 0)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
def test_repeats_that_do_not_add_up_are_reported(device, module, dtype):
    def report(size):
        torch.repeat_interleave(repeats, output_size=size)
        module.synchronize()

    repeats = torch.tensor([1, 2, 3], dtype=dtype, device=device)
    assert repeats.repeat_interleave(repeats, output_size=6).tolist() == [1, 2, 2, 3, 3, 3]
    for size in (0, 3, 7):
        with pytest.raises(RuntimeError, match="allocated size does not match required size"):
            report(size)
    repeats[1] = -2
    with pytest.raises(RuntimeError, match="repeats can not be negative"):
        report(2)


def test_boundaries_that_become_the_result_are_refused(device):
    boundaries = torch.arange(4, device=device)
    with (
        pytest.warns(UserWarning, match="was resized"),
        pytest.raises(RuntimeError, match="searchsorted"),
    ):
        torch.searchsorted(boundaries, 1, out=boundaries)

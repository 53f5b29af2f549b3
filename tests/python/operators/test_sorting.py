"""Sorting, picking, searching and counting against the CPU: dtypes, layouts, specials, errors."""

import pytest
import torch
from torch.testing import assert_close

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
DTYPES = [torch.bool, *INTEGERS, *FLOATS]

LAYOUTS = {
    "contiguous": ((5, 70), lambda x: x),
    "transposed": ((70, 5), lambda x: x.t()),
    "stepped": ((5, 140), lambda x: x[:, ::2]),
    "expanded": ((1, 70), lambda x: x.expand(5, 70)),
    "rank 4": ((3, 4, 2, 5), lambda x: x.permute(3, 1, 0, 2)),
    "scalar": ((), lambda x: x),
    "empty": ((0, 7), lambda x: x),
    "long": ((2, 70_000), lambda x: x),
}

# name -> function of (tensor without ties, dim); every output is compared.
LINES = {
    "sort": lambda x, d: torch.sort(x, dim=d),
    "stable": lambda x, d: torch.sort(x, dim=d, stable=True),
    "descending": lambda x, d: torch.sort(x, dim=d, descending=True, stable=True),
    "argsort": lambda x, d: x.argsort(d), "msort": lambda x, d: x.msort(),
    "topk": lambda x, d: x.topk(min(3, x.size(d)) if x.dim() else 1, d),
    "topk smallest": lambda x, d: x.topk(x.size(d) if x.dim() else 1, d, largest=False),
    "kthvalue": lambda x, d: x.kthvalue(min(2, x.size(d)) if x.dim() else 1, d),
    "median": lambda x, d: x.median(d), "median kept": lambda x, d: x.median(d, keepdim=True),
    "nanmedian": lambda x, d: x.nanmedian(d), "median of all": lambda x, d: x.median(),
    "nanmedian of all": lambda x, d: x.nanmedian(),
    "mode": lambda x, d: x.mode(d).values, "mode kept": lambda x, d: x.mode(d, True).values,
    "unique": lambda x, d: x.unique(return_inverse=True, return_counts=True),
    "unique consecutive": lambda x, d: x.unique_consecutive(True, True),
    "unique dim": lambda x, d: x.unique(dim=d, return_inverse=True, return_counts=True),
    "nonzero": lambda x, d: x.nonzero(), "argwhere": lambda x, d: torch.argwhere(x > 1),
    "nonzero_static": lambda x, d: torch.nonzero_static(x, size=9, fill_value=-3),
    "bucketize": lambda x, d: torch.bucketize(x, x.flatten()[:1]),
}  # fmt: skip


def distinct(shape, dtype):
    """Numbers without ties where the dtype has room for them."""
    count = torch.Size(shape).numel()
    order = torch.randperm(count, generator=torch.Generator().manual_seed(3)).reshape(shape)
    if dtype == torch.bool:
        return order % 3 == 0
    if dtype in (torch.uint8, torch.int8):
        return (order % 100).to(dtype)
    return (order - count // 2).to(dtype) / (1 if dtype in INTEGERS else 4)


def compare(call, *inputs, device):
    """Runs call on both sides; an error of the CPU must be the device's."""
    remote = [x.to(device) for x in inputs]
    try:
        expected = call(*inputs)
    except (RuntimeError, IndexError, NotImplementedError) as error:
        with pytest.raises(type(error)):
            call(*remote)
        return
    found = call(*remote)
    single = isinstance(expected, torch.Tensor)
    for ours, theirs in zip([found] if single else found, [expected] if single else expected,
                            strict=True):  # fmt: skip
        assert ours.device.type == torch.device(device).type
        assert_close(ours.cpu(), theirs, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", LINES)
def test_layouts(device, name, layout):
    shape, view = LAYOUTS[layout]
    x = distinct(shape, torch.float32)
    for dim in (0, -1):
        if layout == "expanded" and dim == 0:
            continue  # every line is of equal elements: which of them is found is free
        if not (layout == "long" and name == "unique dim" and dim == -1):
            compare(lambda t, d=dim: LINES[name](view(t), d), x, device=device)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", LINES)
def test_dtypes(device, name, dtype):
    x = distinct((3, 33), dtype)
    values_only = dtype == torch.bool and name not in ("unique", "unique dim", "stable")

    def call(t):
        found = LINES[name](t, 1)
        return found[0] if values_only and isinstance(found, tuple) else found

    if dtype == torch.bool and name in ("argsort", "sort"):
        return  # the CPU's order of equal elements is free there
    compare(call, x, device=device)


def test_special_values_keep_their_order(device):
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([[0.0, -0.0, nan, -inf, 3.0, inf, -nan, 3.0, -0.0, 0.0]] * 8)
    x = torch.cat([x, x.flip(1), x, x, x], 1)
    for dtype in FLOATS:
        for descending in (False, True):
            for columns in (7, 20, 50):
                compare(lambda t, d=descending: torch.sort(t, stable=True, descending=d),
                        x[:, :columns].to(dtype), device=device)  # fmt: skip
    compare(lambda t: torch.unique(t, return_counts=True), x, device=device)
    compare(lambda t: torch.unique_consecutive(t, True, True), x, device=device)
    for call in (torch.median, torch.nanmedian):
        compare(lambda t, f=call: f(t, 1)[0], x, device=device)
        compare(call, x, device=device)


def test_outputs_given(device):
    x = distinct((6, 40), torch.float32)
    for call in (
        lambda t, v, i: torch.sort(t, 1, out=(v, i)),
        lambda t, v, i: torch.topk(t, 5, out=(v, i)),
        lambda t, v, i: torch.kthvalue(t, 5, out=(v, i)),
        lambda t, v, i: torch.mode(t, 1, out=(v, i)),
        lambda t, v, i: torch.median(t, 0, out=(v, i)),
    ):
        for shape in ((0,), (6, 40)):
            values, indices = torch.empty(shape), torch.empty(shape, dtype=torch.int64)
            compare(call, x, values[:0] if shape != (6, 40) else values.t().contiguous().t()[:0],
                    indices[:0], device=device)  # fmt: skip
    ours = x.to(device)
    torch.sort(ours, 1, out=(ours, torch.empty(6, 40, dtype=torch.int64, device=device)))
    assert_close(ours.cpu(), x.sort(1).values)


SEARCHES = {
    "rows": lambda s, v: torch.searchsorted(s, v),
    "right": lambda s, v: torch.searchsorted(s, v, right=True, out_int32=True),
    "side": lambda s, v: torch.searchsorted(s, v, side="right"),
    "one row": lambda s, v: torch.searchsorted(s[0], v),
    "number": lambda s, v: torch.searchsorted(s[1], 3),
    "sorter": lambda s, v: torch.searchsorted(s.flip(1), v, sorter=s.flip(1).argsort(1)),
    "bucketize": lambda s, v: torch.bucketize(v, s[0]),
    "bucketize right": lambda s, v: torch.bucketize(v.t(), s[0], right=True, out_int32=True),
    "bucketize number": lambda s, v: torch.bucketize(2, s[0]),
    "two dtypes": lambda s, v: torch.searchsorted(s, v.double()),
    "wrong rows": lambda s, v: torch.searchsorted(s[:2], v),
    "wrong side": lambda s, v: torch.searchsorted(s, v, side="left", right=True),
}


@pytest.mark.filterwarnings("ignore:.*non-contiguous")
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=str)
@pytest.mark.parametrize("name", SEARCHES)
def test_searches(device, name, dtype):
    rows = distinct((3, 40), dtype).sort(1).values
    compare(SEARCHES[name], rows, distinct((3, 21), dtype), device=device)


SAME_WORDS = {
    "topk": lambda d: torch.ones(3, device=d).topk(4),
    "topk bool": lambda d: torch.ones(3, dtype=torch.bool, device=d).topk(1),
    "kthvalue": lambda d: torch.ones(3, device=d).kthvalue(4),
    "kthvalue empty": lambda d: torch.ones(2, 0, device=d).kthvalue(1),
    "median": lambda d: torch.ones(2, 0, device=d).median(1),
    "mode": lambda d: torch.ones(2, 0, device=d).mode(1),
    "sort complex": lambda d: torch.ones(3, dtype=torch.complex64, device=d).sort(),
    "unique dim": lambda d: torch.ones(3, 0, device=d).unique(dim=0),
    "bucketize": lambda d: torch.bucketize(torch.ones(3, device=d), torch.ones(2, 2, device=d)),
    "nonzero_static": lambda d: torch.nonzero_static(torch.ones(3, device=d), size=-1),
    "sort dim": lambda d: torch.ones(3, device=d).sort(2),
}


@pytest.mark.parametrize("name", SAME_WORDS)
def test_errors_read_as_on_the_cpu(device, name):
    with pytest.raises((RuntimeError, IndexError)) as expected:
        SAME_WORDS[name]("cpu")
    with pytest.raises(expected.type) as found:
        SAME_WORDS[name](device)
    text = str(found.value).splitlines()[0].replace(f" on {device}", " on CPU")
    assert text == str(expected.value).splitlines()[0]


def test_nothing_falls_back(device, module):
    x = distinct((4, 90), torch.float32).to(device)
    with module.fallback.forbid():
        for call in LINES.values():
            call(x, 1)

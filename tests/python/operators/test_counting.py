"""Counting by bin, membership and running extrema against the CPU: dtypes, layouts, errors."""

import pytest
import torch
from torch.testing import assert_close

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
LOOSE = {torch.float16: 4e-3, torch.bfloat16: 4e-2, torch.float32: 2e-5, torch.float64: 1e-9}

# name -> function of a tensor of small numbers.
CALLS = {
    "bincount": lambda x: x.flatten().bincount(),
    "bincount minlength": lambda x: x.flatten().bincount(minlength=40),
    "bincount weights": lambda x: x.flatten().bincount(torch.linspace(0, 1, x.numel()).to(x)),
    "histc": lambda x: x.histc(7), "histc range": lambda x: x.histc(9, 2, 11),
    "histogram": lambda x: x.histogram(5)[0], "histogram edges": lambda x: x.histogram(5)[1],
    "histogram range": lambda x: x.histogram(6, range=(1.0, 9.0))[0],
    "histogram weights": lambda x: x.histogram(6, weight=x * 2)[0],
    "histogram density": lambda x: x.histogram(6, density=True)[0],
    "histogram bins": lambda x: x.histogram(torch.tensor([0.0, 1, 4, 5]).to(x))[0],
    "histogramdd": lambda x: torch.histogramdd(x.reshape(-1, 2), [3, 4])[0],
    "isin": lambda x: torch.isin(x, x.flatten()[:3]),
    "isin many": lambda x: torch.isin(x, torch.arange(0, 90, 2).to(x)),
    "isin inverted": lambda x: torch.isin(x.t(), x.flatten()[:2], invert=True),
    "isin number": lambda x: torch.isin(x, 3), "isin wider": lambda x: torch.isin(x, x.double()),
    "cummax": lambda x: x.cummax(1), "cummin": lambda x: x.cummin(0),
    "cummax columns": lambda x: x.cummax(0).values, "cummin stepped": lambda x: x[:, ::2].cummin(1),
    "logcumsumexp": lambda x: x.logcumsumexp(1), "logcumsumexp 0": lambda x: x.logcumsumexp(0),
}  # fmt: skip


def small(dtype):
    source = torch.Generator().manual_seed(5)
    x = torch.randint(0, 13, (12, 90), generator=source)
    return x.bool() if dtype == torch.bool else x.to(dtype)


def compare(call, inputs, device, tolerance):
    remote = [x.to(device) for x in inputs]
    try:
        expected = call(*inputs)
    except (RuntimeError, NotImplementedError) as error:
        with pytest.raises(type(error)):
            call(*remote)
        return
    found = call(*remote)
    if isinstance(expected, torch.Tensor):
        expected, found = [expected], [found]
    for ours, theirs in zip(found, expected, strict=True):
        assert_close(ours.cpu(), theirs, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.bool, *INTEGERS, *FLOATS], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_dtypes(device, name, dtype):
    call = CALLS[name]
    if name == "bincount weights" and dtype in INTEGERS:

        def call(x):
            return x.flatten().bincount(torch.linspace(0, 1, x.numel(), device=x.device))

    if name.startswith("histc") and dtype in INTEGERS:  # as torch.cuda, not as the CPU
        expected = call(small(dtype).double())
        assert_close(call(small(dtype).to(device)).cpu(), expected.to(dtype))
        return
    compare(call, [small(dtype)], device, LOOSE.get(dtype, 1e-5))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_histograms_of_integers(device, native, dtype):
    """What torch.cuda takes: bounds and bins are exact, counts have the elements' dtype."""
    x = torch.tensor([[0, 1, 2, 3], [3, 4, 7, 100]]).to(dtype)
    y = x.to(device)
    for arguments, expected in (
        ((4, 0, 3), [1, 1, 1, 2]), ((8, 0, 7), [1, 1, 1, 2, 1, 0, 0, 1]), ((2,), [7, 1]),
        ((3, 3, 3), [2, 0, 0]), ((1, 4, 5), [1]), ((5, 50, 60), [0] * 5), ((2, 0.9, 3.9), [2, 3]),
    ):  # fmt: skip
        found = y.histc(*arguments)
        if arguments == (3, 3, 3):  # equal bounds are those of the elements
            expected = [7, 0, 1]
        assert (found.tolist(), found.dtype) == (expected, dtype)
    assert y.t()[::2].histc(4, 0, 3).tolist() == [1, 0, 1, 1]
    assert (y[:0].histc(3).tolist(), y[:1, :1].histc(2).tolist()) == ([0, 0, 0], [0, 1])
    out = torch.empty(7, dtype=dtype, device=device)
    assert torch.histc(y, 4, 0, 3, out=out) is out
    assert out.tolist() == [1, 1, 1, 2]


def test_experts_are_counted(device, native):
    """As transformers' mixture-of-experts models count the tokens of each expert."""
    ids = torch.randint(0, 60, (300_000,), generator=torch.Generator().manual_seed(2))
    found = torch.histc(ids.to(device).int(), bins=64, min=0, max=63)
    assert found.dtype == torch.int32
    assert_close(found.cpu().long(), torch.bincount(ids, minlength=64))
    large = torch.tensor([2**60, 2**60 + 1, 2**60 + 3], device=device)
    assert large.histc(4, 2**60, 2**60 + 3).tolist() == [1, 1, 0, 1]


def test_refused_histograms(device):
    x = torch.arange(6, device=device)
    for call, message in (
        (lambda: x.histc(0), "bins must be > 0"), (lambda: x.histc(3, 5, 2), "larger than min"),
        (lambda: torch.histc(x, 3, out=x.float()), "same dtype"),
        (lambda: x.bool().histc(2), "not implemented"), (lambda: x.histogram(2), "not implemented"),
        (lambda: (x + 0j).histc(2), "not implemented|complex"),
        (lambda: x.float().histc(0), "bins must be > 0"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=message):
            call()


def test_large_counts(device):
    x = torch.randint(0, 500, (300_000,), generator=torch.Generator().manual_seed(1))
    compare(torch.bincount, [x], device, 0)
    compare(lambda t: t.histc(64), [x.float()], device, 0)
    compare(lambda t, w: t.bincount(w), [x, x.double() / 500], device, 1e-9)


def test_special_values(device):
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([[1.0, nan, 3.0, nan], [-inf, -inf, 2.0, inf], [5.0, 5.0, -0.0, 0.0]])
    for call in (lambda t: t.cummax(1), lambda t: t.cummin(1), lambda t: t.cummax(0),
                 lambda t: t.logcumsumexp(1), lambda t: t.histc(4, 0, 4)):  # fmt: skip
        compare(call, [x], device, 1e-6)
    for call in (lambda t: t.cummax(0), lambda t: t.logcumsumexp(0)):
        compare(call, [torch.tensor(2.0)], device, 1e-6)
        compare(call, [torch.empty(0, 3)], device, 1e-6)


def test_output_is_resized(device):
    x = torch.randn(30, 40, generator=torch.Generator().manual_seed(3))
    for size in ((2,), (40, 30), (0,)):
        out = torch.empty(size, device=device)
        assert torch.logcumsumexp(x.to(device), 0, out=out) is out
        assert_close(out.cpu(), x.logcumsumexp(0))


@pytest.mark.parametrize("name", ["cummax", "cummin stepped", "logcumsumexp", "sort", "topk"])
def test_gradients(device, name):
    call = {"sort": lambda x: x.sort(1), "topk": lambda x: x.topk(5), **CALLS}[name]
    order = torch.randperm(300, generator=torch.Generator().manual_seed(2))
    sides = []
    for where in ("cpu", device):
        x = (order.float().reshape(4, 75) / 50).to(where).requires_grad_()
        found = call(x)
        (found if isinstance(found, torch.Tensor) else found[0]).square().sum().backward()
        sides.append(x.grad.cpu())
    assert_close(sides[1], sides[0], rtol=1e-4, atol=1e-4)


SAME_WORDS = {
    "negative": lambda d: torch.tensor([1, -1], device=d).bincount(),
    "floats": lambda d: torch.ones(3, device=d).bincount(),
    "matrix": lambda d: torch.ones(3, 3, dtype=torch.int64, device=d).bincount(),
    "minlength": lambda d: torch.ones(3, dtype=torch.int64, device=d).bincount(minlength=-1),
    "weights": lambda d: torch.arange(3, device=d).bincount(torch.ones(4, device=d)),
    "histc bins": lambda d: torch.ones(3, device=d).histc(0),
    "histc range": lambda d: torch.ones(3, device=d).histc(4, 5, 2),
    "histc infinite": lambda d: torch.tensor([1.0, float("inf")], device=d).histc(4),
    "isin complex": lambda d: torch.isin(torch.ones(2, dtype=torch.complex64, device=d), 1),
    "logcumsumexp": lambda d: torch.ones(2, dtype=torch.int64, device=d).logcumsumexp(0),
    "logcumsumexp dim": lambda d: torch.ones(2, 3, device=d).logcumsumexp(2),
    "logcumsumexp empty": lambda d: torch.ones(0, 3, device=d).logcumsumexp(-3),
}


@pytest.mark.parametrize("name", SAME_WORDS)
def test_errors_read_as_on_the_cpu(device, name):
    with pytest.raises((RuntimeError, IndexError)) as expected:
        SAME_WORDS[name]("cpu")
    with pytest.raises(expected.type) as found:
        SAME_WORDS[name](device)
    assert str(found.value).splitlines()[0] == str(expected.value).splitlines()[0]


def test_nothing_falls_back(device, module):
    floats, integers = small(torch.float32).to(device), small(torch.int64).to(device)
    with module.fallback.forbid():
        for name, call in CALLS.items():
            call(integers if name.startswith("bincount") else floats)

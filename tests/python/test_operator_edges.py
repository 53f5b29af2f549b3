"""Arguments at the edge of what operators take: as on the CPU, or refused in words."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

DTYPES = [torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.float32]
BOUNDS = [-1, 300, -129, 2**40, 2**63 + 5, 1e300, -1e300, 0.5, float("inf"), float("nan")]


def outcome(call):
    try:
        result = call()
    except RuntimeError as error:
        return str(error).split("\n")[0]
    return result.cpu()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["clamp_min", "clamp_max", "clamp", "clamp_", "clamp_min_"])
def test_bounds_beyond_the_dtype_are_those_of_the_cpu(device, native, dtype, name):
    x = torch.tensor([0, 1, 5, 100]).to(dtype)
    for bound in BOUNDS:
        expected, found = (
            outcome(lambda place=place, bound=bound: getattr(x.clone().to(place), name)(bound))
            for place in ("cpu", device)
        )
        if isinstance(expected, str):
            assert found == expected
        else:
            assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


def test_both_bounds_are_checked(device):
    for dtype, bounds in (
        (torch.uint8, (1, 300)),
        (torch.int8, (-200, 5)),
        (torch.float16, (0, 1e9)),
    ):
        x = torch.ones(3, dtype=dtype, device=device)
        with pytest.raises(RuntimeError, match="without overflow"):
            x.clamp(*bounds)
    assert torch.ones(3, device=device).clamp(0, 2**63 + 5).tolist() == [1, 1, 1]


MODULES = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn_tanh": nn.RNN, "rnn_relu": nn.RNN}


@pytest.mark.parametrize("inference", [False, True], ids=["training", "inference"])
@pytest.mark.parametrize("name", MODULES)
def test_sizes_of_batches_on_the_device_are_refused(device, name, inference):
    layer = MODULES[name](4, 2).to(device)
    states = torch.zeros(1, 3, 2, device=device)
    hidden = [states, states] if name == "lstm" else states
    data, sizes = torch.ones(9, 4, device=device), torch.tensor([3, 2, 2, 1, 1])
    rest = ([*layer.parameters()], True, 1, 0.0, False, False)
    function = getattr(torch, name)
    with torch.inference_mode(inference):
        right = function(data, sizes, hidden, *rest)[0]
        assert right.shape == (9, 2)
        assert right.requires_grad is not inference
        for given in (data, data.cpu()):
            with pytest.raises(ValueError, match="batch_sizes should always be on CPU"):
                function(given, sizes.to(device), hidden, *rest)


def test_packed_sequences_have_their_lengths_on_the_cpu(device):
    x, lengths = torch.ones(5, 3, 4, device=device), torch.tensor([5, 3, 1])
    packed, sizes = torch._pack_padded_sequence(x, lengths, False)
    with pytest.raises(RuntimeError, match="1D CPU int64 tensor"):
        torch._pack_padded_sequence(x, lengths.to(device), False)
    with pytest.raises(RuntimeError, match="1D CPU int64 tensor"):
        torch._pad_packed_sequence(packed, sizes.to(device), False, 0.0, 5)
    unpack = torch.ops.aten._pack_padded_sequence_backward
    assert unpack(packed, [5, 3, 4], sizes, False).sum().item() == packed.numel()
    with pytest.raises(ValueError, match="batch_sizes should always be on CPU"):
        unpack(packed, [5, 3, 4], sizes.to(device), False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_trigamma_and_digamma_near_their_poles(device, native, dtype):
    poles = [0.0, -0.0, -1, -2, -3, -10, -1000, -12345]
    x = torch.tensor([*poles, -1.5, -1e-12, 1e-12, -1e-7, -30.25, float("inf"), -float("inf")])
    x = x.to(dtype)
    for degree in (0, 1):
        expected = torch.polygamma(degree, x)
        found = torch.polygamma(degree, x.to(device)).cpu()
        assert_close(
            found,
            expected,
            rtol=2e-2 if dtype == torch.bfloat16 else 1e-4,
            atol=1e-5,
            equal_nan=True,
        )


def test_bounds_of_int64_are_exact(device, native):
    x = torch.zeros(3, dtype=torch.int64)
    for bound in (2**53 + 1, 2**62 + 1):
        assert x.to(device).clamp(min=bound).tolist() == x.clamp(min=bound).tolist()


EXPONENTS = [0, 1, -1, 5, 24, -24, 63, 100, -100, 127, -126, -127, 128, -149, -150, 200, -200, 300,
             -300, 1000, -1000, 1023, 1024, -1022, -1074, -1075, 2100, -2100, 100000, -100000]  # fmt: skip
MANTISSAS = [0.0, -0.0, 1.0, -1.5, 3.25, 1e-30, -7e30, 1e-40, 2.0**-149, 1.9999999,
             float("inf"), float("-inf"), float("nan")]  # fmt: skip


@pytest.mark.parametrize("integer", [torch.int8, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str
)
def test_ldexp_by_integers_rounds_once(device, native, dtype, integer):
    limits = torch.iinfo(integer)
    inside = torch.tensor(EXPONENTS).clamp(limits.min, limits.max)
    x, e = torch.tensor(MANTISSAS, dtype=torch.float64).to(dtype)[:, None], inside.to(integer)
    expected = torch.ldexp(x, e)
    y, f = x.to(device), e.to(device)
    assert_close(torch.ldexp(y, f).cpu(), expected, rtol=0, atol=0, equal_nan=True)
    out = torch.empty(0, dtype=dtype, device=device)
    torch.ldexp(y, f, out=out)
    assert_close(out.cpu(), expected, rtol=0, atol=0, equal_nan=True)
    wide = y.expand(-1, len(EXPONENTS)).clone()
    assert_close(wide.ldexp_(f).cpu(), expected, rtol=0, atol=0, equal_nan=True)


def test_ldexp_gradients(device, native):
    x, e = torch.tensor([1.0, -2.5, 8.0]), torch.tensor([3, -1, 0])
    y = x.to(device).requires_grad_()
    x.requires_grad_()
    for t, where in ((x, "cpu"), (y, device)):
        torch.ldexp(t, e.to(where)).square().sum().backward()
    assert_close(y.grad.cpu(), x.grad)
    whole = torch.tensor([3, 5], device=device)
    assert_close(torch.ldexp(whole, whole).cpu(), torch.ldexp(whole.cpu(), whole.cpu()))
    with pytest.raises(RuntimeError, match="ldexp can't be cast"):
        torch.ldexp(y.detach(), e.to(device), out=torch.empty(3, device=device).long())


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str
)
def test_kaiser_windows(device, native, dtype):
    for length, more in (
        (0, ()),
        (1, ()),
        (2, ()),
        (9, (False,)),
        (300 if dtype.itemsize > 2 else 99, (True, 3.5)),
        (64, (False, 0.0)),
    ):
        expected = torch.kaiser_window(length, *more, dtype=torch.float64).to(dtype)
        found = torch.kaiser_window(length, *more, dtype=dtype, device=device)
        assert_close(found.cpu(), expected)
    out = torch.empty(0, dtype=dtype, device=device)
    torch.ops.aten.kaiser_window.beta_out(7, True, 8.0, out=out)
    assert_close(out.cpu(), torch.kaiser_window(7, True, 8.0, dtype=torch.float64).to(dtype))


SOME = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
        torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128]  # fmt: skip


@pytest.mark.parametrize("first", SOME, ids=str)
def test_equal_of_two_dtypes(device, native, first):
    for second in SOME:
        for values in ([1, 0, 1], [1, 2, 3], [300, -1, 5], [2**53 + 1, 2**24 + 1, 1], []):
            x, y = torch.tensor(values).to(first), torch.tensor(values).to(second)
            for a, b in ((x, y), (x, y[:2]), (x, y + y[:1].any()), (x[None], y)):
                assert torch.equal(a.to(device), b.to(device)) == torch.equal(a, b), (a, b)
    x = torch.tensor([float("nan")], device=device)
    assert not torch.equal(x, x)

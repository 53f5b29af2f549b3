"""Arguments at the edge of what operators take: as on the CPU, or refused in words."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from sandbox import interpret

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


OVERLAPPING = {
    "repeated": lambda x: x[:1].expand(4),
    "repeated rows": lambda x: x[:3, None].expand(3, 4),
    "repeated columns": lambda x: x[None, :4].expand(3, 4),
    "in part": lambda x: x.as_strided((4, 3), (1, 1)),
    "in steps": lambda x: x.as_strided((3, 4), (2, 1)),
    "apart": lambda x: x[:12].view(3, 4).mT[::2],
}
WRITES = {
    "masked_fill_": lambda x, mask, device: x.masked_fill_(mask, 1),
    "masked_fill_ by a tensor": lambda x, mask, device: x.masked_fill_(
        mask, torch.ones((), dtype=x.dtype, device=device)
    ),
    "a mask of one": lambda x, mask, device: x.masked_fill_(mask.any(), 1),
    "put_": lambda x, mask, device: x.put_(
        torch.tensor([0, -2], device=device), torch.ones(2, dtype=x.dtype, device=device)
    ),
    "put_ that adds": lambda x, mask, device: x.put_(
        torch.tensor([1, -2, 1], device=device), torch.ones(3, dtype=x.dtype, device=device), True
    ),
    "a mask in []": lambda x, mask, device: x.__setitem__(mask, 1),
}


@pytest.mark.filterwarnings("ignore:Use of .* on expanded tensors is deprecated")
@pytest.mark.parametrize("layout", OVERLAPPING)
@pytest.mark.parametrize("name", WRITES)
def test_writes_to_elements_that_share_their_memory(device, layout, name):
    for dtype in (torch.float32, torch.float16, torch.int64, torch.bool, torch.complex128):
        found = []
        for place in ("cpu", device):
            memory = torch.zeros(24, dtype=dtype, device=place)
            x = OVERLAPPING[layout](memory)
            mask = torch.zeros(x.shape, dtype=torch.bool)
            mask.view(-1)[[0, x.numel() // 2]] = True
            change = WRITES[name]
            result = outcome(lambda x=x, m=mask, p=place, c=change: c(x, m.to(p), p) or x)
            found.append(result if isinstance(result, str) else memory.cpu())
        if isinstance(found[0], str):
            assert found[1] == found[0]
        else:
            assert_close(found[1], found[0])


def test_a_fill_through_any_of_the_repeats_holds(device):
    mask = torch.tensor([1, 0, 0, 0], dtype=torch.bool, device=device)
    with pytest.warns(UserWarning, match="masked_fill_ on expanded tensors"):
        x = torch.zeros(1, 1, device=device).expand(1, 4).masked_fill_(mask, 1)
    assert x.tolist() == [[1, 1, 1, 1]]


def test_ranges_are_not_written_over_one_another(device):
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.arange(4, out=torch.zeros(1, device=device).expand(4))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_next_number_of_each_dtype(device, native, dtype):
    info = torch.finfo(dtype)
    edges = [
        0.0,
        1.0,
        1.5,
        3.0,
        0.3,
        info.tiny,
        info.smallest_normal * 1.5,
        info.max,
        1e-7,
        2.0**-24,
    ]
    x = torch.tensor([*edges, *[-e for e in edges], torch.inf, -torch.inf, torch.nan], dtype=dtype)
    a, b = torch.broadcast_tensors(x[:, None], x)
    found = torch.nextafter(a.to(device), b.to(device)).cpu()
    expected = torch.nextafter(a, b)
    assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(found.signbit() | found.isnan(), expected.signbit() | expected.isnan())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_wider_operands_are_rounded_to_the_half_type_first(device, native, dtype):
    x = (torch.arange(-40, 40) / 8).to(dtype)
    numbers = torch.arange(2001, 2081)
    for name in ("add", "sub", "mul", "maximum", "fmod", "remainder", "eq", "lt"):
        call = getattr(torch, name)
        for other in (numbers, numbers.int(), numbers[:1], numbers[0], torch.tensor(0.1)):
            wanted = call(x, other)
            assert torch.equal(call(x.to(device), other.to(device)).cpu(), wanted), (name, other)
            if other.dim() == 0:
                assert torch.equal(call(x.to(device), other).cpu(), wanted), (name, other)
    for number in (2049, 0.1, 65505):
        for call in (torch.add, torch.sub, torch.mul, torch.div, torch.fmod, torch.eq, torch.ge):
            assert torch.equal(call(x.to(device), number).cpu(), call(x, number)), (call, number)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_incomplete_gamma_functions_far_from_their_step(device, dtype):
    a = torch.tensor([1e30, 1e20, 300, 1e6, 1e8, torch.inf, torch.nan, 0.0, -1], dtype=dtype)[
        :, None
    ]
    x = torch.tensor([0, 1e-30, 1, 12345, 1e35, torch.inf, torch.nan], dtype=dtype)
    for call in (torch.igamma, torch.igammac):
        assert_close(call(a.to(device), x.to(device)).cpu(), call(a, x), equal_nan=True)


def test_complex_arc_tangents_of_infinity(device):
    parts = [0.0, 1.0, -1.0, torch.inf, -torch.inf, torch.nan]
    z = torch.tensor([complex(re, im) for re in parts for im in parts], dtype=torch.complex128)
    z = z[z.isinf()]
    for call in (torch.atan, torch.atanh):
        found, wanted = call(z.to(device)).cpu(), call(z)
        assert_close(torch.view_as_real(found), torch.view_as_real(wanted), equal_nan=True)


def test_an_index_into_nothing_is_refused(device):
    def reduced(to, index):
        source = torch.ones(len(index), 3, device=to)
        index = torch.tensor(index, dtype=torch.int64, device=to)
        return torch.empty(0, 3, device=to).index_reduce(0, index, source, "prod")

    for to in ("cpu", device):
        assert reduced(to, []).shape == (0, 3)
        with pytest.raises(IndexError, match="out of range"):
            reduced(to, [0])


def test_gradients_of_padding_ask_for_their_paddings():
    """PyTorch's shape functions read them without asking, which may end the process."""
    interpret(
        """
        for name, rank in (("reflection_pad1d", 2), ("replication_pad1d", 2), ("reflection_pad3d", 4)):
            x = torch.ones([4] * rank, device=D)
            gradient = getattr(torch.ops.aten, name + "_backward")
            for padding in ([], [1]):
                for out in ({}, {"grad_input": torch.empty_like(x)}):
                    try:
                        gradient(x, x, padding, **out)
                    except RuntimeError as error:
                        assert "padding size is expected to be" in str(error), error
                    else:
                        raise AssertionError(name)
        """
    ).good()


@pytest.mark.parametrize("dtype", [*DTYPES, torch.bfloat16, torch.bool], ids=str)
@pytest.mark.parametrize("name", ["min", "max"])
def test_the_extremum_of_nothing_is_a_bound(device, name, dtype):
    for wide in (dtype, torch.float64):
        found, expected = (
            getattr(torch.ops.aten, name).unary_out(
                torch.empty(0, dtype=dtype, device=place),
                out=torch.ones(0, dtype=wide, device=place),
            )
            for place in (device, "cpu")
        )
        assert_close(found.cpu(), expected, rtol=0, atol=0)


def test_topk_into_its_input(device):
    x = torch.tensor([[3, 1, 4], [1, 5, 9]], device=device)
    values, positions = torch.topk(x, 3, out=(x, torch.zeros_like(x)))
    assert values is x
    assert x.tolist() == [[4, 3, 1], [9, 5, 1]]
    assert positions.tolist() == [[2, 0, 1], [2, 1, 0]]


def test_a_sum_of_nothing_into_its_input(device):
    found, expected = (
        torch.sum(x, 1, out=x)
        for x in (torch.empty(0, 2, 3, device=place) for place in (device, "cpu"))
    )
    assert found.shape == expected.shape == (0, 3)


POLYNOMIALS = ["hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
               "legendre_polynomial_p", "chebyshev_polynomial_t"]  # fmt: skip


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_that_cancel_are_as_near_as_the_cpu(device, name):
    x, n = torch.linspace(-3, 3, 1201), 7
    function = getattr(torch.special, name)
    exact, error = function(x.double(), n), (function(x, n) - function(x.double(), n)).abs()
    found = function(x.to(device), n).cpu()
    assert ((found - exact).abs() <= error.max() + 1e-6 * exact.abs()).all()

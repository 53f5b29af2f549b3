"""What PyTorch's CPU refuses, the device refuses: with the same exception in the same words."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

pytestmark = pytest.mark.filterwarnings("ignore")

INTEGERS = [torch.int64, torch.int32, torch.uint8, torch.bool]
Call = Callable[..., Any]


def refusal(call: Call, *arguments: Any) -> tuple[type, str] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(*arguments)
    except Exception as error:
        return type(error), str(error).split("\n")[0]
    return None


def check(device: str, module: Any, call: Call, *arguments: Any) -> None:
    expected, found = refusal(call, "cpu", *arguments), refusal(call, device, *arguments)
    assert expected is not None, "the CPU takes it"
    assert found == expected
    module.synchronize()
    assert torch.ones(3, device=device).add_(1).tolist() == [2, 2, 2]


def ones(d: str, dtype: torch.dtype, *sizes: int) -> torch.Tensor:
    return torch.ones(sizes, dtype=dtype, device=d)


def rows(d: str, *values: int) -> torch.Tensor:
    return torch.tensor(values, device=d)


def norms(function: Call) -> Call:
    return lambda d, t: function(ones(d, t, 2, 4, 3, 3))


# Integers and bools where only floating numbers have an answer.
FLOATING: dict[str, Call] = {
    "adaptive_avg_pool1d": lambda d, t: F.adaptive_avg_pool1d(ones(d, t, 1, 2, 6), 3),
    "adaptive_avg_pool2d": norms(lambda x: F.adaptive_avg_pool2d(x, 2)),
    "adaptive_avg_pool3d": lambda d, t: F.adaptive_avg_pool3d(ones(d, t, 1, 2, 4, 4, 4), 2),
    "adaptive_max_pool2d": norms(lambda x: F.adaptive_max_pool2d(x, 2)),
    "adaptive_max_pool3d": lambda d, t: F.adaptive_max_pool3d(ones(d, t, 1, 2, 4, 4, 4), 2),
    "batch_norm": norms(lambda x: F.batch_norm(x, None, None, training=True)),
    "instance_norm": norms(F.instance_norm),
    "group_norm": norms(lambda x: F.group_norm(x, 2)),
    "layer_norm": norms(lambda x: F.layer_norm(x, (3,))),
    "softmax": norms(lambda x: torch.softmax(x, -1)),
    "log_softmax": norms(lambda x: torch.log_softmax(x, 1)),
    "softmax with a dtype": lambda d, t: ones(d, torch.float32, 3).softmax(0, dtype=t),
    "nll_loss": lambda d, t: F.nll_loss(ones(d, t, 2, 3), rows(d, 0, 1)),
    "nll_loss2d": lambda d, t: F.nll_loss(ones(d, t, 2, 3, 1, 1), rows(d, 0, 1).view(2, 1, 1)),
    "multi_margin_loss": lambda d, t: F.multi_margin_loss(ones(d, t, 2, 3), rows(d, 0, 1)),
    "embedding_bag": lambda d, t: F.embedding_bag(rows(d, 0, 1).view(1, 2), ones(d, t, 3, 3)),
    "grid_sample": lambda d, t: F.grid_sample(ones(d, t, 1, 1, 3, 3), ones(d, t, 1, 2, 2, 2)),
    "max_unpool2d": lambda d, t: F.max_unpool2d(
        ones(d, t, 1, 1, 2, 2), rows(d, 0, 3, 8, 11).view(1, 1, 2, 2), 2
    ),
    "dropout": lambda d, t: F.dropout(ones(d, t, 9)),
    "native_dropout": lambda d, t: torch.native_dropout(ones(d, t, 9), 0.5, True),
    "randn": lambda d, t: torch.randn(3, dtype=t, device=d),
    "randn_like": lambda d, t: torch.randn_like(ones(d, t, 3)),
    "normal": lambda d, t: torch.normal(0, 1, (3,), dtype=t, device=d),
    "normal_": lambda d, t: ones(d, t, 3).normal_(),
    "log_normal_": lambda d, t: ones(d, t, 3).log_normal_(),
    "exponential_": lambda d, t: ones(d, t, 3).exponential_(),
    "cauchy_": lambda d, t: ones(d, t, 3).cauchy_(),
    "uniform_": lambda d, t: ones(d, t, 3).uniform_(),
    "gumbel_softmax": lambda d, t: F.gumbel_softmax(ones(d, t, 3)),
    "bernoulli": lambda d, t: torch.bernoulli(ones(d, t, 3)),
    "bernoulli_": lambda d, t: ones(d, torch.float32, 3).bernoulli_(ones(d, t, 3)),
    "rrelu": lambda d, t: F.rrelu(ones(d, t, 3), training=True),
    "mean": lambda d, t: ones(d, t, 3).mean(),
    "mean into out": lambda d, t: torch.mean(ones(d, torch.float32, 3), 0, out=ones(d, t).clone()),
    "nansum into out": lambda d, t: torch.nansum(
        ones(d, torch.float32, 3, 3), 0, out=ones(d, t, 3)
    ),
    "cdist": lambda d, t: torch.cdist(ones(d, torch.float32, 2, 2), ones(d, t, 2, 2)),
    "elu of nothing": lambda d, t: F.elu(ones(d, t, 0)),
    "mish of nothing": lambda d, t: F.mish(ones(d, t, 0)),
    "logaddexp of nothing": lambda d, t: torch.logaddexp(ones(d, t, 0), ones(d, t, 0)),
}


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", FLOATING)
def test_integers_are_refused(device, module, name, dtype):
    check(device, module, FLOATING[name], dtype)


OTHER_DTYPES: dict[str, Call] = {
    "avg_pool2d of bytes": lambda d: F.avg_pool2d(ones(d, torch.uint8, 1, 1, 4, 4), 2),
    "avg_pool3d of bytes": lambda d: F.avg_pool3d(ones(d, torch.uint8, 1, 1, 4, 4, 4), 2),
    "avg_pool2d of bools": lambda d: F.avg_pool2d(ones(d, torch.bool, 1, 1, 4, 4), 2),
    "avg_pool2d of complex": lambda d: F.avg_pool2d(ones(d, torch.complex64, 1, 1, 4, 4), 2),
    "max_pool2d of bools": lambda d: F.max_pool2d(ones(d, torch.bool, 1, 1, 4, 4), 2),
    "max_pool3d of complex": lambda d: F.max_pool3d(ones(d, torch.complex64, 1, 1, 4, 4, 4), 2),
    "interpolate int64": lambda d: F.interpolate(ones(d, torch.int64, 1, 1, 4), 8),
    "interpolate complex": lambda d: F.interpolate(ones(d, torch.complex64, 1, 1, 4, 4), 8),
    "unfold int64": lambda d: F.unfold(ones(d, torch.int64, 1, 1, 4, 4), 2),
    "pad bools": lambda d: F.pad(ones(d, torch.bool, 1, 1, 4), (1, 1), mode="reflect"),
    "softmax of complex": lambda d: ones(d, torch.complex64, 3, 3).softmax(0),
    "nll_loss of complex": lambda d: F.nll_loss(ones(d, torch.complex64, 2, 3), rows(d, 0, 1)),
    "group_norm of complex": lambda d: F.group_norm(ones(d, torch.complex64, 2, 4, 3), 2),
    "layer_norm with half weights": lambda d: F.layer_norm(
        ones(d, torch.float32, 2, 3), (3,), ones(d, torch.float16, 3), ones(d, torch.float16, 3)
    ),
    "batch_norm with double statistics": lambda d: F.batch_norm(
        ones(d, torch.float32, 2, 3), ones(d, torch.float64, 3), ones(d, torch.float64, 3)
    ),
    "grid_sample of two dtypes": lambda d: F.grid_sample(
        ones(d, torch.float32, 1, 1, 3, 3), ones(d, torch.float64, 1, 2, 2, 2)
    ),
    "cumsum to bools": lambda d: ones(d, torch.float32, 3).cumsum(0, dtype=torch.bool),
    "cumprod to bools": lambda d: ones(d, torch.float32, 3).cumprod(0, dtype=torch.bool),
    "cumsum_ of bools": lambda d: ones(d, torch.bool, 3).cumsum_(0),
    "arange of bools": lambda d: torch.arange(2, dtype=torch.bool, device=d),
    "arange of complex": lambda d: torch.arange(2, dtype=torch.complex64, device=d),
    "linspace of bools": lambda d: torch.linspace(0, 1, 2, dtype=torch.bool, device=d),
    "randperm of bools": lambda d: torch.randperm(2, dtype=torch.bool, device=d),
    "geometric_ of bools": lambda d: ones(d, torch.bool, 3).geometric_(0.5),
    "bernoulli_ of complex": lambda d: ones(d, torch.complex64, 3).bernoulli_(0.5),
    "exponential_ of complex": lambda d: ones(d, torch.complex64, 3).exponential_(),
    "index_reduce of bools": lambda d: ones(d, torch.bool, 3).index_reduce_(
        0, rows(d, 0), ones(d, torch.bool, 1), "prod"
    ),
    "clamp_max of no complex number": lambda d: torch.maximum(
        ones(d, torch.complex64, 0), ones(d, torch.complex64, 0)
    ),
    "polar of halves": lambda d: torch.polar(*[ones(d, torch.float16, 3)] * 2),
    "bessel_j0 of halves": lambda d: torch.special.bessel_j0(ones(d, torch.float16, 0)),
    "zeta of bfloat16": lambda d: torch.special.zeta(*[ones(d, torch.bfloat16, 3)] * 2),
    "unique of complex slices": lambda d: ones(d, torch.complex64, 2, 2).unique(dim=0),
    "unique_consecutive of complex slices": lambda d: torch.unique_consecutive(
        ones(d, torch.complex64, 2), dim=-1
    ),
    "trace of bools": lambda d: ones(d, torch.bool, 2, 2).trace(),
    "nansum of no complex number": lambda d: ones(d, torch.complex64, 2, 0).nansum(0),
    "nanmean of no complex number": lambda d: ones(d, torch.complex64, 0).nanmean(),
    "batch_norm_update_stats in double": lambda d: torch.batch_norm_update_stats(
        ones(d, torch.bfloat16, 2, 1), *[ones(d, torch.float64, 1)] * 2, 0.5
    ),
    "fft of bfloat16": lambda d: torch.ops.aten._fft_r2c(
        ones(d, torch.bfloat16, 4, 4), [0], 0, True
    ),
    "repeat_interleave by floats": lambda d: ones(d, torch.float32, 3).repeat_interleave(
        ones(d, torch.float64, 3)
    ),
    "fmod of no bools": lambda d: torch.fmod(ones(d, torch.bool, 0), ones(d, torch.bool, 0)),
}


@pytest.mark.parametrize("name", OTHER_DTYPES)
def test_dtypes_without_an_answer_are_refused(device, module, name):
    check(device, module, OTHER_DTYPES[name])


def byte(d: str) -> torch.Tensor:
    return ones(d, torch.uint8, 2, 2)


NUMBERS: dict[str, Call] = {
    "add": lambda d: torch.add(byte(d), byte(d), alpha=300),
    "addcmul": lambda d: torch.addcmul(byte(d), byte(d), byte(d), value=300),
    "pow": lambda d: byte(d) ** 300,
    "threshold": lambda d: F.threshold(byte(d), 2, 300),
    "addmm alpha": lambda d: torch.addmm(byte(d), byte(d), byte(d), alpha=300),
    "addmm beta": lambda d: torch.addmm(byte(d), byte(d), byte(d), beta=300),
    "linspace": lambda d: torch.linspace(0, 400, 3, dtype=torch.int8, device=d),
    "fill_": lambda d: byte(d).fill_(300),
    "masked_fill": lambda d: byte(d).masked_fill(byte(d) > 0, 300),
    "scatter": lambda d: byte(d).scatter_(0, rows(d, 0).view(1, 1), 300),
    "multi_margin_loss p": lambda d: torch.ops.aten.multi_margin_loss(
        ones(d, torch.float32, 2, 3), rows(d, 0, 1), 3
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_do_not_fit_are_refused(device, module, name):
    check(device, module, NUMBERS[name])


def expanded(d: str, dtype: torch.dtype, *sizes: int) -> torch.Tensor:
    return torch.zeros([1] * len(sizes), dtype=dtype, device=d).expand(sizes)


def square(d: str) -> torch.Tensor:
    return torch.arange(16.0, device=d).view(4, 4)


def whole(d: str, *sizes: int) -> torch.Tensor:
    return expanded(d, torch.int64, *sizes)


def real(d: str, *sizes: int) -> torch.Tensor:
    return expanded(d, torch.float32, *sizes)


def shifted(d: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Two matrices, one element apart in one memory."""
    memory = torch.arange(17.0, device=d)
    return memory[:16].view(4, 4), memory[1:].view(4, 4)


def into_shifted(function: Call) -> Call:
    def call(d: str) -> None:
        source, out = shifted(d)
        function(source, out)

    return call


LONGS = torch.int64
# out= whose elements share memory, or that shares memory with an input.
OVERLAPS: dict[str, Call] = {
    "mm": lambda d: torch.mm(square(d), square(d), out=real(d, 4, 4)),
    "matmul": lambda d: torch.matmul(square(d), square(d), out=real(d, 4, 4)),
    "linear": lambda d: torch._C._nn.linear(square(d), square(d), out=real(d, 4, 4)),
    "addmm": lambda d: torch.addmm(square(d), square(d), square(d), out=real(d, 4, 4)),
    "addmm_": lambda d: real(d, 4, 4).addmm_(square(d), square(d)),
    "addmm beside": into_shifted(lambda a, out: torch.addmm(a, a.clone(), a.clone(), out=out)),
    "addmv": lambda d: torch.addmv(square(d)[0], square(d), square(d)[1], out=real(d, 4)),
    "addbmm": lambda d: torch.addbmm(
        square(d), square(d)[None], square(d)[None], out=real(d, 4, 4)
    ),
    "baddbmm": lambda d: torch.baddbmm(
        square(d)[None], square(d)[None], square(d)[None], out=real(d, 1, 4, 4)
    ),
    "cumsum": lambda d: torch.cumsum(square(d), 0, out=real(d, 4, 4)),
    "cumsum_": lambda d: real(d, 4, 4).cumsum_(0),
    "cumsum beside": into_shifted(lambda a, out: torch.cumsum(a, 0, out=out)),
    "logcumsumexp": lambda d: torch.logcumsumexp(square(d), 0, out=real(d, 4, 4)),
    "bernoulli beside": into_shifted(lambda a, out: torch.bernoulli(a.fill_(0.5), out=out)),
    "cumprod": lambda d: torch.cumprod(square(d), 1, out=real(d, 4, 4)),
    "cumprod beside": into_shifted(lambda a, out: torch.cumprod(a, 0, out=out)),
    "max values": lambda d: torch.max(square(d), 0, out=(real(d, 4), ones(d, LONGS, 4))),
    "max indices": lambda d: torch.max(square(d), 0, out=(square(d)[0].clone(), whole(d, 4))),
    "min values": lambda d: torch.min(square(d), 0, out=(real(d, 4), ones(d, LONGS, 4))),
    "max into its input": into_shifted(
        lambda a, out: torch.max(a, 0, out=(a[0], torch.zeros_like(a[0], dtype=LONGS)))
    ),
    "aminmax": lambda d: torch.aminmax(
        square(d), dim=0, out=(real(d, 4), ones(d, torch.float32, 4))
    ),
    "topk": lambda d: torch.topk(square(d), 2, 0, out=(real(d, 2, 4), ones(d, LONGS, 2, 4))),
    "median into its input": lambda d: (x := square(d)).median(0, out=(x, ones(d, LONGS, 4))),
    "kthvalue": lambda d: torch.kthvalue(square(d), 2, 0, out=(real(d, 4), ones(d, LONGS, 4))),
    "median": lambda d: torch.median(square(d), 0, out=(real(d, 4), ones(d, LONGS, 4))),
    "mode": lambda d: torch.mode(square(d), 0, out=(real(d, 4), ones(d, LONGS, 4))),
    "nonzero": lambda d: torch.nonzero(square(d), out=whole(d, 15, 2)),
    "masked_select": lambda d: torch.masked_select(square(d), square(d) > -1, out=real(d, 16)),
    "arange": lambda d: torch.arange(4, out=real(d, 4)),
    "linspace": lambda d: torch.linspace(0, 1, 4, out=real(d, 4)),
    "avg_pool2d": lambda d: torch._C._nn.avg_pool2d(square(d)[None], 2, out=real(d, 1, 2, 2)),
    "softmax": lambda d: torch.softmax(square(d), 0, out=real(d, 4, 4)),
    "cat": lambda d: torch.cat([square(d), square(d)], out=real(d, 8, 4)),
    "index_add_": lambda d: real(d, 4, 4).index_add_(0, rows(d, 0, 1, 2, 3), square(d)),
}


@pytest.mark.parametrize("name", OVERLAPS)
def test_outputs_that_share_memory_are_refused(device, module, name):
    check(device, module, OVERLAPS[name])


def test_an_output_may_be_the_input_itself(device):
    for function in (torch.cumsum, torch.cumprod):
        x = square(device) + 1
        assert torch.equal(function(x, 0, out=x).cpu(), function(square("cpu") + 1, 0))
    x = square(device)
    torch.addmm(x, square(device), square(device), out=x)
    assert torch.equal(x.cpu(), torch.addmm(square("cpu"), square("cpu"), square("cpu")))


SHAPES: dict[str, Call] = {
    "addmm without columns": lambda d: torch.addmm(square(d), square(d), square(d)[:, :0]),
    "addmm with beta 0": lambda d: torch.addmm(square(d)[:3], square(d), square(d), beta=0),
    "index_select of a number twice": lambda d: square(d)[0, 0].index_select(0, rows(d, 0, 0)),
    "index_put of a number": lambda d: square(d)[0, 0].index_put_(
        [rows(d, 1)[0] > 0], square(d)[1, 1]
    ),
    "index_put of two sizes": lambda d: square(d).index_put_(
        [rows(d, 0, 1), rows(d, 0, 1, 2)], square(d)[0, 0], True
    ),
    "batch_norm with one of its statistics": lambda d: torch.native_batch_norm(
        square(d), None, None, square(d)[0], None, True, 0.1, 1e-5
    ),
    "batch_norm_update_stats of nothing": lambda d: torch.batch_norm_update_stats(
        square(d)[:, :, None][..., :0], None, None, 0.1
    ),
    "histc of integers, max below min": lambda d: rows(d, 2).histc(9, min=1e-320, max=0),
    "embedding without rows": lambda d: F.embedding(rows(d, 0), square(d)[:0]),
    "grid_sample of numbers": lambda d: F.grid_sample(square(d)[0, 0], square(d)[0, 0]),
    "embedding_bag of five dimensions": lambda d: torch.embedding_bag(
        square(d), rows(d, 0).view(1, 1, 1, 1, 1), rows(d, 0)
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_refused(device, module, name):
    check(device, module, SHAPES[name])


# Only the data shows that these are wrong: the CPU raises at once, the device when it is waited for.
POSITIONS: dict[str, Call] = {
    "index_copy of -1": lambda d: square(d).index_copy_(0, rows(d, -1), square(d)[:1]),
    "index_copy of 4": lambda d: square(d).index_copy_(0, rows(d, 4), square(d)[:1]),
    "embedding_bag of -1": lambda d: torch.embedding_bag(square(d), rows(d, 0, -1), rows(d, 0)),
    "embedding_bag's first offset": lambda d: torch.embedding_bag(
        square(d), rows(d, 0, 1), rows(d, 1)
    ),
    "embedding_bag's last offset": lambda d: torch.embedding_bag(
        square(d), rows(d, 0, 1), rows(d, 0, 3)
    ),
    "index_select": lambda d: square(d).index_select(0, rows(d, -1)),
    "index_select of a number": lambda d: square(d)[0, 0].index_select(0, rows(d, 7)),
    "index_add": lambda d: square(d).index_add_(0, rows(d, -1), square(d)[:1]),
    "index_reduce": lambda d: square(d).index_reduce_(0, rows(d, -1), square(d)[:1], "prod"),
    "index_fill": lambda d: square(d).index_fill_(0, rows(d, -5), 1),
    "gather": lambda d: square(d).gather(0, rows(d, -1).view(1, 1)),
    "scatter": lambda d: square(d).scatter_(0, rows(d, -1).view(1, 1), square(d)),
    "scatter_add": lambda d: square(d).scatter_add_(0, rows(d, -1).view(1, 1), square(d)),
    "take": lambda d: square(d).take(rows(d, -17)),
    "put": lambda d: square(d).put_(rows(d, -17), square(d)[0, :1]),
    "index": lambda d: square(d)[rows(d, -5)],
    "index_put": lambda d: square(d).index_put_((rows(d, 4),), square(d)[0]),
    "embedding": lambda d: F.embedding(rows(d, -1), square(d)),
    "one_hot": lambda d: F.one_hot(rows(d, -1), 3),
    "nll_loss": lambda d: F.nll_loss(square(d), rows(d, 0, 1, 2, -1)),
    "cross_entropy": lambda d: F.cross_entropy(square(d), rows(d, 0, 1, 2, 4)),
    "multi_margin_loss": lambda d: F.multi_margin_loss(square(d), rows(d, 0, 1, 2, -1)),
    "max_unpool2d": lambda d: F.max_unpool2d(square(d)[None], rows(d, *[64] * 16).view(1, 4, 4), 2),
    "searchsorted": lambda d: torch.searchsorted(
        square(d)[0], square(d)[0], sorter=rows(d, 0, 1, 2, -1)
    ),
}


@pytest.mark.parametrize("name", POSITIONS)
def test_positions_out_of_range_are_reported(device, module, name):
    assert refusal(POSITIONS[name], "cpu") is not None

    def waited(d: str) -> None:
        POSITIONS[name](d)
        module.synchronize()

    found = refusal(waited, device)
    assert found is not None
    assert issubclass(found[0], RuntimeError | IndexError)
    assert torch.ones(3, device=device).add_(1).tolist() == [2, 2, 2]


WRAPPING: dict[str, Call] = {
    "index_fill": lambda d: square(d).index_fill(0, rows(d, -1), 9),
    "take": lambda d: square(d).take(rows(d, -1, -16)),
    "put": lambda d: square(d).put_(rows(d, -1, -16), square(d)[0, 2:]),
    "index": lambda d: square(d)[rows(d, -1, -4)],
    "index_put": lambda d: square(d).index_put_((rows(d, -1),), square(d)[0]),
}


@pytest.mark.parametrize("name", WRAPPING)
def test_positions_that_count_from_the_end(device, name):
    assert torch.equal(WRAPPING[name](device).cpu(), WRAPPING[name]("cpu"))


def test_gradient_of_a_complex_table(device):
    gradient = torch.tensor([[1 + 2j, 3 - 1j], [5j, 2], [4, 1 - 1j]])
    found = torch.ops.aten.embedding_dense_backward(
        gradient.to(device), rows(device, 0, 2, 0), 3, -1, False
    )
    expected = torch.tensor([[5 + 2j, 4 - 2j], [0, 0], [5j, 2]])
    torch.testing.assert_close(found.cpu(), expected)


def test_gradient_of_dropout_of_complex_numbers(device):
    x = torch.randn(64, dtype=torch.complex64)
    kept = x.real > 0
    found = torch.ops.aten.native_dropout_backward(x.to(device), kept.to(device), 2.0)
    assert torch.equal(found.cpu(), torch.where(kept, 2 * x, 0))


def test_dropout_of_complex_numbers_keeps_or_doubles(device):
    output, mask = torch.native_dropout(torch.full((50,), 1 + 2j, device=device), 0.5, True)
    assert torch.equal(output.cpu(), mask.cpu() * (2 + 4j))

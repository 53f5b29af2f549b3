# tests/python/operators/test_hostile_arguments.py: sizes, numbers and lists that fit nothing are refused; no process dies.
"""Each call ended its process, or gave numbers, before its operator checked what it takes on trust.

They are ATen's own operators, called by name: autograd and torch.nn.functional never pass such
arguments, but Python can.
"""

from __future__ import annotations

import pytest
import torch

DEVICE = "graft"
aten = torch.ops.aten


def ones(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(sizes, dtype=dtype, device=DEVICE)


def longs(*sizes: int) -> torch.Tensor:
    return torch.zeros(sizes, dtype=torch.int64, device=DEVICE)


def convolution(input=None, weight=None, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1),
                transposed=False, output_padding=(0, 0), groups=1):  # fmt: skip
    input = ones(1, 2, 5, 5) if input is None else input
    weight = ones(2, 2, 3, 3) if weight is None else weight
    return aten.convolution_overrideable(input, weight, bias, stride, padding, dilation,
                                         transposed, output_padding, groups)  # fmt: skip


def group_norm_gradient(n=2, channels=4, length=3, groups=2, mean=None):
    x = ones(2, 4, 3)
    mean = ones(2, 2) if mean is None else mean
    return aten.native_group_norm_backward(x, x, mean, ones(2, 2), ones(4), n, channels, length,
                                           groups, [True] * 3)  # fmt: skip


def nll_gradient(grad_output, reduction=1, total=None):
    total = ones() if total is None else total
    return aten.nll_loss2d_backward(grad_output, ones(2, 3, 4, 4), longs(2, 4, 4), None, reduction,
                                    -100, total)  # fmt: skip


def sampled(mode=0, padding=0, grad_output=None):
    grid = torch.zeros(1, 4, 4, 2, device=DEVICE)
    if grad_output is None:
        return aten.grid_sampler_2d(ones(1, 2, 3, 3), grid, mode, padding, False)
    return aten.grid_sampler_2d_backward(grad_output, ones(1, 2, 3, 3), grid, mode, padding, False,
                                         [True, True])  # fmt: skip


REFUSED = {
    "a GRU cell's gradient of one part": lambda: aten._thnn_fused_gru_cell_backward(
        ones(0, 3).to_sparse(), ones(40, 1), True
    ),
    "an LSTM cell's gradient of one part": lambda: aten._thnn_fused_lstm_cell_backward_impl(
        ones(4, 3).to_sparse(), None, ones(4, 3), ones(4, 3), ones(4, 1), True
    ),
    "convolution of a vector": lambda: convolution(weight=ones(3)),
    "convolution without dilation": lambda: convolution(dilation=(1, 0)),
    "convolution with a negative stride": lambda: convolution(stride=(-1, 1)),
    "convolution of other channels": lambda: convolution(weight=ones(2, 5, 3, 3)),
    "convolution without groups": lambda: convolution(groups=0),
    "convolution with three strides": lambda: convolution(stride=(1, 1, 1)),
    "convolution with a long bias": lambda: convolution(bias=ones(3)),
    "transposed convolution without output padding": lambda: convolution(
        transposed=True, output_padding=()
    ),
    "convolution's gradient of another size": lambda: aten.convolution_backward_overrideable(
        ones(1, 2, 5, 5), ones(1, 2, 5, 5), ones(2, 2, 3, 3), [1, 1], [0, 0], [1, 1], False, [0, 0],
        1, [True] * 3,
    ),
    "group norm of other sizes": lambda: aten.native_group_norm(ones(2, 3), None, None, 1, 3, 9, 3, 0.1),
    "group norm's gradient, negative": lambda: group_norm_gradient(length=-1),
    "group norm's gradient, many groups": lambda: group_norm_gradient(groups=2**31 - 1),
    "group norm's gradient, short mean": lambda: group_norm_gradient(mean=ones(1)),
    "group norm's gradient, transposed": lambda: aten.native_group_norm_backward(
        ones(3, 4, 2), ones(2, 4, 3), ones(2, 2), ones(2, 2), ones(4), 2, 4, 3, 2, [True] * 3
    ),
    "batch norm's statistics of more channels": lambda: aten.batch_norm_update_stats(
        ones(3, 1), ones(3), ones(3), 0.1
    ),
    "lu_unpack with pivots of one matrix": lambda: aten.lu_unpack(
        ones(3, 2, 2), longs(1, 2).int() + 1
    ),
    "lu_unpack with few pivots": lambda: aten.lu_unpack(ones(2, 2), longs(1).int() + 1),
    "lu_unpack with a number": lambda: aten.lu_unpack(ones(2, 2), longs().int() + 1),
    "eigenvalues of NaN": lambda: torch.linalg.eigvals(ones(3, 3) * torch.nan),
    "eigenvalues of infinity into out": lambda: torch.linalg.eigvals(
        ones(3, 3) * torch.inf, out=ones(3, dtype=torch.complex64)
    ),
    "batch norm with a short weight": lambda: aten._batch_norm_with_update(
        ones(3, 2, 4), ones(2), ones(0), ones(2), ones(2), 0.1, 1e-5
    ),
    "batch norm's gradient with a short weight": lambda: aten.native_batch_norm_backward(
        ones(3, 2, 4), ones(3, 2, 4), ones(0), ones(2), ones(2), ones(2), ones(2), True, 1e-5,
        [True] * 3,
    ),
    "batch norm's gradient of another size": lambda: aten.native_batch_norm_backward(
        ones(1, 2, 4), ones(3, 2, 4), ones(2), ones(2), ones(2), ones(2), ones(2), True, 1e-5,
        [True] * 3,
    ),
    "nll_loss's gradient per element": lambda: nll_gradient(ones(2, 0), 0),
    "nll_loss's gradient in another dtype": lambda: nll_gradient(ones(dtype=torch.int32)),
    "nll_loss's total weight": lambda: nll_gradient(ones(), total=ones(2, 3)),
    "grid_sample in an unknown mode": lambda: sampled(mode=-1),
    "grid_sample with unknown padding": lambda: sampled(padding=2**31),
    "grid_sample's gradient in an unknown mode": lambda: sampled(2**62, 0, ones(1, 2, 4, 4)),
    "grid_sample's gradient of another size": lambda: sampled(0, 0, ones(1, 2, 9, 9)),
    "cummax into less": lambda: aten._cummax_helper(ones(300), ones(17), longs(), -1),
    "cummin into floats": lambda: aten._cummin_helper(ones(2), ones(2), ones(2), -1),
    "cummin of no such dimension": lambda: aten._cummin_helper(ones(2), ones(2), longs(2), 5),
    "log_softmax's gradient of another size": lambda: aten._log_softmax_backward_data(
        ones(17), ones(0), 0, torch.float32
    ),
    "softmax's gradient of another size": lambda: aten._softmax_backward_data(
        ones(17), ones(3), 0, torch.float32
    ),
    "SGD with an empty rate": lambda: aten._fused_sgd_.tensor_lr(
        [ones(3)], [ones(3)], [ones(3)], weight_decay=0.0, momentum=0.5, lr=ones(2, 0),
        dampening=0.0, nesterov=False, maximize=False, is_first_step=False,
    ),
    "pdist of four dimensions": lambda: aten._pdist_forward(ones(2, 1, 0, 3), 2.0),
    "pdist's gradient of one point": lambda: aten._pdist_backward(ones(2), ones(2), 2.0, ones(2)),
    "pdist's gradient of other pairs": lambda: aten._pdist_backward(
        ones(9), ones(3, 2), 2.0, ones(3)
    ),
    "offsets of three dimensions": lambda: aten._nested_compute_contiguous_strides_offsets(
        longs(0, 2, 3)
    ),
    "reflection's gradient of nine paddings": lambda: aten.reflection_pad2d_backward(
        ones(1), ones(1, 1, 1), [-2, 4, 1000, 2, -1, -1, 4, 0, 2]
    ),
    "replication's gradient of five paddings": lambda: aten.replication_pad3d_backward(
        ones(2), ones(2), [3, 5, 1, 2, 4]
    ),
    "replication's gradient of no dimension": lambda: aten.replication_pad3d_backward(
        ones(0), ones(), [3, 4, -1, 2, -1, 5]
    ),
    "fractional pooling's gradient, no output size": lambda: aten.fractional_max_pool3d_backward(
        ones(1, 1, 2, 2, 2), ones(1, 1, 5, 5, 5), [2, 2, 2], [], longs(1, 1, 2, 2, 2)
    ),
    "fractional pooling's gradient, fewer indices": lambda: aten.fractional_max_pool3d_backward(
        ones(2, 1, 2, 2, 2), ones(2, 1, 5, 5, 5), [2, 2, 2], [2, 2, 2], longs(1, 1, 2, 2, 2)
    ),
    "ctc_loss's gradient with one alpha": lambda: aten._ctc_loss_backward(
        ones(2), ones(3, 2, 4), longs(2, 2) + 1, [3, 3], [2, 2], ones(2), ones(), 0
    ),
    "ctc_loss's gradient with fewer losses": lambda: aten._ctc_loss_backward.Tensor(
        ones(2), ones(3, 2, 4), longs(2, 2) + 1, longs(2) + 3, longs(2) + 2, ones(1), ones(2, 3, 5), 0
    ),
    "fft of bfloat16 along two dimensions": lambda: aten._fft_r2c(
        ones(1, 1, 2, 1, 2, 3, dtype=torch.bfloat16), [0, -2], -1, True
    ),
    "fft along one dimension twice": lambda: aten._fft_r2c(ones(4, 4), [1, 1], 0, True),
    "fft along no such dimension": lambda: aten._fft_r2c(
        ones(dtype=torch.bfloat16), [-(2**63)], 3, False
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_fits_nothing_is_refused(name):
    with pytest.raises((RuntimeError, IndexError)):
        REFUSED[name]()
    assert (ones(3) + 1).tolist() == [2, 2, 2]


def test_any_other_reduction_is_a_sum():
    """As on the CPU, where a number that is neither 0 nor 1 sums."""
    target, logs = torch.tensor([1, 0, 2]), torch.randn(3, 4).log_softmax(1)
    found = aten.nll_loss_backward(
        ones(), logs.to(DEVICE), target.to(DEVICE), None, 2**31, -100, ones()
    )
    expected = aten.nll_loss_backward(
        torch.ones(()), logs, target, None, 2**31, -100, torch.ones(())
    )
    assert found.cpu().equal(expected)


def test_the_gradient_of_dropout_broadcasts_its_mask():
    gradient, mask = torch.randn(5, 4), torch.tensor([True, False, True, True])
    found = aten.native_dropout_backward(gradient.to(DEVICE), mask.to(DEVICE), 2.0)
    assert found.cpu().equal(aten.native_dropout_backward(gradient, mask, 2.0))
    with pytest.raises(RuntimeError, match="must match the size"):
        aten.native_dropout_backward(ones(5, 4), mask[:3].to(DEVICE), 2.0)


SEGMENTS = {
    "offsets below 0": {"offsets": [-1, 3, 5]},
    "offsets beyond the data": {"offsets": [0, 3, 6]},
    "lengths below 0": {"lengths": [-1, 6], "unsafe": True},
    "lengths beyond the data": {"lengths": [3, 3], "unsafe": True},
    "lengths of more lines": {"lengths": [[2, 3], [3, 2]], "axis": 1},
}


@pytest.mark.parametrize("name", SEGMENTS)
def test_segments_beyond_the_data_are_refused(name):
    options = {
        k: torch.tensor(v, device=DEVICE) if isinstance(v, list) else v
        for k, v in SEGMENTS[name].items()
    }
    data = ones(1, 5) if "axis" in options else ones(5)
    with pytest.raises(RuntimeError, match=r"segment_reduce: expected (offsets|lengths)"):
        torch.segment_reduce(data, "sum", **options)
    whole = torch.tensor([0, 2, 5], device=DEVICE)
    assert torch.segment_reduce(ones(5), "sum", offsets=whole).tolist() == [2, 3]
    with pytest.raises(RuntimeError, match="a gradient and an output of"):
        aten._segment_reduce_backward(ones(1), ones(2), ones(5), "sum", offsets=whole)

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

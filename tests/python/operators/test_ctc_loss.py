"""The CTC loss against the CPU: layouts of targets, lengths, blanks, reductions, gradients, refusals."""

import itertools

import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close

INPUT_LENGTHS, TARGET_LENGTHS = [12, 7, 3, 12, 1], [5, 3, 3, 0, 1]


def given(dtype, blank=0):
    """Log-probabilities of 12 steps, 5 sequences, 6 labels, and targets in a rectangle."""
    source = torch.Generator().manual_seed(4)
    x = torch.randn(12, 5, 6, generator=source, dtype=torch.float64).to(dtype)
    labels = torch.tensor([c for c in range(6) if c != blank])
    return x, labels[torch.randint(0, 5, (5, 5), generator=source)]


def in_a_row(targets):
    return torch.cat([row[:n] for row, n in zip(targets, TARGET_LENGTHS, strict=True)])


def loss_and_gradient(x, targets, lengths, **options):
    x = x.detach().requires_grad_()
    loss = functional.ctc_loss(x.log_softmax(-1), targets, *lengths, **options)
    loss.sum().backward()
    return loss.detach().cpu(), x.grad.cpu()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_against_cpu(reduction, dtype, device, native):
    for blank, zero_infinity, integers in itertools.product(
        (0, 3, 5), (False, True), (torch.int64, torch.int32)
    ):
        x, targets = given(dtype, blank)
        options = {"blank": blank, "zero_infinity": zero_infinity, "reduction": reduction}
        for t in (targets.to(integers), in_a_row(targets).to(integers)):
            lengths = INPUT_LENGTHS, TARGET_LENGTHS
            expected = loss_and_gradient(x, t, lengths, **options)
            for place in ("cpu", device):
                found = loss_and_gradient(x.to(device), t.to(place), lengths, **options)
                assert_close(found, expected, equal_nan=True)


def test_lengths_as_tensors(device, native):
    x, targets = given(torch.float32)
    lengths = torch.tensor(INPUT_LENGTHS), torch.tensor(TARGET_LENGTHS)
    expected = loss_and_gradient(x, targets, lengths, zero_infinity=True)
    for place, kind in itertools.product(("cpu", device), (torch.int64, torch.int32)):
        found = loss_and_gradient(
            x.to(device), targets, [n.to(place, kind) for n in lengths], zero_infinity=True
        )
        assert_close(found, expected)


def test_layouts(device, native):
    x, targets = given(torch.float64)
    turned = x.permute(2, 0, 1).contiguous().to(device).permute(1, 2, 0)
    stepped = targets.repeat_interleave(2, 1).to(device)[:, ::2]
    lengths = INPUT_LENGTHS, TARGET_LENGTHS
    expected = loss_and_gradient(x, targets, lengths, reduction="none", zero_infinity=True)
    found = loss_and_gradient(turned, stepped, lengths, reduction="none", zero_infinity=True)
    assert_close(found, expected)
    row = in_a_row(targets)
    found = loss_and_gradient(turned, row.repeat_interleave(3).to(device)[::3], lengths,
                              reduction="none", zero_infinity=True)  # fmt: skip
    assert_close(found, expected)


def test_one_sequence_without_a_batch(device, native):
    x, targets = given(torch.float32)
    lengths = torch.tensor(9), torch.tensor(4)
    expected = loss_and_gradient(x[:, 0], targets[0, :4], lengths)
    assert_close(
        loss_and_gradient(x[:, 0].to(device), targets[0, :4].to(device), lengths), expected
    )


def test_against_float64(device, native):
    """500 steps: the gradient stays as close to float64's as the CPU's is."""
    source = torch.Generator().manual_seed(4)
    x = torch.randn(500, 2, 30, generator=source)
    targets = torch.randint(1, 30, (2, 60), generator=source)
    lengths = [500, 450], [60, 50]
    exact = loss_and_gradient(x.double(), targets, lengths)
    found = loss_and_gradient(x.to(device), targets, lengths)
    host = loss_and_gradient(x, targets, lengths)
    for ours, theirs, right in zip(found, host, exact, strict=True):
        assert (ours - right).abs().max() <= 2 * (theirs - right).abs().max() + 1e-7


def test_gradient_of_a_module(device, native):
    x, targets = given(torch.float64)
    loss = torch.nn.CTCLoss(zero_infinity=True)
    assert torch.autograd.gradcheck(
        lambda t: loss(t.log_softmax(-1), targets, INPUT_LENGTHS, TARGET_LENGTHS),
        x.to(device).requires_grad_(),
    )


@pytest.mark.parametrize(
    "change",
    [
        {"input_lengths": [13, 7, 3, 12, 1]}, {"input_lengths": [-1, 7, 3, 12, 1]},
        {"target_lengths": [6, 3, 3, 0, 1]}, {"target_lengths": [-1, 3, 3, 0, 1]},
        {"input_lengths": [12]}, {"target_lengths": [5]}, {"blank": 6}, {"blank": -1},
        {"targets": torch.ones(4, 5, dtype=torch.int64)}, {"targets": torch.ones(13).long()},
        {"targets": torch.ones(5, 5)}, {"targets": torch.ones(5, 5, 1).long()},
        {"log_probs": torch.ones(12, 5)}, {"log_probs": torch.ones(12, 5, 6).half()},
        {"log_probs": torch.ones(12, 0, 6)}, {"log_probs": torch.ones(0, 5, 6)},
    ],
    ids=str,
)  # fmt: skip
def test_refusals(change, device, module):
    x, targets = given(torch.float32)
    arguments = {"log_probs": x.log_softmax(-1), "targets": targets, "blank": 0,
                 "input_lengths": INPUT_LENGTHS, "target_lengths": TARGET_LENGTHS}  # fmt: skip
    arguments |= change
    with pytest.raises((RuntimeError, NotImplementedError)) as expected:
        torch._ctc_loss(**arguments)
    moved = {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in arguments.items()}
    with module.fallback.off(), pytest.raises(type(expected.value)) as found:
        torch._ctc_loss(**moved)
    first = str(expected.value).splitlines()[0].replace("torch.FloatTensor", "")
    assert str(found.value).splitlines()[0].replace("torch.FloatTensor", "") == first


def test_targets_that_are_no_label_are_reported(python):
    ran = python(
        """
        x = torch.zeros(4, 1, 3).log_softmax(-1).to(D)
        torch.nn.functional.ctc_loss(x, torch.tensor([[7]]).to(D), [4], [1])
        torch.get_device_module(D).synchronize()
        """
    )
    assert ran.code == 1
    assert "_ctc_loss" in ran.err

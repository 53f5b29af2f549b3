"""Sampling by weight and from distributions: limits, refusals, independence."""

import itertools

import pytest
import torch


def parts(device):
    """Numbers in one buffer, indices, a mask."""
    index = torch.tensor([2, 1, 0], device=device)
    mask = torch.tensor([True, False, True, True, False, False], device=device)
    return torch.rand(18, device=device), index, mask


def test_sampling_never_takes_what_has_no_weight(device):
    torch.manual_seed(0)
    pairs = torch.zeros(3421, 2, device=device)
    pairs[:, 1] = 1
    assert torch.multinomial(pairs, 1).min().item() == 1
    weights = torch.randn(100_000, device=device).clamp(min=0) * 3e-5
    assert weights[weights.multinomial(100_000, replacement=True)].min().item() > 0
    for replacement in (True, False):
        empty = torch.multinomial(torch.ones(0, 3, device=device), 2, replacement)
        assert (empty.shape, empty.dtype) == ((0, 2), torch.int64)


@pytest.mark.parametrize("bad", [-1.0, float("inf"), -float("inf"), float("nan")])
def test_weights_that_are_none_are_refused_and_the_device_lives(device, bad):
    weights = torch.tensor([1.0, bad, 1.0], device=device)
    with pytest.raises(RuntimeError, match="invalid multinomial distribution"):
        torch.multinomial(weights, 2, replacement=True)
    assert (weights[:1] + 1).item() == 2


def test_samples_go_to_their_own_device(device, second):
    with pytest.raises(RuntimeError, match="same device"):
        torch.multinomial(torch.ones(3), 2, out=torch.empty(2, dtype=torch.int64, device=device))
    out = torch.empty(2, dtype=torch.int64, device=second)
    with pytest.raises(RuntimeError, match="same device"):
        torch.multinomial(torch.ones(3, device=device), 2, out=out)


def test_consecutive_draws_share_no_states(device):
    generator = torch.Generator(device).manual_seed(0)
    drawn = [torch.randint(0, 6_000_000_000, (200_000,), device=device, generator=generator)
             for _ in range(2)]  # fmt: skip
    assert torch.cat(drawn).cpu().unique().numel() > 399_900
    drawn = [torch.rand(200_000, dtype=torch.float64, device=device, generator=generator)
             for _ in range(2)]  # fmt: skip
    assert torch.cat(drawn).cpu().unique().numel() == 400_000


def test_large_draws_are_even_to_the_end(device):
    torch.manual_seed(0)
    drawn = torch.randint(0, 256, (2**22 + 5,), dtype=torch.uint8, device=device)
    parts = drawn.cpu().float().tensor_split(8)
    for part in parts:
        assert part.mean().item() == pytest.approx(127.5, abs=1)
        assert part.unique().numel() == 256
    assert not any(a[:1000].equal(b[:1000]) for a, b in itertools.pairwise(parts))


def test_distributions_at_their_limits(device):
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.float16):
        assert (torch.empty(500_000, dtype=dtype, device=device).exponential_() > 0).all().item()
    one = torch.empty(1, device=device)
    assert one.exponential_(float("inf")).item() == 0
    assert one.cauchy_(float("inf"), 0.5).item() == float("inf")
    assert not torch.empty(500_000, device=device).cauchy_().isinf().any().item()
    assert not torch.zeros(300_000, device=device).bernoulli().any().item()
    assert torch.ones(300_000, device=device).bernoulli().all().item()
    for call in (lambda: one.exponential_(-0.5), lambda: one.cauchy_(0.0, 0.0)):
        with pytest.raises(RuntimeError, match="expects"):
            call()

"""Strides and memory formats of results: those that the CPU gives."""

import itertools

import pytest
import torch


def strided(device):
    """Dense, sliced, and sliced with sizes of one."""
    return (torch.randn(2, 3, 4, device=device), torch.randn(2, 3, 8, device=device)[:, :, ::2],
            torch.randn(1, 1, 4, 12, device=device)[:, :, :, ::2])  # fmt: skip


def test_results_have_the_strides_of_the_cpu(device):
    for ours, theirs in zip(strided(device), strided("cpu"), strict=True):
        for order in itertools.permutations(range(ours.dim())):
            found = []
            for x in (ours.permute(order), theirs.permute(order)):
                row = torch.randn(x.size(-1), device=x.device)
                found.append([
                    *[f(a, b).stride() for f in (torch.add, torch.eq)
                      for a, b in ((x, x), (x, row), (row, x))],
                    torch.exp(x).stride(),
                    torch.add(x, x, out=torch.empty(0, device=x.device)).stride(),
                ])  # fmt: skip
            assert found[0] == found[1], order


CHANNELS = [(torch.channels_last, (2, 3, 5, 5)), (torch.channels_last_3d, (2, 3, 5, 5, 5))]


@pytest.mark.parametrize(("order", "shape"), CHANNELS, ids=["2d", "3d"])
def test_the_memory_format_is_kept(device, second, order, shape):
    x = torch.rand(shape, device=device).contiguous(memory_format=order)
    kept = [
        *[f(x) for f in (torch.zeros_like, torch.ones_like, torch.rand_like, torch.randn_like)],
        torch.empty_like(x), torch.full_like(x, 7), torch.randint_like(x, 10), x.clone(),
        x.double(), x.half(), x.bool(), x.to(second), x.cpu(), x.cpu().to(device),
        x + 1, x * x, x.exp(), x.clamp(0, 1), x.lerp(x, 0.5), torch.addcmul(x, x, x), x.round(),
        x[:, :2] + x[:, 1:],
    ]  # fmt: skip
    assert [y.is_contiguous(memory_format=order) for y in kept] == [True] * len(kept)
    plain = [x.clone(memory_format=torch.contiguous_format), x.contiguous(),
             x.to(torch.float64, memory_format=torch.contiguous_format)]  # fmt: skip
    assert [y.is_contiguous() for y in plain] == [True] * len(plain)


def test_the_format_of_two_operands(device):
    def both(where):
        plain = torch.rand(2, 3, 5, 5, device=where)
        last = plain.contiguous(memory_format=torch.channels_last)
        unclear = torch.rand(2, 3, 1, 1, device=where).contiguous(memory_format=torch.channels_last)
        row = torch.rand(3, 1, 1, device=where)
        pairs = itertools.permutations((plain, last, unclear, row), 2)
        return [(a + b).stride() for a, b in pairs]

    assert both(device) == both("cpu")

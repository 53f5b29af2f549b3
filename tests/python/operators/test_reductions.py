"""Sums, counts, products and extrema: exact where float32 is, at awkward sizes."""

import torch


def test_half_sums_are_exact_where_float32_is(device):
    x = torch.ones(65504, dtype=torch.float16, device=device)
    assert (x.sum().item(), x.mean().item()) == (65504, 1)
    y = torch.ones(65536, dtype=torch.float16, device=device)
    assert (y.sum(dtype=torch.float32).item(), y.mean().item()) == (65536, 1)
    assert y.norm(p=0, dtype=torch.float32).item() == 65536
    torch.manual_seed(0)
    few = torch.zeros(1_203_611).bernoulli_(0.0005)
    assert few.to(device, torch.float16).sum().item() == few.sum().item()
    tiny = torch.arange(25, device=device).float() / 1e8
    assert tiny.half().norm().item() > 0


def test_counts_products_and_extrema_of_awkward_sizes(device):
    draw = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 1000, (20_000,), generator=draw)
    weights = torch.rand(20_000, dtype=torch.float64, generator=draw)
    for options in ({}, {"weights": weights}, {"minlength": 5000}):
        there = {k: v.to(device) if k == "weights" else v for k, v in options.items()}
        torch.testing.assert_close(
            torch.bincount(labels.to(device), **there).cpu(), torch.bincount(labels, **options)
        )
    for dtype in (torch.float32, torch.complex64, torch.int64):
        assert torch.ones(240_000, dtype=dtype, device=device).prod().item() == 1
    for only in (-5.0, float("-inf"), float("inf")):
        x = torch.tensor([only], device=device)
        assert [x.max(0)[0].item(), x.min(0)[0].item(), x.max().item()] == [only] * 3
        assert x.max(0)[1].item() == x.argmin().item() == 0
    assert torch.ones(512, 8, device=device).sum(0).tolist() == [512.0] * 8
    flags = torch.tensor([[False, True], [True, True]], device=device)
    places = torch.tensor([[0, 0], [1, 0]], device=device)
    assert torch.gather(flags, 1, places).tolist() == [[False, False], [True, True]]

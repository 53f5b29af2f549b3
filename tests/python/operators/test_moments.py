"""Means, variances and what is normalised by them, far from 0 and of long rows, against float64."""

import pytest
import torch
from torch.nn import functional as F

ROUNDOFF = 2.0**-24
OFFSETS = [0.0, 100.7, 1e7]
LENGTHS = [1, 7, 300, 4097, 100_352]


def row(length, offset, spread, lines=1):
    """Numbers of float32 about an offset; all alike where the spread is 0."""
    generator = torch.Generator().manual_seed(length)
    return (torch.randn(lines, length, generator=generator) * spread + offset).float()


def agree(call, device, x, bound, *more):
    """What the device gives is near what float64 gives, or not much farther than what the CPU gives."""
    exact = call(x.double(), *(each.double() for each in more))
    cpu, given = call(x, *more), call(x.to(device), *(each.to(device) for each in more))
    for want, near, got in zip(exact, cpu, given, strict=True):
        assert (got.dtype, got.shape) == (near.dtype, near.shape)
        assert torch.equal(got.cpu().isnan(), want.isnan())
        off = (got.cpu().double() - want).nan_to_num().abs().max().item()
        most = 3 * (near.double() - want).nan_to_num().abs().max().item()
        assert off <= max(most, bound), (off, most, bound)


def normalized_bound(x):
    """The mean is rounded to float32, and so is each deviation."""
    wide = x.double()
    deviation = wide.var(dim=-1, correction=0).add(1e-5).sqrt().min().item()
    return 2e-5 + 2 * ROUNDOFF * wide.mean().abs().item() / deviation


def outputs_and_gradients(forward):
    def call(x, g, *parameters):
        leaves = [each.detach().clone().requires_grad_() for each in (x, *parameters)]
        y = forward(*leaves)
        return (y.detach(), *torch.autograd.grad(y, leaves, g))

    return call


NORMS = {
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "group_norm": lambda x: F.group_norm(x[:, None], 1)[:, 0],
    "instance_norm": lambda x: F.instance_norm(x[None])[0],
    "batch_norm": lambda x: F.batch_norm(x.t()[..., None].contiguous(), None, None, training=True)[
        ..., 0
    ].t(),
    "batch_norm planes": lambda x: F.batch_norm(x[None], None, None, training=True)[0],
}


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("norm", NORMS)
def test_of_equal_elements_is_zero(device, norm, offset):
    for length in LENGTHS[1:]:
        x = row(length, offset, 0.0, lines=2)
        assert NORMS[norm](x.to(device)).abs().max().item() == 0


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("norm", NORMS)
def test_norms_against_float64(device, norm, offset):
    for length in LENGTHS[1:]:
        x = row(length, offset, 1.0, lines=2)
        agree(lambda x: (NORMS[norm](x),), device, x, normalized_bound(x))


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("norm", NORMS)
def test_gradients_against_float64(device, norm, offset):
    call = outputs_and_gradients(NORMS[norm])
    for length in (300, 4097):
        x, g = row(length, offset, 1.0, lines=2), row(length, 0.0, 1.0, lines=2)
        agree(call, device, x, 4 * normalized_bound(x), g)


@pytest.mark.parametrize("offset", [*OFFSETS, 123456789.0])
def test_variances_against_float64(device, offset):
    for length in LENGTHS:
        for spread in (0.0, 20.0):
            x = row(length, offset, spread, lines=3)
            bound = 4e-6 * max(spread, 1e-30) ** 2 * 2
            for correction in (0, 1):
                agree(lambda x, c=correction: (x.var(1, correction=c),), device, x, bound)
                agree(lambda x, c=correction: (x.t().contiguous().var(0, correction=c),), device, x,
                      bound)  # fmt: skip
            mean = 2 * ROUNDOFF * offset + 1e-6 * spread
            agree(lambda x: (torch.var_mean(x, 1)[1],), device, x, mean)
            if spread == 0 and length > 1:
                assert x.to(device).var().item() == 0


def test_columns_are_summed_in_parts(device):
    # One sum of as many rows rounds small addends alike: 1.6e-5.
    x = row(2000, 1e5, 1.0, lines=70).t().contiguous()
    got, want = x.to(device).var(0).cpu().double(), x.double().var(0)
    assert (got / want - 1).abs().max().item() < 1e-6
    x = row(4096, 0.5, 0.01, lines=70).t().contiguous()
    for call in (lambda x: x.sum(0), lambda x: x.mean(0), lambda x: x.logsumexp(0)):
        got, want = call(x.to(device)).cpu().double(), call(x.double())
        assert (got / want - 1).abs().max().item() < 5e-7


def test_a_sample_that_misleads(device):
    # The eight elements from which a line's mean is estimated are unlike the others.
    x = row(1024, 1e4, 1.0, lines=3)
    x[:, ::128] = 0
    for got, want in [
        (x.to(device).var(1), x.double().var(1)),
        (x.t().contiguous().to(device).var(0), x.double().var(1)),
        (F.layer_norm(x.to(device), (1024,)), F.layer_norm(x.double(), (1024,))),
        (F.group_norm(x[:, None].to(device), 1), F.group_norm(x[:, None].double(), 1)),
    ]:
        torch.testing.assert_close(got.cpu().double(), want, rtol=1e-6, atol=1e-6)


def test_of_twenty_million_elements(device):
    x = row(20_000_000, 10.0, 1.0)
    exact = x.double()
    y = x.to(device)
    variance, mean = torch.var_mean(y)
    assert abs(variance.item() / exact.var().item() - 1) < 2e-6
    assert abs(mean.item() - exact.mean().item()) < 2e-6
    deviation, middle = exact.std(correction=0), exact.mean()
    for norm in ("layer_norm", "group_norm"):
        got = NORMS[norm](y).cpu()
        part = slice(None, None, 1001)
        assert (got[0, part] - (exact[0, part] - middle) / deviation).abs().max().item() < 4e-6
    for call in (torch.sum, torch.mean, torch.linalg.vector_norm, lambda x: x.logsumexp(1)):
        assert abs(call(y).item() / call(exact).item() - 1) < 1e-6
    last = x.cumsum(1)[0, -1].item() / exact.sum().item() - 1
    assert abs(y.cumsum(1)[0, -1].item() / exact.sum().item() - 1) <= max(1e-5, 3 * abs(last))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_dtypes(device, dtype):
    x = (row(5000, 100.0, 2.0, lines=2)).to(dtype)
    for norm in NORMS.values():
        want = norm(x.double())
        # One rounding of the result.
        torch.testing.assert_close(norm(x.to(device)).cpu().double(), want,
                                   rtol=torch.finfo(dtype).eps, atol=1e-5)  # fmt: skip


@pytest.mark.parametrize("length", [1, 7, 300, 1024, 4096, 5000, 100_352])
def test_compiled_layer_norm(device, length):
    compiled = torch.compile(lambda x, w: F.layer_norm(x, x.shape[-1:], w))
    for offset in OFFSETS:
        weight = row(length, 1.0, 0.5)[0]
        x = row(length, offset, 0.0, lines=3)
        assert compiled(x.to(device), weight.to(device)).abs().max().item() == 0
        if length > 1:
            x = row(length, offset, 1.0, lines=3)
            want = F.layer_norm(x.double(), (length,), weight.double())
            got = compiled(x.to(device), weight.to(device)).cpu()
            assert (got - want).abs().max().item() <= 4 * normalized_bound(x)


def test_synchronized_statistics(device):
    x = row(3 * 2000, 1e4, 1.0).reshape(2, 3, 1000)
    mean, invstd = torch.batch_norm_stats(x.to(device), 1e-5)
    channels = x.double().transpose(0, 1).reshape(3, -1)
    torch.testing.assert_close(mean.cpu().double(), channels.mean(1), rtol=2 * ROUNDOFF, atol=0)
    want = channels.var(1, correction=0).add(1e-5).rsqrt()
    torch.testing.assert_close(invstd.cpu().double(), want, rtol=4e-6, atol=0)
    y = torch.batch_norm_elemt(x.to(device), None, None, mean, invstd, 1e-5).cpu().double()
    exact = ((channels - channels.mean(1, keepdim=True)) * want[:, None]).reshape(3, 2, 1000)
    assert (y.transpose(0, 1) - exact).abs().max().item() < 2e-5 + 2 * ROUNDOFF * 1e4


@pytest.mark.parametrize("numbers", [[3.0], [float("inf"), 1.0, 2.0], [1.0, float("inf"), 2.0],
                                     [1.0, 2.0, float("nan")], [1e8, 1.0, 2.0, 3.0]])  # fmt: skip
def test_awkward_rows(device, numbers):
    x = torch.tensor([numbers])
    for call in (
        torch.var_mean,
        lambda x: torch.var_mean(x, correction=len(numbers) + 2),
        lambda x: torch.native_layer_norm(x, x.shape[-1:], None, None, 1e-5),
        lambda x: torch.native_group_norm(x[None], None, None, 1, 1, x.numel(), 1, 1e-5),
    ):
        for got, want in zip(call(x.to(device)), call(x), strict=True):
            torch.testing.assert_close(got.cpu(), want, equal_nan=True)
    mean, variance = torch.zeros(1, device=device), torch.ones(1, device=device)
    torch.native_batch_norm(x.t().to(device), None, None, mean, variance, True, 0.1, 1e-5)
    cpu_mean, cpu_variance = torch.zeros(1), torch.ones(1)
    torch.native_batch_norm(x.t(), None, None, cpu_mean, cpu_variance, True, 0.1, 1e-5)
    torch.testing.assert_close(variance.cpu(), cpu_variance, equal_nan=True)
    if torch.isfinite(x).all():
        torch.testing.assert_close(mean.cpu(), cpu_mean)

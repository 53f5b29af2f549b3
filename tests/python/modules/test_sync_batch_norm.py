"""Batch normalisation in steps, between which processes exchange statistics: against the CPU."""

import pytest
import torch
from torch import nn
from torch.nn.modules._functions import SyncBatchNorm
from torch.testing import assert_close

pytestmark = pytest.mark.both_modes

EPSILON, MOMENTUM = 1e-3, 0.3
CASES = {
    "images": ((6, 5, 4, 3), torch.float32, torch.contiguous_format),
    "channels last": ((6, 5, 4, 3), torch.float32, torch.channels_last),
    "long lines": ((6, 3, 5000), torch.float32, torch.contiguous_format),
    "rows": ((6, 70), torch.float32, torch.contiguous_format),
    "float64": ((6, 5, 7), torch.float64, torch.contiguous_format),
    "bfloat16": ((6, 5, 4, 3), torch.bfloat16, torch.contiguous_format),
    "float16": ((6, 5, 4, 3), torch.float16, torch.channels_last),
}
# Outputs and gradients of half images are rounded to their dtype.
LOOSE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def drawn(shape, seed, dtype=torch.float32, shift=0.0):
    source = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, generator=source, dtype=torch.float64) + shift).to(dtype)


class Problem:
    """Images, the gradient of their norm, parameters; and what the CPU makes of them in double."""

    def __init__(self, shape, dtype, layout):
        c = shape[1]
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        self.x = drawn(shape, 1, dtype, 2.0).contiguous(memory_format=layout)
        self.grad = drawn(shape, 2, dtype).contiguous(memory_format=layout)
        self.weight, self.bias = drawn((c,), 3, wide, 1.5), drawn((c,), 4, wide)
        self.mean, self.var = drawn((c,), 5, wide), drawn((c,), 6, wide).square()

    def expected(self):
        layer = nn.BatchNorm1d(self.x.shape[1], EPSILON, MOMENTUM, dtype=torch.float64)
        state = {"weight": self.weight, "bias": self.bias, "running_mean": self.mean,
                 "running_var": self.var}  # fmt: skip
        layer.load_state_dict(state, strict=False)
        x = self.x.double().clone().reshape(*self.x.shape[:2], -1).requires_grad_()
        y = layer(x)
        y.backward(self.grad.double().reshape(x.shape))
        numbers = [y.detach().reshape(self.x.shape), x.grad.reshape(self.x.shape), layer.weight.grad,
                   layer.bias.grad, layer.running_mean, layer.running_var]  # fmt: skip
        return [t.to(self.x.dtype if i < 2 else self.mean.dtype) for i, t in enumerate(numbers)]


def in_two_processes(problem, device):
    """What two processes would compute, one with two images and one with the rest."""
    mine = {name: value.to(device) for name, value in vars(problem).items()}
    weight, bias = mine["weight"], mine["bias"]
    parts, grads = mine["x"].split([2, 4]), mine["grad"].split([2, 4])
    stats = [torch.batch_norm_stats(part, EPSILON) for part in parts]
    counts = torch.tensor([p.numel() // p.shape[1] for p in parts], device=device)
    mean, invstd = torch.batch_norm_gather_stats_with_counts(
        parts[0], *map(torch.stack, zip(*stats, strict=True)), mine["mean"], mine["var"],
        MOMENTUM, EPSILON, counts.to(stats[0][0].dtype),
    )  # fmt: skip
    assert mean.dtype == invstd.dtype == problem.mean.dtype
    y = [torch.batch_norm_elemt(p, weight, bias, mean, invstd, EPSILON) for p in parts]
    assert [t.stride() for t in y] == [t.stride() for t in parts]
    reduced = [
        torch.batch_norm_backward_reduce(g, p, mean, invstd, weight, True, True, True)
        for g, p in zip(grads, parts, strict=True)
    ]
    sums, alongs, to_weight, to_bias = (sum(each) for each in zip(*reduced, strict=True))
    to_x = [
        torch.batch_norm_backward_elemt(g, p, mean, invstd, weight, sums, alongs, counts.int())
        for g, p in zip(grads, parts, strict=True)
    ]
    found = [torch.cat(y), torch.cat(to_x), to_weight, to_bias, mine["mean"], mine["var"]]
    return [t.cpu() for t in found]


@pytest.mark.parametrize("case", CASES)
def test_two_processes_get_the_norm_of_all_images(device, native, case):
    problem = Problem(*CASES[case])
    wanted = problem.expected()
    for found, expected in zip(in_two_processes(problem, device), wanted, strict=True):
        assert_close(found, expected, rtol=LOOSE[found.dtype], atol=LOOSE[found.dtype])


class Alone:
    """A process group of one process."""

    def _get_backend_name(self):
        return "gloo"


@pytest.mark.parametrize("case", ["images", "channels last", "rows", "bfloat16"])
def test_the_function_of_sync_batch_norm(device, native, monkeypatch, case):
    monkeypatch.setattr(torch.distributed, "all_gather", lambda to, x, *_, **__: to[0].copy_(x))
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda *_, **__: None)
    problem = Problem(*CASES[case])
    wanted = problem.expected()
    mine = {name: value.to(device) for name, value in vars(problem).items()}
    leaves = [mine[name].requires_grad_() for name in ("x", "weight", "bias")]
    y = SyncBatchNorm.apply(
        *leaves, mine["mean"], mine["var"], EPSILON, MOMENTUM, Alone(), 1
    )  # fmt: skip
    y.backward(mine["grad"])
    found = [y.detach(), *(leaf.grad for leaf in leaves), mine["mean"], mine["var"]]
    for ours, expected in zip(found, wanted, strict=True):
        assert_close(ours.cpu(), expected, rtol=LOOSE[ours.dtype], atol=LOOSE[ours.dtype])


def test_the_moments_of_a_batch_move_the_running_ones(device, native):
    problem = Problem(*CASES["images"])
    ours = [t.to(device) for t in (problem.x, problem.mean, problem.var)]
    expected = torch.batch_norm_update_stats(problem.x, problem.mean, problem.var, MOMENTUM)
    found = torch.batch_norm_update_stats(*ours, MOMENTUM)
    assert_close([t.cpu() for t in found], list(expected))
    assert_close([t.cpu() for t in ours[1:]], [problem.mean, problem.var])
    unmoved = torch.batch_norm_update_stats(ours[0], None, None, MOMENTUM)
    assert_close([t.cpu() for t in unmoved], list(expected))


def test_what_may_be_missing(device, native):
    x, grad = drawn((4, 3, 5), 1).to(device), drawn((4, 3, 5), 2).to(device)
    mean, invstd = torch.batch_norm_stats(x, EPSILON)
    plain = torch.batch_norm_elemt(x, None, None, mean, invstd, EPSILON)
    assert_close(
        plain.cpu(), nn.functional.batch_norm(x.cpu(), None, None, None, None, True, eps=EPSILON)
    )
    out = torch.empty_like(x)
    torch.batch_norm_elemt(x, None, None, mean, invstd, EPSILON, out=out)
    assert_close(out, plain)
    same = torch.batch_norm_gather_stats(x, mean[None], invstd[None], None, None, 0.1, EPSILON, 20)
    assert_close(same, (mean, invstd))
    only_bias = torch.batch_norm_backward_reduce(grad, x, mean, invstd, None, False, False, True)
    assert_close(only_bias[3].cpu(), grad.cpu().sum((0, 2)))
    assert only_bias[:3] == (None, None, None)


def test_sizes_that_do_not_fit_are_refused(device):
    x, three, two = (torch.ones(s, device=device) for s in ((2, 3, 4), (3,), (2,)))
    for call in (
        lambda: torch.batch_norm_stats(three, EPSILON),
        lambda: torch.batch_norm_elemt(x, two, None, three, three, EPSILON),
        lambda: torch.batch_norm_elemt(x, None, None, three, two, EPSILON),
        lambda: torch.batch_norm_backward_reduce(x, x, two, three, None, True, True, True),
        lambda: torch.batch_norm_backward_elemt(x, x, three, three, None, two, three, two),
        lambda: torch.batch_norm_gather_stats(x, three, three, None, None, 0.1, EPSILON, 8),
    ):
        with pytest.raises(RuntimeError, match="expected"):
            call()

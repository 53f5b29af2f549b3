"""Tensors whose elements overlap: writing them is refused or warned of."""

import pytest
import torch


def expanded(device):
    return torch.rand(1, device=device).expand(6)


def parts(device):
    """Numbers in one buffer, indices, a mask."""
    index = torch.tensor([2, 1, 0], device=device)
    mask = torch.tensor([True, False, True, True, False, False], device=device)
    return torch.rand(18, device=device), index, mask


OVERLAPS = {
    "addcmul": lambda d, y, i, m: expanded(d).addcmul_(y[:6], y[:6]),
    "copy": lambda d, y, i, m: expanded(d).copy_(y[:6]),
    "out": lambda d, y, i, m: torch.exp(y[0:9], out=y[1:10]),
    "ternary out": lambda d, y, i, m: torch.lerp(y[0:9], y[9:18], 0.5, out=y[1:10]),
    "bernoulli": lambda d, y, i, m: expanded(d).bernoulli_(),
    "bernoulli of a number": lambda d, y, i, m: expanded(d).bernoulli_(0.1),
    "uniform": lambda d, y, i, m: expanded(d).uniform_(),
    "random": lambda d, y, i, m: expanded(d).random_(),
    "cauchy": lambda d, y, i, m: expanded(d).cauchy_(),
    "log_normal": lambda d, y, i, m: expanded(d).log_normal_(),
    "exponential": lambda d, y, i, m: expanded(d).exponential_(),
    "geometric": lambda d, y, i, m: expanded(d).geometric_(0.5),
    "index_add": lambda d, y, i, m: expanded(d).index_add_(0, i, y[:3]),
    "index_add of itself": lambda d, y, i, m: y[:6].index_add_(0, i, y[:3]),
    "index_copy": lambda d, y, i, m: expanded(d).index_copy_(0, i, y[:3]),
    "index_copy by itself": lambda d, y, i, m: i.index_copy_(0, i, i.clone()),
    "index_fill by itself": lambda d, y, i, m: i.index_fill_(0, i, 0),
    "index_put of itself": lambda d, y, i, m: y[:6].index_put_((i,), y[:3]),
    "put": lambda d, y, i, m: expanded(d).put_(i, y[:3]),
    "put by itself": lambda d, y, i, m: i.put_(i, i.clone()),
    "masked_fill": lambda d, y, i, m: m[1:].masked_fill_(m[:-1], False),
    "masked_scatter": lambda d, y, i, m: expanded(d).masked_scatter_(m, y[:6]),
    "scatter": lambda d, y, i, m: expanded(d).scatter_(0, i, y[:3]),
    "scatter of itself": lambda d, y, i, m: y[:3].scatter_(0, i, y[:3]),
    "shift": lambda d, y, i, m: i[:-1].__ilshift__(i[1:]),
}


@pytest.mark.parametrize("name", OVERLAPS)
def test_writing_what_overlaps_is_refused(device, name):
    with pytest.raises(RuntimeError, match=r"unsupported operation|single memory location"):
        OVERLAPS[name](device, *parts(device))


@pytest.mark.parametrize("name", ["index_fill_", "index_put_", "masked_fill_"])
def test_expanded_targets_warn(device, name):
    y, index, mask = parts(device)
    arguments = {"index_fill_": (0, index, 1.0), "index_put_": ((index,), y[:3]),
                 "masked_fill_": (mask, 0.0)}  # fmt: skip
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="expanded tensors"):
            getattr(expanded(device), name)(*arguments[name])
    finally:
        torch.set_warn_always(always)

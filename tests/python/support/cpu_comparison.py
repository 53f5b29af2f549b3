"""Numbers for an operator, and the operator on the device beside the CPU: values and gradients."""

import torch
from torch.testing import assert_close

INTEGERS = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
LOOSE = {torch.float16: {"rtol": 4e-3, "atol": 4e-3}, torch.bfloat16: {"rtol": 4e-2, "atol": 4e-2}}


def values(domain, dtype, shape, seed):
    """Numbers of a range that the dtype can hold; floats keep off kinks and ties."""
    source = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.rand(shape, generator=source) > 0.4
    if not dtype.is_floating_point:
        low = 1 if domain != "any" or dtype == torch.uint8 else -4
        return torch.randint(low, 7, shape, generator=source).to(dtype)
    x = torch.randn(shape, generator=source, dtype=torch.float64)
    x = {"any": x, "positive": x.abs() + 0.3, "unit": x.tanh() * 0.9}[domain]
    return x.to(dtype)


def outputs_of(call, inputs):
    found = call(*inputs)
    return list(found) if isinstance(found, (tuple, list)) else [found]


def differentiable(tensors):
    return [t for t in tensors if t.is_floating_point() and t.requires_grad]


def check(device, call, inputs, views=None, tolerance=None):
    """Runs call on both devices, forward and backward; inputs are leaves on the CPU.

    Returns False where the CPU has no such operator, and there is nothing to compare.
    """
    views = views or [lambda x: x] * len(inputs)
    sides = []
    for where in ("cpu", device):
        leaves = [t.detach().to(where, copy=True) for t in inputs]
        for leaf in leaves:
            leaf.requires_grad_(leaf.is_floating_point())
        try:
            found = outputs_of(call, [v(x) for v, x in zip(views, leaves, strict=True)])
        except (RuntimeError, NotImplementedError, IndexError):
            if where == "cpu":
                return False
            raise
        sides.append((leaves, found))
    (leaves, expected), (remote, found) = sides
    dtype = next((t.dtype for t in inputs if t.is_floating_point()), torch.int64)
    options = {"equal_nan": True, **LOOSE.get(dtype, {}), **(tolerance or {})}
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.device.type == torch.device(device).type
        assert_close(ours.detach().cpu(), theirs.detach(), **options)
    roots = differentiable(expected)
    if roots:
        source = torch.Generator().manual_seed(9)
        seeds = [torch.randn(t.shape, generator=source).to(t.dtype) for t in roots]
        try:
            torch.autograd.backward(roots, seeds)
        except RuntimeError:
            return True  # the CPU knows no derivative
        torch.autograd.backward(differentiable(found), [s.to(device) for s in seeds])
        for ours, theirs in zip(remote, leaves, strict=True):
            assert (ours.grad is None) == (theirs.grad is None)
            if theirs.grad is not None:
                assert_close(ours.grad.cpu(), theirs.grad, **options)
    return True

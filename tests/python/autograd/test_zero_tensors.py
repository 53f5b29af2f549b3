"""Tensors of zeros without memory, as forward-mode differentiation makes them: no kernel reads them."""

import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close

X = torch.tensor([[4.0, 1.0, 2.0], [2.0, 3.0, -1.0], [0.5, -2.0, 5.0]])

# Functions of a tensor and of a zero tensor of the same sizes.
CALLS = {
    "dot": lambda x, z: torch.dot(x[0], z[0]), "dot first": lambda x, z: torch.dot(z[0], x[0]),
    "vdot": lambda x, z: torch.vdot(x[0], z[0]), "dot both": lambda x, z: z[0].dot(z[1]),
    "complex vdot": lambda x, z: torch.vdot(x[0] + 1j, z[0] * 1j),
    "mm": torch.mm, "mv": lambda x, z: x @ z[0], "addmm": lambda x, z: torch.addmm(z, x, z),
    "baddbmm": lambda x, z: torch.baddbmm(z[None], x[None], x[None]),
    "add": torch.add, "rsub": lambda x, z: z - x, "mul": torch.mul, "div": lambda x, z: z / x,
    "where": lambda x, z: torch.where(x > 1, x, z), "cat": lambda x, z: torch.cat([x, z]),
    "stack": lambda x, z: torch.stack([z, x]), "linear": lambda x, z: functional.linear(x, x, z[0]),
    "conv": lambda x, z: functional.conv1d(x[None], z[None]),
    "convolution with bias": lambda x, z: functional.conv1d(x[None], x[..., None], z[0]),
    "layer_norm": lambda x, z: functional.layer_norm(x, (3,), z[0], z[1]),
    "batch_norm": lambda x, z: functional.batch_norm(x, z[0], x[0].abs(), z[1], z[2]),
    "group_norm": lambda x, z: functional.group_norm(x[None], 3, z[0], z[1]),
    "embedding": lambda x, z: functional.embedding(torch.tensor([1, 2], device=x.device), z),
    "index_put": lambda x, z: x.index_put((torch.tensor([1], device=x.device),), z[:1], True),
    "index_add": lambda x, z: x.index_add(0, torch.tensor([1], device=x.device), z[:1]),
    "scatter": lambda x, z: x.scatter_add(0, torch.zeros(1, 3, device=x.device).long(), z),
    "copy_": lambda x, z: x.clone().copy_(z), "clone": lambda x, z: z.clone() + x,
    "cross": lambda x, z: torch.linalg.cross(x, z), "sum": lambda x, z: z.sum(0),
    "solve": lambda x, z: torch.linalg.solve(x, z), "lerp": lambda x, z: torch.lerp(x, z, z),
    "foreach": lambda x, z: torch._foreach_add([x, x], [z, z])[1],
    "mse": lambda x, z: functional.mse_loss(x, z), "sort": lambda x, z: z.sort().values,
    "nll": lambda x, z: functional.nll_loss(x, torch.tensor([0, 2, 1], device=x.device), z[0], reduction="sum"),
    "attention": lambda x, z: functional.scaled_dot_product_attention(x[None], z[None], x[None]),
    "attention mask": lambda x, z: functional.scaled_dot_product_attention(
        x[None], x[None], x[None], z[None]),
    "svdvals": lambda x, z: torch.linalg.svdvals(z), "item": lambda x, z: x + z[0, 0].item(),
    "fft": lambda x, z: torch.fft.rfft(z), "to": lambda x, z: z.double(), "cpu": lambda x, z: z.cpu(),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_operators(device, name):
    expected = CALLS[name](X, torch.zeros(3, 3))
    zero = torch._efficientzerotensor((3, 3), device=device)
    found = CALLS[name](X.to(device), zero)
    assert_close(found.clone().cpu(), expected)


def test_products_stay_without_memory(device):
    x = X[0].to(device)
    zero = torch._efficientzerotensor((3,), device=device)
    for found in (torch.dot(x, zero), torch.vdot(zero, x)):
        assert found._is_zerotensor()
        assert found.shape == ()
    with pytest.raises(RuntimeError, match=r"same (dtype|size)|inconsistent"):
        torch.dot(x, torch._efficientzerotensor((4,), device=device))


def test_forward_mode(device):
    from torch.func import jvp

    x, t = torch.tensor([1.0, 2, 3]), torch.tensor([0.5, -1, 2])
    y = x * 2 - 3
    far = y.to(device)
    for function in (torch.dot, torch.vdot, torch.inner, lambda a, b: (a * b).sum().exp()):
        host = jvp(lambda a, f=function: f(a, y), (x,), (t,))
        found = jvp(lambda a, f=function: f(a, far), (x.to(device),), (t.to(device),))
        assert_close([f.cpu() for f in found], list(host))


def test_a_storage_without_memory_is_refused(device):
    x = torch.ones(4, device=device)
    x.untyped_storage().resize_(0)
    for call in (lambda: x + 1, lambda: torch.linalg.svdvals(x.view(2, 2)), lambda: x.sort()):
        with pytest.raises(RuntimeError):
            call()
    assert torch.ones(2, device=device).sum().item() == 2

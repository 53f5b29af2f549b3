"""cdist and pdist against the CPU: norms, layouts, batches, gradients, errors."""

import math

import pytest
import torch
from torch.testing import assert_close

NORMS = [0.0, 0.5, 1.0, 1.7, 2.0, 3.5, math.inf]
SHAPES = {
    "plain": ((4, 7), (6, 7)), "batched": ((3, 1, 5, 7), (2, 6, 7)), "no rows": ((0, 3), (4, 3)),
    "no columns": ((3, 0), (2, 0)), "by products": ((40, 9), (33, 9)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_cdist(device, shape, p, dtype):
    results = []
    for place in ("cpu", device):
        generator = torch.Generator().manual_seed(3)
        leaves = [torch.randn(s, generator=generator, dtype=dtype) for s in SHAPES[shape]]
        leaves = [x.to(place).requires_grad_() for x in leaves]
        found = torch.cdist(*leaves, p=p)
        found.backward(torch.ones_like(found))
        results.append([found.detach().cpu(), *[x.grad.cpu() for x in leaves]])
    assert_close(results[1], results[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("rows", [1, 2, 9])
def test_pdist(device, rows, p):
    results = []
    for place in ("cpu", device):
        x = torch.randn(5, rows, generator=torch.Generator().manual_seed(4)).t()
        x = x.to(place).requires_grad_()
        found = torch.nn.functional.pdist(x, p=p)
        found.backward(torch.ones_like(found))
        results.append([found.detach().cpu(), x.grad.cpu()])
    assert_close(results[1], results[0])


def test_refusals(device):
    x = torch.ones(3, 4, device=device)
    with pytest.raises(RuntimeError, match="same number of columns"):
        torch.cdist(x, x[:, :2])
    with pytest.raises(RuntimeError, match="non-negative p"):
        torch.cdist(x, x, p=-1)

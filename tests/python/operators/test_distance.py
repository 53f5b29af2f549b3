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


LAYOUTS = {
    "transposed": lambda x: x.mT.contiguous().mT,
    "repeated": lambda x: x[..., :1, :].expand(x.shape),
    "one column": lambda x: x[..., :1].expand(x.shape),
    "a part": lambda x: torch.cat([x, x], -1)[..., ::2],
}


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_of_other_layouts(device, native, layout, p):
    results = []
    for place in ("cpu", device):
        generator = torch.Generator().manual_seed(5)
        roots = [torch.randn(2, rows, 7, generator=generator) for rows in (4, 6)]
        roots = [x.to(place).requires_grad_() for x in roots]
        found = torch.cdist(*[LAYOUTS[layout](x) for x in roots], p=p)
        weights = torch.linspace(-1, 1, 24).view(4, 6).to(place).mT.contiguous().mT
        gradients = []
        for cotangent in (weights.expand(2, 4, 6), torch.ones((), device=place).expand(2, 4, 6)):
            gradients += torch.autograd.grad(found, roots, cotangent, retain_graph=True)
        results.append([found.detach().cpu(), *[x.cpu() for x in gradients]])
    assert_close(results[1], results[0], rtol=1e-4, atol=1e-4)


def test_the_gradient_takes_every_layout_itself(device, native):
    backward = torch.ops.aten._cdist_backward
    x, y, weights = (torch.rand(shape, device=device) for shape in ((4, 7), (6, 7), (4, 6)))
    distances = torch.cdist(x, y)
    expected = backward(weights, x, y, 2.0, distances)
    turn = LAYOUTS["transposed"]
    assert_close(backward(turn(weights), turn(x), turn(y), 2.0, turn(distances)), expected)

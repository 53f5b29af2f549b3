"""Autograd: several devices in one graph, double backward, threads, checkpoints."""

import threading

import pytest
import torch
from torch.testing import assert_close

pytestmark = pytest.mark.any_driver


def test_graph_over_two_devices(device, second):
    x = torch.randn(4, 3, device=device, requires_grad=True)
    w = torch.randn(3, 2, device=second, requires_grad=True)
    loss = ((x * 2).to(second) @ w).relu().to(device).sum() + x.cpu().sum().to(device)
    loss.backward()
    a, b = (t.detach().cpu().requires_grad_() for t in (x, w))
    (((a * 2) @ b).relu().sum() + a.sum()).backward()
    assert (x.grad.device, w.grad.device) == (x.device, w.device)
    assert_close([x.grad.cpu(), w.grad.cpu()], [a.grad, b.grad])


def test_backward_of_a_device_that_is_not_current(device, second):
    x = torch.ones(3, device=second, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.device == x.device
    assert x.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("call", [
    lambda x: x.tanh().pow(3).sum(), lambda x: (x @ x.t()).exp().sum(),
    lambda x: torch.softmax(x, 1).log().mean(), lambda x: torch.nn.functional.gelu(x).sum(),
])  # fmt: skip
def test_double_backward(device, call):
    sides = []
    for where in ("cpu", device):
        torch.manual_seed(1)
        x = torch.randn(3, 3, dtype=torch.float64).to(where).requires_grad_()
        (first,) = torch.autograd.grad(call(x), x, create_graph=True)
        (second,) = torch.autograd.grad((first**2).sum(), x)
        sides.append([first.detach().cpu(), second.cpu()])
    assert_close(sides[1], sides[0])


def test_gradcheck(device):
    x = torch.randn(2, 3, 5, 5, dtype=torch.float64, device=device, requires_grad=True)
    w = torch.randn(2, 3, 3, 3, dtype=torch.float64, device=device, requires_grad=True)
    assert torch.autograd.gradcheck(torch.nn.functional.conv2d, (x, w), nondet_tol=1e-9)
    y = torch.randn(4, 3, dtype=torch.float64, device=device, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: torch.nn.functional.log_softmax(t, 1), (y,))


def test_threads_run_backward_at_once(device):
    grads, errors = {}, []

    def work(i):
        try:
            x = torch.full((64,), float(i), device=device, requires_grad=True)
            for _ in range(20):
                x.grad = None
                (x * x).sum().backward()
            grads[i] = x.grad.cpu()
        except Exception as error:  # a thread's error must reach the test
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    assert all((grads[i] == 2 * i).all() for i in range(4))


def test_checkpoint_repeats_dropout(device):
    torch.manual_seed(0)
    drop = torch.nn.Dropout(0.5)
    x = torch.ones(1000, device=device, requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(drop, x, use_reentrant=False)
    y.sum().backward()
    assert_close(x.grad.cpu(), y.detach().cpu())


def test_accumulation_and_hooks(device):
    x = torch.ones(3, device=device, requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.device.type) or g * 10)
    for _ in range(2):
        (x * 2).sum().backward()
    assert x.grad.tolist() == [40, 40, 40]
    assert seen == [torch.device(device).type] * 2


def test_custom_function(device):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            return 3 * ctx.saved_tensors[0] ** 2 * g

    x = torch.tensor([2.0], device=device, requires_grad=True)
    Cube.apply(x).backward()
    assert x.grad.item() == 12


def test_saved_tensor_written_in_place(device):
    x = torch.ones(3, device=device, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_modes(device):
    x = torch.ones(3, device=device, requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad
    with torch.inference_mode():
        assert (x * 2).is_inference()
    view = x.detach().clone().requires_grad_()
    view[1:].mul(3).sum().backward()
    assert view.grad.tolist() == [0, 3, 3]


def test_functional_transforms(device):
    x = torch.randn(5, 3, device=device)
    f = lambda t: (t.sin() ** 2).sum()  # noqa: E731
    assert_close(torch.func.vmap(torch.func.grad(f))(x).cpu(), (2 * x.sin() * x.cos()).cpu())
    assert_close(torch.func.jvp(f, (x,), (x,))[1].cpu(), (2 * x.sin() * x.cos() * x).sum().cpu())

"""Streams and threads of a backward: where it runs, who waits for it, and hooks that it calls."""

import threading

import pytest
import torch
from torch.testing import assert_close

pytestmark = pytest.mark.any_driver


def delay(device):
    """Work that keeps the current stream busy for some milliseconds."""
    x = torch.ones(400, 400, device=device)
    for _ in range(4):
        x = x @ x / 400


class Scale(torch.autograd.Function):
    """Times a number; its backward must find itself on the forward's stream."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor, ctx.stream = factor, torch.accelerator.current_stream()
        return x * factor

    @staticmethod
    def backward(ctx, gradient):
        assert torch.accelerator.current_stream() == ctx.stream
        delay(gradient.device)
        return gradient * ctx.factor, None


def test_backward_runs_on_the_stream_of_the_forward(device):
    default, stream = torch.accelerator.current_stream(), torch.Stream(device)
    x = torch.randn(5, 5, device=device, requires_grad=True)
    with stream:
        stream.wait_stream(default)
        Scale.apply(x, 2).sum().backward()
    default.wait_stream(stream)
    assert_close(x.grad, torch.full_like(x, 2))
    assert torch.accelerator.current_stream() == default


def test_the_caller_s_stream_may_use_gradients_at_once(device):
    """Whatever streams the steps of the backward ran on, the stream that called it waits for them."""
    stream, caller = torch.Stream(device), torch.Stream(device)
    x = torch.randn(5, 5, device=device, requires_grad=True)
    with stream:
        stream.wait_stream(torch.accelerator.current_stream())
        y = Scale.apply(x, 3)
    with caller:
        caller.wait_stream(stream)
        y.sum().backward()
        assert_close(x.grad, torch.full_like(x, 3))
        assert torch.accelerator.current_stream() == caller


@pytest.mark.parametrize("in_place", [False, True], ids=["grad", "backward"])
@pytest.mark.parametrize("first", ["caller", "side"])
def test_gradients_of_several_streams_add_up(device, first, in_place):
    caller, sides = torch.Stream(device), [torch.Stream(device) for _ in range(2)]
    caller.wait_stream(torch.accelerator.current_stream())
    hooked = []
    with caller:
        x = torch.randn(5, 5, device=device, requires_grad=True)
        x.register_hook(lambda _: hooked.append(torch.accelerator.current_stream()))
        start = x.clone() if first == "caller" else None
        for side in sides:
            side.wait_stream(caller)
        with sides[0]:
            y = Scale.apply(x.clone() if start is None else start, 2)
            event = sides[0].record_event()
        with sides[1]:
            z = Scale.apply(x, 3)
            sides[1].wait_event(event)
            total = (y + z).sum()
        for _ in range(2 if in_place else 1):
            if in_place:
                total.backward(retain_graph=True)
            else:
                (found,) = torch.autograd.grad(total, x)
        expected = 10.0 if in_place else 5.0
        assert_close(x.grad if in_place else found, torch.full_like(x, expected))
    assert set(hooked) == {caller if first == "caller" else sides[0]}


def test_the_backward_waits_for_the_gradient_it_is_given(device):
    forward, caller = torch.Stream(device), torch.Stream(device)
    a = torch.full((1000,), 2.0, device=device, requires_grad=True)
    b = torch.full((1000,), 3.0, device=device, requires_grad=True)
    for trial in range(3):
        torch.accelerator.synchronize()
        a.grad = b.grad = None
        with forward:
            product = a * b
        with caller:
            torch.accelerator.synchronize()
            delay(device)
            gradient = torch.full((1000,), float(trial + 1), device=device)
            torch.autograd.backward(product, gradient)
            assert_close(a.grad, gradient * b.detach())
            assert_close(b.grad, gradient * a.detach())


def test_callbacks_at_the_end_see_every_leaf(device):
    streams = [torch.Stream(device) for _ in range(3)]
    a, b = (torch.ones(1000, device=device, requires_grad=True) for _ in range(2))
    stash = []

    def keep():
        stash.extend([a.grad.clone(), b.grad.clone()])

    for stream in streams:
        stream.wait_stream(torch.accelerator.current_stream())
    with streams[0]:
        c = Scale.apply(a, 2)
    with streams[1]:
        d = Scale.apply(b, 3)
        streams[1].wait_stream(streams[0])
        e = c * d
        engine = torch.autograd.Variable._execution_engine
        e.register_hook(lambda _: engine.queue_callback(keep))
    streams[2].wait_stream(streams[1])
    with streams[2]:
        e.sum().backward()
        assert [x.unique().tolist() for x in stash] == [[6.0], [6.0]]


def test_each_device_has_one_thread_of_autograd(device, second):
    threads = {}

    class Where(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            threads.setdefault(gradient.device, set()).add(threading.get_ident())
            return gradient

    x = torch.ones(3, device=device, requires_grad=True)
    for _ in range(3):
        Where.apply(Where.apply(Where.apply(x).to(second)).to(device)).sum().backward()
    assert set(threads) == {torch.device(device, 0), torch.device(second)}
    assert all(len(one) == 1 for one in threads.values())
    assert len(set.union(*threads.values(), {threading.get_ident()})) == 3


def test_a_gradient_that_crosses_devices_twice_adds_up(device, second):
    a, b = (
        torch.full((2**16,), 1.0, dtype=torch.float64, device=second).requires_grad_()
        for _ in range(2)
    )
    product = a * b
    losses = [product.to(device).sum() * 2 for _ in range(2)]
    losses[0].backward(retain_graph=True)
    losses[1].backward()
    assert (a.grad.sum().item(), b.grad.sum().item()) == (2**18, 2**18)


def test_a_hook_may_remove_itself(device):
    x = torch.ones(1, 5, device=device, requires_grad=True)
    handles = []

    def once(gradient):
        handles[0].remove()
        return torch.zeros_like(gradient)

    handles.append(x.register_hook(once))
    x.mean().backward()
    assert not x.grad.any().item()
    x.mean().backward()
    assert_close(x.grad, torch.full_like(x, 0.2))

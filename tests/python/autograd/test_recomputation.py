"""torch.utils.checkpoint: the second forward drops what the first one dropped; what it costs and saves."""

import functools

import pytest
import torch
from torch import nn
from torch.testing import assert_close
from torch.utils.checkpoint import (
    CheckpointError,
    CheckpointPolicy,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
)

pytestmark = [pytest.mark.both_modes, pytest.mark.two_drivers]


def network(where):
    torch.manual_seed(0)
    parts = [nn.Linear(6, 8), nn.Dropout(0.5), nn.GELU(), nn.Linear(8, 6), nn.Dropout(0.5)]
    return nn.Sequential(*parts).to(where)


def results(where, run, **autocast):
    """Output, gradients and the next number drawn, after seed 4."""
    model, x = network(where), torch.ones(3, 6).to(where).requires_grad_()
    torch.manual_seed(4)
    with torch.autocast(torch.device(where).type, **autocast):
        out = run(model, x)
        later = nn.functional.dropout(out, 0.5)
    later.float().sum().backward()
    following = torch.rand(3, device=where)
    return [out.detach(), x.grad, *(p.grad for p in model.parameters()), following]


def plain(model, x):
    return model(x)


def same(a, b):
    return all(x.equal(y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("autocast", [{"enabled": False}, {"dtype": torch.bfloat16}], ids=str)
@pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", ""])
def test_dropout_is_repeated(device, second, native, reentrant, autocast):
    def run(model, x):
        return checkpoint(model, x, use_reentrant=reentrant)

    for where in (device, second):
        assert same(results(where, run, **autocast), results(where, plain, **autocast))


@pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", ""])
def test_without_the_state_it_is_not(device, reentrant):
    def run(model, x):
        return checkpoint(model, x, use_reentrant=reentrant, preserve_rng_state=False)

    found, expected = (results(device, one, enabled=False) for one in (run, plain))
    assert found[0].equal(expected[0])
    assert not same(found[1:], expected[1:])


def test_nested_and_sequential(device):
    def nested(model, x):
        inner = functools.partial(checkpoint, model, use_reentrant=False)
        return checkpoint(inner, x, use_reentrant=False)

    def sequential(model, x):
        return checkpoint_sequential(model, 2, x, use_reentrant=False)

    expected = results(device, plain, enabled=False)
    for run in (nested, sequential):
        assert same(results(device, run, enabled=False), expected)


def keeping(operator, seen):
    """Options of checkpoint: results of this operator are kept. Fills seen, one for each call."""

    def policy(context, op, *args, **keywords):
        if op != operator:
            return CheckpointPolicy.PREFER_RECOMPUTE
        seen.append("second" if context.is_recompute else "first")
        return CheckpointPolicy.MUST_SAVE

    return {"context_fn": functools.partial(create_selective_checkpoint_contexts, policy)}


def test_what_is_saved_can_be_selected(device):
    seen = []

    def run(model, x):
        options = keeping(torch.ops.aten.addmm.default, seen)
        return checkpoint(model, x, use_reentrant=False, **options)

    assert same(*(results(device, one, enabled=False) for one in (run, plain)))
    assert seen.count("first") == 2


def test_what_is_saved_is_not_computed_again(device, module):
    x = torch.randn(6, 6, device=device, requires_grad=True)
    gradients, launches = [], []
    for options in ({}, keeping(torch.ops.aten.mm.default, [])):
        x.grad = None
        y = checkpoint(lambda x: (x.sin() @ x).cos(), x, use_reentrant=False, **options)
        before = module.statistics()["launches"]
        y.sum().backward()
        launches.append(module.statistics()["launches"] - before)
        gradients.append(x.grad)
    assert launches[1] == launches[0] - 1
    assert_close(gradients[1], gradients[0])


@pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", ""])
def test_states_are_kept_of_the_devices_of_the_arguments(device, second, reentrant):
    """PyTorch's rule: of a device that only the function itself uses, the state is not kept."""
    results = []
    for again in (True, False):
        first, other = network(device), network(second)

        def both(x, y, first=first, other=other):
            return other(first(x).to(y.device) + y)

        x, y = torch.ones(3, 6, device=device, requires_grad=True), torch.ones(3, 6, device=second)
        torch.manual_seed(4)
        out = checkpoint(both, x, y, use_reentrant=reentrant) if again else both(x, y)
        out.sum().backward()
        results.append([out, x.grad, first[0].weight.grad, other[0].weight.grad])
    assert same(*results)


def test_another_second_forward_is_an_error(device):
    layer, x = nn.Linear(3, 3).to(device), torch.ones(3, 3, device=device, requires_grad=True)
    for change, text in [
        (lambda out: out, "different number of tensors"),
        (lambda out: out[:2].exp(), "different metadata"),
    ]:
        calls = []

        def run(x, calls=calls, change=change):
            calls.append(x)
            return layer(x).exp() if len(calls) == 1 else change(layer(x))

        with pytest.raises(CheckpointError, match=text):
            checkpoint(run, x, use_reentrant=False).sum().backward()


def test_the_peak_of_memory_falls(device, module):
    layers = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(12)))
    layers.to(device)
    x = torch.randn(512, 64, device=device, requires_grad=True)
    peaks = []
    for segments in (0, 4):
        layers.zero_grad()
        module.synchronize()
        module.reset_peak_memory_stats()
        before = module.memory_allocated()
        y = (
            checkpoint_sequential(layers, segments, x, use_reentrant=False)
            if segments
            else layers(x)
        )
        y.sum().backward()
        module.synchronize()
        peaks.append(module.max_memory_allocated() - before)
    assert peaks[1] < 0.6 * peaks[0]


def test_saved_tensors_wait_on_the_cpu(device, module):
    x = torch.linspace(-1, 1, 4096, device=device, requires_grad=True)
    (x.sin() * x).sum().backward()
    expected, x.grad = x.grad, None
    places = []
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        y = (x.sin() * x).sum()
    y.backward()
    assert_close(x.grad, expected, rtol=0, atol=0)

    def pack(tensor):
        places.append(tensor.device.type)
        return tensor.cpu()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t.to(device)):
        y = (x.sin() * x).sum()
    x.grad = None
    y.backward()
    assert set(places) == {device}
    assert_close(x.grad, expected, rtol=0, atol=0)


@pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", ""])
def test_a_meta_tensor_decides_by_its_place(device, reentrant):
    """PyTorch keeps the state of the first device type among the positional arguments."""

    def drop(*tensors, like=None):
        return nn.functional.dropout(next(t for t in tensors if not t.is_meta), 0.5)

    def repeated(*tensors, **keywords):
        x = torch.ones(400, device=device, requires_grad=True)
        out = checkpoint(drop, *(x if t is None else t for t in tensors), **keywords)
        out.sum().backward()
        return x.grad.equal(out)

    meta = torch.empty(3, device="meta")
    assert repeated(None, use_reentrant=reentrant)
    with pytest.warns(UserWarning, match="two types of devices"):
        assert repeated(None, meta, use_reentrant=reentrant)
    with pytest.warns(UserWarning, match="two types of devices"):
        assert not repeated(meta, None, use_reentrant=reentrant)
    if not reentrant:  # the other variant takes no keywords
        assert repeated(None, like=meta, use_reentrant=False)

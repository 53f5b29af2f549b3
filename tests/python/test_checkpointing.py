"""What checkpoints cost: launches of what is kept, the peak of memory, tensors that wait on the CPU."""

import functools

import torch
from torch import nn
from torch.testing import assert_close
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
)


def test_chosen_operators_are_kept(device, module):
    x = torch.randn(6, 6, device=device, requires_grad=True)

    def keep_products(context, operator, *arguments, **options):
        product = operator is torch.ops.aten.mm.default
        return CheckpointPolicy.MUST_SAVE if product else CheckpointPolicy.PREFER_RECOMPUTE

    chosen = functools.partial(create_selective_checkpoint_contexts, keep_products)
    gradients, launches = [], []
    for options in ({}, {"context_fn": chosen}):
        x.grad = None
        y = checkpoint(lambda x: (x.sin() @ x).cos(), x, use_reentrant=False, **options)
        before = module.statistics()["launches"]
        y.sum().backward()
        launches.append(module.statistics()["launches"] - before)
        gradients.append(x.grad)
    assert launches[1] == launches[0] - 1
    assert_close(gradients[1], gradients[0])


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

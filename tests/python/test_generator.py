"""torch.Generator of the device."""

import pytest
import torch


def make(device, seed=4):
    return torch.Generator(device=device).manual_seed(seed)


def test_own_stream_of_numbers(device):
    g = make(device)
    assert g.device.type == torch.device(device).type
    assert g.initial_seed() == 4
    torch.manual_seed(0)
    first = torch.rand(5, device=device)
    torch.manual_seed(0)
    drawn = torch.rand(5, device=device, generator=g)
    assert torch.rand(5, device=device).equal(first), "the default generator moved"
    assert torch.rand(5, device=device, generator=make(device)).equal(drawn)
    assert not torch.rand(5, device=device, generator=g).equal(drawn)


def test_state_moves_between_generators(device):
    g = make(device)
    torch.randn(33, device=device, generator=g)
    state = g.get_state()
    expected = torch.randn(7, device=device, generator=g)
    other = make(device, 99)
    other.set_state(state)
    assert torch.randn(7, device=device, generator=other).equal(expected)
    twin = g.clone_state() if hasattr(g, "clone_state") else None
    if twin is not None:
        a, b = (torch.rand(3, device=device, generator=x) for x in (g, twin))
        assert a.equal(b)


def test_seed_differs(device):
    g = torch.Generator(device=device)
    assert g.seed() != g.seed()
    assert torch.rand(9, device=device, generator=g).cpu().unique().numel() > 1


def test_bad_use(device):
    g = make(device)
    with pytest.raises((RuntimeError, TypeError)):
        g.set_state(torch.zeros(3, dtype=torch.uint8))
    assert torch.rand(2, device=device, generator=g).numel() == 2
    if device != "cpu":
        with pytest.raises(RuntimeError, match="generator"):
            torch.rand(2, device=device, generator=torch.Generator())
        with pytest.raises((RuntimeError, IndexError)):
            torch.Generator(device=f"{device}:99")


def test_default_generators(device, module):
    if device == "cpu":
        return
    assert len(module.default_generators) == module.device_count()
    assert module._get_generator(torch.device(device, 1)).device.index == 1
    torch.manual_seed(21)
    assert [g.initial_seed() for g in module.default_generators] == [21, 21]

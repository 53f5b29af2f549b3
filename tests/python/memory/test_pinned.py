"""Pinned memory of the host: who pins, what is pinned, and copies that are under way."""

import pytest
import torch

pytestmark = pytest.mark.both_modes


def test_pinned_memory_of_a_copy_under_way_goes_to_nobody(pending):
    assert pending["pinned"] == [True, 1.0]
    assert pending["pinned that a copy writes"] == [True, 7.0]
    assert pending["pinned on the second device"] == [True, 3.0]


def test_the_host_does_not_read_pinned_memory_that_a_copy_still_writes(pending):
    assert pending["cast behind a copy"] == [[2.5], [2]]


LIKE = (torch.rand_like, torch.randn_like, torch.empty_like, torch.zeros_like, torch.ones_like)


def test_every_constructor_pins():
    made = [
        torch.tensor([10, 11], pin_memory=True), torch.randn(3, 5, pin_memory=True),
        torch.rand(3, pin_memory=True), torch.zeros(3, pin_memory=True),
        torch.randperm(3, pin_memory=True), torch.empty(6, pin_memory=True),
        torch.ones(6, pin_memory=True), torch.eye(6, pin_memory=True),
        torch.arange(3, 5, pin_memory=True), torch.full((2,), 4, pin_memory=True),
        torch.empty_strided((2, 2), (1, 2), pin_memory=True),
        *[like(torch.empty(5), pin_memory=True) for like in LIKE],
    ]  # fmt: skip
    assert [x.is_pinned() for x in made] == [True] * len(made)
    pinned = torch.empty(5, pin_memory=True)
    assert not any(like(pinned).is_pinned() for like in LIKE)


def test_views_of_pinned_memory_are_pinned(device):
    base = torch.arange(1000, dtype=torch.uint8).pin_memory()
    part = base[1:]
    assert part.is_pinned()
    moved = part.to(device, non_blocking=True)
    base_again = torch.zeros(1000, dtype=torch.uint8, pin_memory=True)
    base_again[1:].copy_(moved, non_blocking=True)
    torch.accelerator.synchronize()
    assert torch.equal(base_again[1:], part)
    assert base_again[0] == 0
    turned = torch.arange(10).view(2, 5).t()
    assert torch.equal(turned.pin_memory(), turned)
    storage = torch.ones(3).untyped_storage().pin_memory()
    assert storage.is_pinned()


def test_only_memory_of_the_host_is_pinned(device):
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        torch.empty(3, device=device, pin_memory=True)
    x = torch.ones(3, device=device)
    assert not x.is_pinned()
    with pytest.raises(TypeError, match="only CPU memory can be pinned"):
        x.untyped_storage().pin_memory()

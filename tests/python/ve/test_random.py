"""Random numbers of the slot: seeds, states and generators."""

from __future__ import annotations

from typing import Any

import pytest
import torch


def drawn(device: str = "ve", **options: Any) -> list[float]:
    return torch.rand(4, device=device, **options).tolist()


@pytest.mark.parametrize("device", ["ve:0", "ve:1"])
def test_every_seed_holds(ve: Any, device: str) -> None:
    index = int(device[-1])
    for seed in (
        lambda: torch.manual_seed(7),
        lambda: torch.ve.manual_seed_all(7),
        lambda: torch.random.manual_seed(7),
    ):
        seed()
        first = drawn(device)
        seed()
        assert drawn(device) == first
        assert ve.default_generators[index].initial_seed() == 7
    with ve.device(index):
        ve.manual_seed(8)
        assert ve.initial_seed() == 8
        second = drawn(device)
        assert second != first
        ve.manual_seed(8)
        assert drawn(device) == second
        ve.seed()
        assert drawn(device) != second


def test_the_numbers_are_grafts(ve: Any) -> None:
    torch.manual_seed(3)
    ours = drawn()
    if torch.graft.device_count():
        torch.manual_seed(3)
        assert drawn("graft") == ours


def test_seeds_have_the_range_of_torchs(ve: Any) -> None:
    ve.manual_seed(-1)
    assert ve.initial_seed() == 2**64 - 1
    for function in (ve.manual_seed, ve.manual_seed_all):
        with pytest.raises(ValueError, match="a seed must be between"):
            function(2**64)


def test_states(ve: Any) -> None:
    state = ve.get_rng_state(1)
    first = drawn("ve:1")
    ve.set_rng_state(state, "ve:1")
    assert drawn("ve:1") == first
    states = ve.get_rng_state_all()
    assert len(states) == 2
    numbers = drawn("ve:0"), drawn("ve:1")
    ve.set_rng_state_all(states)
    assert (drawn("ve:0"), drawn("ve:1")) == numbers
    offset = ve._get_rng_state_offset(0)
    again = drawn("ve:0")
    ve._set_rng_state_offset(offset, 0)
    assert drawn("ve:0") == again


def test_fork_rng_keeps_the_state(ve: Any) -> None:
    torch.manual_seed(1)
    first = drawn("ve:1")
    torch.manual_seed(1)
    with torch.random.fork_rng(devices=[0, 1], device_type="ve"):
        drawn("ve:1")
    assert drawn("ve:1") == first


def test_generators_of_ones_own(ve: Any) -> None:
    one, other = ve.Generator(), ve.Generator().manual_seed(5)
    one.manual_seed(5)
    assert one.device == torch.device("ve", 0)
    assert drawn(generator=one) == drawn(generator=other)
    state = one.get_state()
    first = drawn(generator=one)
    one.set_state(state)
    assert drawn(generator=one) == first
    clone = one.clone_state()
    assert drawn(generator=clone) == drawn(generator=one)
    x = torch.empty(4, device="ve").normal_(generator=one)
    assert x.is_ve
    assert torch.randperm(8, device="ve", generator=one).sort().values.tolist() == list(range(8))


def test_generators_of_other_types_are_refused(ve: Any) -> None:
    with pytest.raises(
        RuntimeError, match="Expected a 've' device type for generator but found 'cpu'"
    ):
        drawn(generator=torch.Generator())
    if torch.graft.device_count():
        with pytest.raises(
            RuntimeError, match="Expected a 'graft' device type for generator but found 've'"
        ):
            drawn("graft", generator=ve.Generator())

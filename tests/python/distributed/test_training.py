"""DDP, FSDP, tensors and pipelines in parallel: the losses of one process, on several."""

import pytest
from torch.testing import assert_close

import overlap_traces as overlap
import parallel_training as training
from rank_processes import run_ranks, values

pytestmark = [pytest.mark.any_driver, pytest.mark.one_mode]

CASES = [(size, name) for size in (2, 4) for name in training.NAMES]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """By size: the folder of its checkpoint, and what its ranks say. Each size runs once."""
    kept = {}

    def of(size):
        if size not in kept:
            folder = str(tmp_path_factory.mktemp(f"saved_on_{size}"))
            kept[size] = (
                folder,
                values(run_ranks(size, training.train_all, size, folder, timeout=250)),
            )
        return kept[size]

    return of


@pytest.mark.parametrize(("size", "name"), CASES)
def test_training(trained, size, name):
    _, ranks = trained(size)
    texts = {rank: results[name] for rank, results in enumerate(ranks) if results[name]}
    assert not texts, "\n".join(f"rank {rank}: {text}" for rank, text in texts.items())


def test_a_checkpoint_of_four_ranks_goes_on_with_two_and_with_one(trained):
    folder, _ = trained(4)
    expected = None
    for size in (4, 2, 1):
        losses = values(run_ranks(size, training.reload, size, folder))
        expected = expected or losses[0]
        for found in losses:
            assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert expected[-1] < expected[0]


@pytest.mark.host_only
def test_fsdp2_gathers_the_next_layer_while_it_computes(tmp_path):
    """In the profiler's trace: all-gathers run on their stream beside the products of another."""
    ranks = run_ranks(2, overlap.gathers_beside_compute, str(tmp_path), GRAFT_HOST_MODE="async")
    for passes in values(ranks):
        assert all(gathers >= overlap.LAYERS for gathers, _ in passes), passes
        assert max(beside for _, beside in passes) >= overlap.LAYERS // 2, passes

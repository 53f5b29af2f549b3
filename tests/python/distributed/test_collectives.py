"""The backend of torch.distributed: every collective, groups, order, and what goes wrong."""

import socket

import pytest

import collective_checks as checks
import group_behaviour as behaviour
from rank_processes import run_ranks, values
from sandbox import NAME

pytestmark = [pytest.mark.any_driver, pytest.mark.one_mode]

SIZES = [2, 4]
# The driver's collectives where it has them, and host memory always.
ENGINES = ["auto", "staged"]
GROUPS = [(size, engine) for size in SIZES for engine in ENGINES]


def assert_all_passed(ranks, name):
    texts = {rank: results[name] for rank, results in enumerate(ranks) if results[name]}
    assert not texts, "\n".join(f"rank {rank}: {text}" for rank, text in texts.items())


@pytest.fixture(scope="module", params=GROUPS, ids=lambda group: f"{group[0]}-ranks-{group[1]}")
def collectives(request):
    size, engine = request.param
    return values(run_ranks(size, checks.collectives, size, timeout=280, GRAFT_COLLECTIVES=engine))


@pytest.fixture(scope="module", params=GROUPS, ids=lambda group: f"{group[0]}-ranks-{group[1]}")
def behaviours(request):
    size, engine = request.param
    return values(run_ranks(size, behaviour.behaviour, size, GRAFT_COLLECTIVES=engine))


@pytest.mark.host_only
@pytest.mark.parametrize("case", checks.CASES)
def test_collective(collectives, case):
    assert_all_passed(collectives, case)


@pytest.mark.parametrize("name", behaviour.NAMES)
def test_group(behaviours, name):
    assert_all_passed(behaviours, name)


@pytest.mark.parametrize("backend", [None, NAME, f"cpu:gloo,{NAME}:{NAME}"])
def test_groups_take_tensors_of_the_cpu_and_of_the_device(backend):
    assert values(run_ranks(2, behaviour.every_way_in, backend)) == [f"cpu,{NAME},ve"] * 2


def test_a_bound_group_splits_and_makes_meshes():
    values(run_ranks(4, behaviour.split_and_mesh))


def test_debug_mode_names_both_sides_of_mismatched_shapes():
    texts = values(run_ranks(2, behaviour.mismatched, TORCH_DISTRIBUTED_DEBUG="DETAIL"))
    for text in texts:
        assert "Detected mismatch between collectives on ranks" in text
        assert "3" in text
        assert "4" in text


@pytest.mark.parametrize(("size", "engine"), GROUPS)
def test_a_rank_that_dies_is_named_to_the_others(size, engine):
    ranks = run_ranks(size, behaviour.killed, timeout=90, GRAFT_COLLECTIVES=engine)
    assert ranks[1].error == "ended without a result"
    for number, rank in enumerate(ranks):
        if number != 1:
            assert rank.error is None, rank.error
            text, seconds = rank.value
            assert "rank 1" in text
            assert engine == "auto" or "rank 1 did not answer" in text
            assert seconds < checks.TIMEOUT.total_seconds()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rank_that_does_not_come_is_named_at_the_timeout(engine):
    text, _ = values(run_ranks(2, behaviour.late, timeout=60, GRAFT_COLLECTIVES=engine))
    assert "rank 1" in text


def test_an_engine_that_there_is_not_is_refused():
    (rank,) = run_ranks(1, behaviour.every_way_in, None, GRAFT_COLLECTIVES="fastest")
    assert "GRAFT_COLLECTIVES=fastest: expected one of auto, native, staged" in rank.error


def test_a_group_without_a_rendezvous_says_what_is_missing():
    (text,) = values(run_ranks(1, behaviour.without_rendezvous))
    assert "MASTER_ADDR" in text


def test_a_port_that_is_taken_is_told():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ranks = run_ranks(1, behaviour.every_way_in, None, MASTER_PORT=str(taken.getsockname()[1]))
    assert "EADDRINUSE" in ranks[0].error

"""The rows of several processes: each can be measured, on the device itself."""

import torch

import loading
from distributed_rows import COLLECTIVES, COMMUNICATION, HANDED, Ranks, handed_row
from record import Side

DEVICE = "graft"


def test_ranks_measure_collectives_and_steps():
    with Ranks(DEVICE, pairs=1) as ranks:
        rows = [ranks.collective(name, goal) for name, goal in COLLECTIVES.items()]
        rows.append(ranks.communication())
    assert [row.name for row in rows] == [*COLLECTIVES, COMMUNICATION]
    for row in rows:
        assert row.device_min > 0
        assert row.against_min > 0
        assert row.value == row.device_min / row.against_min


def test_a_tensor_that_is_handed_on_moves_no_byte():
    with Side(DEVICE) as side:
        row = handed_row(side)
    assert (row.name, row.verdict, row.value) == (HANDED, "holds", 0.0)
    assert row.against_min == 64 * 2**20


def test_an_epoch_of_loading_gives_the_same_on_both_sides():
    found = [case.make(device)() for case in loading.LOADING.values() for device in (DEVICE, "cpu")]
    torch.testing.assert_close(found[0], found[1], rtol=1e-3, atol=1e-3)

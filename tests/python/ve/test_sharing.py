"""Tensors of the slot in other processes: messages, forks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing import assert_close

import other_process as tasks
from other_process import OtherProcess


@pytest.fixture(scope="module")
def other() -> Any:
    with OtherProcess() as process:
        yield process


@pytest.fixture(autouse=True)
def clean(other: Any) -> Any:
    yield
    other.ask(tasks.let_go)


def test_memory_is_shared(other: Any) -> None:
    for device in ("ve:0", "ve:1"):
        x = torch.arange(5000.0, device=device)
        other.ask(tasks.scaled_in_place, x, 2)
        y = other.ask(tasks.same, x)
        assert y.device == x.device
        assert y.data_ptr() == x.data_ptr()
        y.add_(1)
        assert_close(x.cpu(), torch.arange(5000.0) * 2 + 1)


def test_tensors_come_from_there(other: Any) -> None:
    x = other.ask(tasks.made, "ve", 3000)
    assert x.is_ve
    assert_close(x.cpu(), torch.arange(3000.0))
    other.ask(tasks.hold, x)
    x.mul_(3)
    torch.ve.synchronize()
    assert other.ask(tasks.held_values) == [(torch.arange(3000.0) * 3).tolist()]


def test_views_parameters_and_layouts(other: Any) -> None:
    x = torch.zeros(4, 3, device="ve")
    other.ask(tasks.write_through_views, x[1:3], x.t()[:, 2:])
    wanted = torch.zeros(4, 3)
    wanted[1:3] = 1
    wanted[2:] += 1
    assert_close(x.cpu(), wanted)
    parameter = other.ask(tasks.same, torch.nn.Parameter(torch.ones(3, device="ve")))
    assert isinstance(parameter, torch.nn.Parameter)
    assert parameter.is_ve
    sparse = other.ask(tasks.same, torch.eye(3, device="ve").to_sparse())
    assert_close(sparse.to_dense().cpu(), torch.eye(3))
    assert other.ask(tasks.same, torch.empty(0, device="ve:1")).device == torch.device("ve", 1)


def test_a_forked_child_is_refused(python: Any) -> None:
    python(
        """
        x = torch.ones(2, device="ve")
        child = os.fork()
        if child == 0:
            assert torch.ve._is_in_bad_fork()
            for use in (lambda: torch.ones(2, device="ve"), lambda: x + 1, lambda: torch.ve.synchronize(),
                        lambda: torch.ve.init(), lambda: torch.ve.memory_stats()):
                try:
                    use()
                    os._exit(1)
                except RuntimeError as error:
                    if "fork" not in str(error): os._exit(2)
            torch.manual_seed(1)
            torch.ones(2).sum()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert (x + 1).tolist() == [2, 2]
        """
    ).good()

"""Programs of torch.export and calls from several threads, compiled and optimized."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim, export
from torch.testing import assert_close

import torch_graft
from torch_graft.compiler import reports, reset_reports


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    torch._dynamo.reset()
    reset_reports()
    yield
    torch._dynamo.reset()


def network(device: str) -> nn.Module:
    torch.manual_seed(2)
    return nn.Sequential(
        nn.Linear(12, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 5)
    ).to(device)  # fmt: skip


WAYS: dict[str, Callable[[nn.Module], Any]] = {
    "compile": torch.compile,
    "optimize": torch_graft.optimize,
}


@pytest.mark.parametrize("way", WAYS)
def test_an_exported_program_is_compiled(way: str, device: str) -> None:
    model, x = network(device).eval(), torch.randn(6, 12, device=device)
    program = export(model, (x,)).module()
    with torch.no_grad():
        made = WAYS[way](program)
        before = model(x)
        for _ in range(4):
            assert_close(made(x), before)
        program.get_parameter("0.weight").zero_()  # which is the model's
        assert_close(made(x), model(x))
        assert not torch.allclose(made(x), before)
    assert [one.compiled for one in reports()] == [True]


@pytest.mark.parametrize("way", WAYS)
def test_an_exported_program_with_sizes_that_change(way: str, device: str) -> None:
    model = network(device).eval()
    x = torch.randn(6, 12, device=device)
    program = export(model, (x,), dynamic_shapes=({0: Dim("rows", min=2, max=64)},)).module()
    made = torch.compile(program, dynamic=True) if way == "compile" else WAYS[way](program)
    with torch.no_grad():
        for rows in (6, 2, 64, 6, 6, 6):
            x = torch.randn(rows, 12, device=device)
            assert_close(made(x), model(x))


def test_a_loaded_program_is_optimized_and_deployed(device: str, tmp_path: Path) -> None:
    model = network(device).eval()
    x = torch.randn(6, 12, device=device)
    sizes = ({0: Dim("rows", min=2, max=64)},)
    torch.export.save(export(model, (x,), dynamic_shapes=sizes), tmp_path / "net.pt2")
    program = torch.export.load(tmp_path / "net.pt2")
    torch_graft.deploy(program, (x,), tmp_path / "net.graft")
    for made in (torch_graft.optimize(program), torch_graft.load(tmp_path / "net.graft")):
        for rows in (6, 33):
            x = torch.randn(rows, 12, device=device)
            with torch.no_grad():
                assert_close(made(x), model(x))
    assert all(one.compiled for one in reports())


def test_an_exported_training_step_is_compiled(device: str) -> None:
    model, x = network(device), torch.randn(6, 12, device=device)
    program = export(copy.deepcopy(model), (x,)).module()
    compiled = torch.compile(program)
    for _ in range(3):
        for one in (compiled, model):
            one(x).square().sum().backward()
    ours = dict(program.named_parameters())
    for name, parameter in model.named_parameters():
        assert_close(ours[name].grad, parameter.grad, rtol=1e-4, atol=1e-4)


def together(count: int, work: Callable[[int], None]) -> list[BaseException]:
    """Runs work(0), work(1), ... on a thread each, begun at once; gives what they raised."""
    raised: list[BaseException] = []
    gate = threading.Barrier(count)

    def run(index: int) -> None:
        try:
            gate.wait()
            work(index)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


@pytest.mark.parametrize("own_streams", [False, True])
def test_threads_that_share_an_optimized_model(own_streams: bool, device: str) -> None:
    model = network(device).eval()
    with torch.no_grad():
        inputs = [torch.randn(4, 12, device=device) for _ in range(4)]
        expected = [model(x).cpu() for x in inputs]
        made = torch_graft.optimize(model, inputs[0])

    def work(index: int) -> None:
        stream = torch.Stream(device) if own_streams else torch.accelerator.current_stream()
        with torch.no_grad(), stream:
            for _ in range(50):
                assert_close(made(inputs[index]).cpu(), expected[index])

    torch.accelerator.synchronize()
    assert together(4, work) == []


def test_weights_that_another_thread_changes_meanwhile_are_not_stale(device: str) -> None:
    model = network(device).eval()
    last = model[-1]
    x = torch.randn(4, 12, device=device)
    made = torch_graft.optimize(model, x)
    done = threading.Event()

    def work(index: int) -> None:
        with torch.no_grad():
            if index == 0:
                for step in range(1, 101):
                    last.weight.fill_(step / 100)
                done.set()
            while not done.is_set():
                assert made(x).shape == (4, 5)

    assert together(2, work) == []
    with torch.no_grad():
        assert torch.equal(last.weight, torch.ones_like(last.weight))
        assert_close(made(x), model(x))

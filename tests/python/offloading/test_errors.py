# tests/python/offloading/test_errors.py: what cannot be offloaded is said, and all is usable afterwards.
from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import torch_graft
from optimized_net import Net
from sandbox import interpret

pytestmark = pytest.mark.one_mode
MIB = 2**20


def test_devices_that_are_none(device: str) -> None:
    for name in ("cpu", "cuda", "meta"):  # device-specific
        with pytest.raises(ValueError, match="must be a device of Graft's"):
            torch_graft.optimize(Net(), device=name)
    with pytest.raises(ValueError, match="names no device"):
        torch_graft.optimize(Net(), device="nothing at all")
    with pytest.raises(RuntimeError, match="does not exist: there are 2 devices"):
        torch_graft.optimize(Net(), device=f"{device}:7")


def test_without_a_device_it_is_said(device: str) -> None:
    ran = interpret(
        """
        import torch_graft
        try:
            torch_graft.optimize(torch.nn.Linear(2, 2), device=D)
        except RuntimeError as error:
            print(json.dumps(str(error)))
        """,
        GRAFT_HOST_DEVICES="0",
    )
    assert "there are 0 devices" in ran.value()
    assert "doctor" in ran.value()


def test_models_that_are_elsewhere(device: str, second: str) -> None:
    for place in (device, "meta"):
        with pytest.raises(ValueError, match="move the model to the CPU"):
            torch_graft.optimize(Net().to(place), device=device)
    model = Net().eval()
    offloaded = torch_graft.optimize(model, device=device)
    x = torch.randn(2, 3, 8, 8)
    expected = offloaded(x)
    model.head.to(device)
    with pytest.raises(ValueError, match=r"one of shape \[5, 8\] is on"):
        offloaded(x)
    model.to("cpu")
    assert_close(offloaded(x), expected)
    with pytest.raises(ValueError, match="an argument of the call is on"):
        offloaded(x.to(second))
    assert_close(offloaded(x), expected)


def test_modules_that_cannot_be_offloaded(device: str) -> None:
    model = Net()
    offloaded = torch_graft.optimize(model, device=device)
    for again in (offloaded, torch_graft.optimize(model)):
        with pytest.raises(TypeError, match="already optimized"):
            torch_graft.optimize(again, device=device)
        with pytest.raises(TypeError, match="already optimized"):
            torch_graft.optimize(offloaded)
    with pytest.raises(TypeError, match=r"takes a torch\.nn\.Module"):
        torch_graft.optimize(lambda x: x, device=device)
    with pytest.raises(ValueError, match="call the model on the CPU once"):
        torch_graft.optimize(nn.Sequential(nn.LazyLinear(3)), device=device)
    scripted = nn.Sequential(torch.jit.script(nn.Linear(2, 2)))
    with pytest.raises(TypeError, match="scripted"):
        torch_graft.optimize(scripted, device=device)(torch.randn(1, 2))
    sparse = nn.Module()
    sparse.register_buffer("table", torch.eye(3).to_sparse())
    with pytest.raises(TypeError, match=r"one of shape .* is sparse"):
        torch_graft.optimize(sparse, device=device)(torch.randn(1, 2))


def test_arguments_of_optimize(device: str) -> None:
    with pytest.raises(ValueError, match="uncounted_writes must be one of checksum, copy, ignore"):
        torch_graft.optimize(Net(), device=device, uncounted_writes="never")
    with pytest.raises(TypeError, match="example inputs do not fit"):
        torch_graft.optimize(Net(), 1, 2, 3, device=device)
    model = Net().eval()
    x = torch.randn(2, 3, 8, 8)
    assert_close(
        torch_graft.optimize(model, x, device=device)(x), model(x).detach(), rtol=1e-4, atol=1e-4
    )


def test_errors_of_the_model_leave_it_usable(device: str) -> None:
    model = Net().eval()
    offloaded = torch_graft.optimize(model, device=device)
    x = torch.randn(2, 3, 8, 8)
    expected = offloaded(x)
    with pytest.raises(RuntimeError):
        offloaded(torch.randn(2, 4, 8, 8))
    with pytest.raises(TypeError):
        offloaded(x, x, x)
    assert_close(offloaded(x), expected)


def test_memory_runs_out_for_the_weights_and_for_a_call() -> None:
    """torch.OutOfMemoryError; with more memory, or a smaller batch, the same module goes on."""
    ran = interpret(
        """
        import torch_graft
        model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(4))).eval()
        offloaded = torch_graft.optimize(model, device=D, resident="all")
        x, failed = torch.randn(2, 1024), []

        def fails(*arguments):
            try:
                offloaded(*arguments)
                failed.append("nothing")
            except torch.OutOfMemoryError as error:
                failed.append("Tried to allocate" in str(error))

        module = torch.get_device_module(D)
        total = module.get_device_properties(0).total_memory
        module.set_per_process_memory_fraction(9 * 2**20 / total)
        fails(x)
        module.empty_cache()
        left = module.memory_allocated()
        module.set_per_process_memory_fraction(1.0)
        good = torch.allclose(offloaded(x), model(x), atol=1e-4)
        fails(torch.randn(2**15, 1024))
        again = torch.allclose(offloaded(x), model(x), atol=1e-4)
        print(json.dumps([failed, left, good, again]))
        """,
        GRAFT_HOST_MEMORY=str(64 * MIB),
    )
    assert ran.value() == [[True, True], 0, True, True]

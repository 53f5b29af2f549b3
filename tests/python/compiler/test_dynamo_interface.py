# tests/python/compiler/test_dynamo_interface.py: torch.graft and torch.accelerator inside compiled functions.
"""Functions of the device's module mean in torch.compile(fullgraph=True) what they mean outside."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from sandbox import NAME

pytestmark = pytest.mark.usefixtures("fresh")
graft: Any = torch.get_device_module(NAME)
accelerator = torch.accelerator


def whole(function: Callable[..., Any], *inputs: Any) -> Any:
    """The call as one graph. Graphs on two devices run node by node, with a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.compile runs this")
        return torch.compile(function, fullgraph=True)(*inputs)


def test_the_interface_is_registered(device: str) -> None:
    from torch._dynamo.device_interface import get_interface_for_device

    torch.compile(torch.relu)  # registers it, if nothing in this process did before
    interface = get_interface_for_device(torch.device(device))
    assert interface is get_interface_for_device(device)
    assert interface.Stream is torch.Stream
    assert interface.Event is torch.Event
    assert interface.device_count() == graft.device_count()
    assert interface.is_available()
    assert interface.current_device() == interface.Worker.current_device() == 0
    properties = interface.get_device_properties(f"{device}:0")
    assert properties.name == graft.get_device_name(0)
    assert interface.get_compute_capability() == graft.get_device_capability()
    assert interface.is_dtype_supported(torch.bfloat16)
    assert not interface.is_triton_capable()
    with pytest.raises(RuntimeError, match="Triton"):
        interface.raise_if_triton_unavailable()
    with torch._dynamo.device_interface.DeviceGuard(interface, 1):
        assert graft.current_device() == 1
    assert graft.current_device() == 0
    stream = torch.Stream(device)
    interface._set_stream_by_id(stream.stream_id, stream.device_index, stream.device_type)
    assert interface.current_stream() == stream
    interface.set_stream(graft.default_stream())


def test_the_module_has_the_name_that_dynamo_expects(device: str) -> None:
    assert graft.__name__ == f"torch.{device}"
    for part in ("amp", "graphs", "memory", "random", "streams"):
        module = __import__(f"torch.{device}.{part}", fromlist=["x"])
        assert module is getattr(graft, part)
        assert module.__name__ == f"torch.{device}.{part}"
    with pytest.raises(ImportError):
        __import__(f"torch.{device}.nothing")
    with pytest.raises(AttributeError, match=f"module 'torch.{device}' has no attribute 'nothing'"):
        _ = graft.nothing


NUMBERS: dict[str, Callable[[torch.Tensor], Any]] = {
    "current_device": lambda x: graft.current_device(),
    "current_device_index": lambda x: accelerator.current_device_index(),
    "is_available": lambda x: graft.is_available(),
    "is_bf16_supported": lambda x: graft.is_bf16_supported(),
    "capability": lambda x: graft.get_device_capability()[0],
    "name": lambda x: len(graft.get_device_name(0)),
    "properties": lambda x: graft.get_device_properties(x.device).total_memory,
    "current accelerator": lambda x: accelerator.current_accelerator().type == NAME,
    "module of a device": lambda x: torch.get_device_module(x.device).current_device(),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_what_is_asked_for_is_a_constant(name: str, device: str) -> None:
    x = torch.zeros(3, device=device)
    expected = float(NUMBERS[name](x))
    got = whole(lambda x: x + NUMBERS[name](x), x)
    torch.testing.assert_close(got.cpu(), torch.full((3,), expected))


def test_the_current_device_is_asked_again_when_it_has_changed(device: str) -> None:
    compiled = torch.compile(lambda x: x + graft.current_device(), fullgraph=True)
    x = torch.zeros(2, device=device)
    assert compiled(x).tolist() == [0, 0]
    with graft.device(1):
        assert compiled(x).tolist() == [1, 1]
    assert compiled(x).tolist() == [0, 0]


def by_module(x: torch.Tensor) -> torch.Tensor:
    module = torch.get_device_module(x.device)
    side = module.Stream(device=x.device)
    side.wait_stream(module.current_stream())
    with module.stream(side):
        y = x * 2
    module.current_stream().wait_stream(side)
    return y


def by_accelerator(x: torch.Tensor) -> torch.Tensor:
    side, done = torch.Stream(x.device), torch.Event(x.device)
    with side:
        y = x * 2
    done.record(side)
    done.wait(accelerator.current_stream())
    accelerator.synchronize()
    return y


def by_events(x: torch.Tensor) -> torch.Tensor:
    done = graft.Event()
    y = x * 2
    done.record()
    done.synchronize()
    graft.synchronize()
    graft.synchronize(x.device)
    return y


@pytest.mark.parametrize("function", [by_module, by_accelerator, by_events])
def test_streams_and_events(function: Callable[..., Any], device: str) -> None:
    x = torch.randn(1000, device=device)
    torch.testing.assert_close(whole(function, x), x * 2)
    assert graft.current_stream() == graft.default_stream()


CONTEXTS = {"module": graft.device, "accelerator": accelerator.device_index}


@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS)
def test_new_tensors_are_on_the_device_that_is_current(context: Any, device: str) -> None:
    def make(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        before = torch.ones(3, device=NAME)
        with context(1):
            there = torch.ones(3, device=NAME) * 2
            moved = x.to(NAME)
        after = torch.ones(3, device=NAME)
        return before, there, moved, after

    got = whole(make, torch.arange(3.0))
    assert [one.device.index for one in got] == [0, 1, 1, 0]
    assert [one.tolist() for one in got] == [[1, 1, 1], [2, 2, 2], [0, 1, 2], [1, 1, 1]]
    assert graft.current_device() == 0

    def alone() -> torch.Tensor:
        with context(1):
            return torch.ones(3, device=NAME) * 2

    assert whole(alone).device.index == 1


# torch.cuda's are refused in one graph, too: they change what Dynamo does not follow.
REFUSED: dict[str, Callable[[], Any]] = {
    "device_count": lambda: graft.device_count(),
    "set_device": lambda: graft.set_device(0),
    "manual_seed": lambda: graft.manual_seed(1),
    "memory_allocated": lambda: graft.memory_allocated(),
    "is_current_stream_capturing": lambda: graft.is_current_stream_capturing(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_breaks_a_graph_runs_between_two(name: str, device: str) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        REFUSED[name]()
        return x + 1

    x = torch.ones(2, device=device)
    with pytest.raises(torch._dynamo.exc.Unsupported):
        whole(function, x)
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dynamo's, of functions that it does not know
        assert torch.compile(function)(x).tolist() == [2, 2]


def test_inductor_by_name_says_what_to_use(device: str, tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 3).to(device)
    x = torch.ones(2, 3, device=device)
    text = f"no code for device '{device}'. Call torch.compile without a backend or with backend=\"graft\""
    program = torch.export.export(model, (x,))
    text += ".*torch_graft.deploy"
    for call in (
        lambda: torch.compile(model, backend="inductor")(x),
        lambda: torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "a.pt2")),
        lambda: torch._inductor.compile(program.module(), [x]),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=text):
            call()
    on_cpu = torch.compile(lambda x: x * 2, backend="inductor")(torch.ones(2))
    assert on_cpu.tolist() == [2, 2]


_LAZY = """
import sys
import torch
torch.ones(2, device=NAME)
assert not [name for name in sys.modules if name.startswith(("torch._dynamo", "torch._inductor"))]
FIRST
from torch._dynamo.device_interface import get_interface_for_device
print(get_interface_for_device(NAME).Stream, torch.compiler.get_default_backend())
"""

FIRST = {
    "compile": "torch.compile(abs)",
    "decorator": "@torch.compile\ndef f(x):\n    return x",
    "method": "torch.nn.Linear(1, 1).compile()",
    "Dynamo loaded before": "import torch._dynamo; torch.compile(abs)",
    "optimize": "import torch._dynamo; torch._dynamo.optimize('eager')",
    "export": "import torch._dynamo; torch._dynamo.export(lambda x: x + 1)(torch.ones(1))",
}


@pytest.mark.parametrize("first", FIRST)
def test_the_settings_are_made_before_the_first_compilation(first: str, device: str) -> None:
    program = f"NAME = '{device}'{_LAZY.replace('FIRST', FIRST[first])}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Stream" in done.stdout
    assert done.stdout.endswith("graft\n")


def test_the_hooks_of_imports_are_as_without_graft() -> None:
    program = "import sys, torch; print([type(one) for one in (*sys.meta_path, *sys.path_hooks)])"
    said = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": autoload},
            capture_output=True, text=True, check=True,
        ).stdout
        for autoload in "01"
    }  # fmt: skip
    assert len(said) == 1


def test_what_pytorch_logs_of_its_use_is_still_printed(device: str) -> None:
    program = "import torch; torch.compile(abs)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env={**os.environ, "PYTORCH_API_USAGE_STDERR": "1"})  # fmt: skip
    assert "PYTORCH_API_USAGE torch.compile\n" in done.stderr


def test_a_setting_that_fails_is_reported_and_the_compilation_goes_on() -> None:
    program = """
import torch
from torch_graft.compiler import first_compile
def fails():
    raise RuntimeError("no such setting")
first_compile.before_first_compile(fails)
print(torch.compile(lambda x: x + 1)(torch.ones(1)).item())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "2.0\n"
    assert "no such setting" in done.stderr

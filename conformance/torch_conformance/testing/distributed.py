# conformance/torch_conformance/testing/distributed.py: PyTorch's own distributed cases on any backend name.
"""Three lines make a test file:

    from torch_conformance.testing.distributed import add_distributed_tests
    add_distributed_tests(globals(), device="npu", plugin="torch_npu")

The cases are DistributedTest of torch.testing, as the wheel ships them. They make their tensors on
the default device, so each process makes its own device the default one before it runs a case.
Cases that call .cuda() themselves skip, with PyTorch's reason. One device and backend per process.
"""

from __future__ import annotations

import unittest
from typing import Any

import torch

from torch_conformance import SetupError
from torch_conformance.cells import cases
from torch_conformance.device.capabilities import capabilities
from torch_conformance.device.lookup import load_plugin
from torch_conformance.testing import choice


def missing_backend(device: str) -> str | None:
    """Why a device has no distributed cases to run; None when it has a backend."""
    if not torch.distributed.is_available():
        return "this build of PyTorch has no torch.distributed"
    if capabilities(device).distributed is None:
        return (
            f"the device '{device}' has no backend of torch.distributed: its package would call "
            f"Backend.register_backend(name, make, devices=['{device}'])"
        )
    return None


def _checked(backend: str) -> str:
    """The backend's name as init_process_group takes it: gloo, or cpu:gloo,npu:hccl."""
    known = torch.distributed.Backend.backend_list
    for part in backend.split(","):
        name = part.rpartition(":")[2].lower()
        if name not in known:
            raise SetupError(
                f"no backend of torch.distributed is called '{name}'; there are {', '.join(known)}. "
                "Name the package that registers it: plugin='its.module'"
            )
    return backend


def _without_backend(scope: dict[str, Any], reason: str) -> type:
    def test_backend(self: unittest.TestCase) -> None:
        self.skipTest(reason)

    parts = {"test_backend": test_backend, "__module__": scope.get("__name__", __name__)}
    return type("TestDistributed", (unittest.TestCase,), parts)


def add_distributed_tests(
    scope: dict[str, Any],
    device: str = "cpu",
    backend: str | None = None,
    *,
    world_size: int = 3,
    tests: list[str] | None = None,
    plugin: str | None = None,
    start: str = "forkserver",
) -> type:
    """Adds the class TestDistributed to scope, the globals() of a test file, and returns it.

    backend: None takes the one registered for the device; without one, the class has one item, which
    skips and says so. tests: names and shell patterns ("test_all_reduce_*"); all for None. plugin:
    a module that every process imports first, because it registers the device or the backend. start:
    how processes start; "spawn" (seconds more for each case) where a device's package, once
    imported, does not survive a fork.
    """
    load_plugin(plugin)
    reason = missing_backend(device) if backend is None else None
    if reason is not None:
        scope["TestDistributed"] = _without_backend(scope, reason)
        return scope["TestDistributed"]
    name = _checked(backend or str(capabilities(device).distributed))
    choice.make(device=torch.device(device).type, backend=name, tests=tests, world_size=world_size,
                plugin=plugin, start=start)  # fmt: skip
    cases.from_tests("DistTestCases")
    from torch_conformance.testing.ranks import TestDistributed

    scope["TestDistributed"] = TestDistributed
    return TestDistributed

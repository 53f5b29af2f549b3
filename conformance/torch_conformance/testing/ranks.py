# conformance/torch_conformance/testing/ranks.py: PyTorch's distributed cases, as the environment chose.
"""Imported by distributed.py and again by each process of a case, which finds the class by its name."""

from __future__ import annotations

import fnmatch
import os
from typing import Any

import torch

from torch_conformance import SetupError
from torch_conformance import private_names as inside
from torch_conformance.device.lookup import load_plugin
from torch_conformance.testing import choice

CHOICE = choice.made()
# PyTorch's module reads these two when it is imported.
os.environ["BACKEND"] = CHOICE["backend"]
os.environ["WORLD_SIZE"] = str(CHOICE["world_size"])
load_plugin(CHOICE["plugin"])

# PyTorch's own registry of what a backend implements; without an entry its cases skip.
for _feature in ("plugin", "ddp", "subgroup"):
    inside.DistTestCases.backend_feature[_feature].add(CHOICE["backend"])

_Cases: Any = inside.DistTestBase
_Backend: Any = inside.TestDistBackend


class _LeftOut:
    """Stands for a case that was not chosen; upstream's set-up looks at __wrapped__ of some."""

    def __init__(self, case: Any) -> None:
        self.__wrapped__ = getattr(case, "__wrapped__", case)


def _left_out() -> dict[str, _LeftOut]:
    names = [name for name in dir(_Cases) if name.startswith("test_")]
    wanted = CHOICE["tests"]
    if wanted is None:
        return {}
    chosen = {name for pattern in wanted for name in fnmatch.filter(names, pattern)}
    if not chosen:
        raise SetupError(
            f"no distributed case fits {wanted}; there are {len(names)}: {names[:8]}..."
        )
    return {name: _LeftOut(getattr(_Cases, name)) for name in names if name not in chosen}


class _Runs(_Backend, _Cases):
    def setUp(self) -> None:
        super().setUp()
        context = torch.multiprocessing.get_context(CHOICE["start"])
        if CHOICE["start"] == "forkserver":
            context.set_forkserver_preload([__name__])

        def process(**given: Any) -> Any:
            # A fork server keeps the environment that it began with.
            given["kwargs"]["environment"] = dict(os.environ)
            return context.Process(**given)

        inside.start_processes(self, process)

    @classmethod
    def _run(cls, rank: int, *arguments: Any, environment: dict[str, str], **more: Any) -> None:
        """In a process of its own: new tensors go to this rank's device."""
        os.environ.update(environment)
        kind = CHOICE["device"]
        if kind != "cpu":
            module = torch.get_device_module(kind)
            index = rank % max(module.device_count(), 1)
            module.set_device(index)
            torch.set_default_device(f"{kind}:{index}")
        super()._run(rank, *arguments, **more)


TestDistributed = type("TestDistributed", (_Runs,), {**_left_out(), "__module__": __name__})

# python/torch_graft/compiler/inductor.py: what Inductor gets that looks for the devices' code generators.
"""Inductor asks the accelerator's module for them when it first compiles: 2.15 and later by calling
_inductor_backend_init, earlier minors by looking for Scheduling."""

from __future__ import annotations

from typing import Any

import torch

from torch_graft import private_names as inside

_BACKEND = "graft"  # whatever the device type is named

# The device types that Graft serves.
devices: list[str] = []


def refuse() -> None:
    """Makes Inductor raise for graphs on devices, before it lowers them. REQUIRES: Inductor is
    loaded."""
    for name in devices:
        passes = _refusal(name)
        inside.register_backend_for_device(name, _Unreached, _Unreached, device_custom_pass=passes)


class _Unreached:
    """In the place of what writes code: the refusal comes before it."""

    supports_caching = False


def _refusal(name: str) -> Any:
    class Refusal(inside.CustomGraphModulePass):
        def __call__(self, gm: torch.fx.GraphModule) -> None:
            raise RuntimeError(
                f"Inductor and AOTInductor write no code for device '{name}'. Call torch.compile "
                f'without a backend or with backend="{_BACKEND}"; to keep a program, save it with '
                "torch.export.save and give it to torch_graft.optimize after torch.export.load, or "
                "write one that runs without Python with torch_graft.deploy."
            )

        def uuid(self) -> str:
            return "graft"

    return Refusal()

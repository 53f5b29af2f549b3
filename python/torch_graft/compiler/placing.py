# python/torch_graft/compiler/placing.py: which device a graph means by "graft" without a number.
"""Graphs keep a device without an index as it was written, but not where the block of a device began
and ended. So the number is written into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from torch_graft.attaching import attached_name
from torch_graft.ve import NAME as SLOT

_EXCHANGES = ("_exchange_device", "_accelerator_exchangeDevice", "_accelerator_maybeExchangeDevice")


def of_graft(device: torch.device) -> bool:
    """Whether graphs on the device are the graph compiler's."""
    return device.type in (attached_name(), SLOT)


def device_among(module: fx.GraphModule, examples: Sequence[Any]) -> torch.device | None:
    """The first device of Graft's among the tensors of Dynamo's graph; None without one."""
    tensors = [*examples, *module.parameters(), *module.buffers()]
    tensors += [node.meta.get("example_value") for node in module.graph.nodes]
    devices = (one.device for one in tensors if isinstance(one, torch.Tensor))
    return next(filter(of_graft, devices), None)


def carrier(device: torch.device) -> torch.device:
    """The device that runs what is on device: for one of torch.device("ve") the one behind it."""
    if device.type != SLOT:
        return device
    from torch_graft.ve.carried import inner_index

    return torch.device(attached_name(), inner_index(device))


def name_devices(module: fx.GraphModule) -> None:
    """Of Dynamo's graph, which has the changes of the current devices as nodes."""
    current: dict[str, int] = {}  # by type; a type whose device nobody changed has none
    before: dict[fx.Node, int] = {}
    for node in module.graph.nodes:
        if node.op == "call_function" and getattr(node.target, "__name__", "") in _EXCHANGES:
            kind = getattr(node.target, "device_type", str(attached_name()))
            if kind not in current:
                current[kind] = torch.get_device_module(kind).current_device()
            before[node] = current[kind]
            [index] = node.args
            current[kind] = before[index] if isinstance(index, fx.Node) else index
        elif _means_current(node.kwargs.get("device")):
            kind = torch.device(node.kwargs["device"]).type
            if kind in current:
                node.update_kwarg("device", torch.device(kind, current[kind]))
    if before:
        module.recompile()


def name_traced_devices(module: fx.GraphModule) -> None:
    """Of AOTAutograd's graph, where fake tensors know their devices."""
    for node in module.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and _means_current(node.kwargs.get("device")):
            node.update_kwarg("device", value.device)


def _means_current(device: Any) -> bool:
    if isinstance(device, str):
        device = torch.device(device)
    if not isinstance(device, torch.device):
        return False
    return of_graft(device) and device.index is None

# python/torch_graft/integrations/lightning_device.py: the device as an accelerator of Lightning, of either distribution.
"""Registered under the device's name; what asks for CUDA instead of the registry is changed."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import torch

from torch_graft.integrations.changes import Changes


def apply(changes: Changes, device: str, trainer: str, fabric: str) -> None:
    """trainer and fabric: the names of the packages."""
    accelerators = import_module(f"{trainer}.accelerators")
    kind = _accelerator(accelerators.Accelerator, device)
    for registry in (
        accelerators.AcceleratorRegistry,
        import_module(f"{fabric}.accelerators").ACCELERATOR_REGISTRY,
    ):
        changes.put(registry, device, {})
        registry.register(device, kind, description=f"devices of {device}", override=True)
    for package, connector, ids in (
        (trainer, "trainer.connectors.accelerator_connector:_AcceleratorConnector", "determine"),
        (fabric, "connector:_Connector", "_determine"),
    ):
        _connector(changes, device, kind, _find(f"{package}.{connector}"), package)
        _ddp(
            changes, device, _find(f"{package}.strategies.ddp:DDPStrategy"), f"{ids}_ddp_device_ids"
        )


def _find(place: str) -> Any:
    module, name = place.split(":")
    return vars(import_module(module))[name]


def _accelerator(base: Any, device: str) -> Any:
    module = torch.get_device_module(device)

    def parse(devices: Any) -> list[int]:
        if isinstance(devices, str):
            devices = [int(n) for n in devices.split(",") if n] if "," in devices else int(devices)
        count = module.device_count()
        if isinstance(devices, int):
            devices = list(range(count if devices == -1 else devices))
        if any(index not in range(count) for index in devices):
            raise ValueError(
                f"devices={devices}: there are {count} of '{device}'. Ask for fewer; GRAFT_HOST_DEVICES sets the "
                "number of simulated devices."
            )
        return list(devices)

    return type(f"{device.capitalize()}Accelerator", (base,), {
        "__module__": __name__,
        "setup_device": lambda self, chosen: module.set_device(chosen),
        "teardown": lambda self: module.empty_cache(),
        "get_device_stats": lambda self, chosen: module.memory_stats(chosen),
        "parse_devices": staticmethod(parse),
        "get_parallel_devices": staticmethod(lambda devices: [torch.device(device, index) for index in devices]),
        "auto_device_count": staticmethod(module.device_count),
        "is_available": staticmethod(lambda: module.device_count() > 0),
        "name": staticmethod(lambda: device),
    })  # fmt: skip


def _connector(changes: Changes, device: str, kind: Any, connector: Any, package: str) -> None:
    single = import_module(f"{package}.strategies").SingleDeviceStrategy
    mixed = import_module(f"{package}.plugins.precision.amp").MixedPrecision

    def choose_strategy(self: Any) -> Any:
        chosen = strategy(self)
        ours = isinstance(self.accelerator, kind) and isinstance(chosen, single)
        return single(device=vars(self)["_parallel_devices"][0]) if ours else chosen

    def check_and_init_precision(self: Any) -> Any:
        if not isinstance(self.accelerator, kind):
            return precision(self)
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message=".*GradScaler.*"
            )  # of CUDA, which is not there
            chosen = precision(self)
        return (
            mixed(chosen.precision, device)
            if isinstance(chosen, mixed) and chosen.device == "cuda"
            else chosen
        )

    def choose_accelerator() -> str:
        return device if kind.is_available() else automatic()

    automatic = changes.replace(
        connector, "_choose_auto_accelerator", staticmethod(choose_accelerator)
    )
    strategy = changes.replace(connector, "_choose_strategy", choose_strategy)
    precision = changes.replace(connector, "_check_and_init_precision", check_and_init_precision)


def _ddp(changes: Changes, device: str, strategy: Any, name: str) -> None:
    def ids(self: Any) -> Any:
        """None: Lightning moves the batches, and with numbers it makes a stream of CUDA."""
        return None if self.root_device.type == device else original(self)

    original = changes.replace(strategy, name, ids)

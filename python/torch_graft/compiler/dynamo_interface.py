# python/torch_graft/compiler/dynamo_interface.py: what Dynamo and Inductor are told about the device.
"""Makes a device module's functions mean in compiled functions what torch.cuda's mean there.

Neither is loaded by this: Dynamo's part is registered before the first compilation, Inductor's when
it asks for code generators.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch

from torch_graft import private_names as inside
from torch_graft.compiler import inductor
from torch_graft.compiler.first_compile import before_first_compile
from torch_graft.device.indices import DeviceLike


def register(name: str, module: ModuleType) -> None:
    """For the device type of this name, whose functions module has. Called once for each, by attach."""

    def settings() -> None:
        made = _interface(inside.DeviceInterface, module)
        inside.register_interface_for_device(name, made)
        variable = _device_variable(inside.GenericDeviceVariable, name, module)
        inside.register_device_context_manager(module.device, variable)
        for function in (module._properties, module.is_available):
            inside.assume_constant_result(function)

    before_first_compile(settings)
    inductor.devices.append(name)


def _interface(base: Any, module: ModuleType) -> Any:
    class Worker:
        """For processes that compile: they open no device."""

        _current: int | None = None

        @classmethod
        def set_device(cls, device: int) -> None:
            cls._current = device

        @classmethod
        def current_device(cls) -> int:
            return module.current_device() if cls._current is None else cls._current

        @classmethod
        def get_device_properties(cls, device: DeviceLike = None) -> Any:
            index = cls.current_device() if device is None else module._get_device_index(device)
            return module.get_device_properties(index)

    class Interface(base):
        device = module.device
        Event = torch.Event
        Stream = torch.Stream
        current_device = staticmethod(module.current_device)
        set_device = staticmethod(module.set_device)
        device_count = staticmethod(module.device_count)
        is_available = staticmethod(module.is_available)
        stream = staticmethod(module.stream)
        current_stream = staticmethod(module.current_stream)
        set_stream = staticmethod(module.set_stream)
        synchronize = staticmethod(module.synchronize)
        exchange_device = staticmethod(module._exchange_device)
        maybe_exchange_device = staticmethod(module._maybe_exchange_device)
        get_compute_capability = staticmethod(module.get_device_capability)
        is_bf16_supported = staticmethod(module.is_bf16_supported)
        memory_allocated = staticmethod(module.memory_allocated)

        @staticmethod
        def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
            module._set_stream_by_id(stream_id, device_index, device_type)

        @staticmethod
        def get_raw_stream(device_idx: int) -> int:
            return int(module.current_stream(device_idx).native_handle)

    Interface.Worker = Worker
    return Interface


def _device_variable(base: Any, name: str, module: ModuleType) -> Any:
    def exchange_device(index: int) -> int:
        """Called while a graph is traced: PyTorch remembers on which device a
        type without an index made a fake tensor, and takes no notice of the current device."""
        inside.FakeTensorMode.cache_clear()
        return int(module._exchange_device(index))

    exchange_device.__name__ = "_exchange_device"
    exchange_device.device_type = name  # type: ignore[attr-defined]  # for placing.name_devices

    class DeviceVariable(base):
        _exchange_fn = staticmethod(exchange_device)
        _maybe_exchange_fn = staticmethod(exchange_device)
        _get_device_index_fn = staticmethod(module._get_device_index)

        def module_name(self) -> str:
            return f"torch.{name}"

        def python_type(self) -> type:
            return module.device

    return DeviceVariable

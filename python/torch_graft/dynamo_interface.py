# python/torch_graft/dynamo_interface.py: what Dynamo and Inductor are told about the device.
"""Makes torch.graft's functions mean in compiled functions what torch.cuda's mean there.

Dynamo is not loaded by this: each part is registered when PyTorch loads the module that keeps it.
"""

from __future__ import annotations

from typing import Any

import torch

from torch_graft import accelerator
from torch_graft.indices import DeviceLike, device_index
from torch_graft.loading import when_loaded

_BACKEND = "graft"  # whatever the device type is named


def register(name: str) -> None:
    """Called once, by attach."""

    def interface(dynamo: Any) -> None:
        made = _interface(dynamo.DeviceInterface)
        dynamo.register_interface_for_device(name, made)

    def context(dynamo: Any) -> None:
        variable = _device_variable(dynamo.GenericDeviceVariable, name)
        dynamo.register_device_context_manager(accelerator.device, variable)

    def constants(dynamo: Any) -> None:
        for function in (accelerator._properties, accelerator.is_available):
            dynamo.assume_constant_result(function)

    def inductor(common: Any) -> None:
        _refuse_inductor(common, name)

    when_loaded("torch._dynamo.device_interface", interface)
    when_loaded("torch._dynamo.variables.ctx_manager", context)
    when_loaded("torch._dynamo.decorators", constants)
    when_loaded("torch._inductor.codegen.common", inductor)


def _interface(base: Any) -> Any:
    class Worker:
        """For processes that compile: they open no device."""

        _current: int | None = None

        @classmethod
        def set_device(cls, device: int) -> None:
            cls._current = device

        @classmethod
        def current_device(cls) -> int:
            return accelerator.current_device() if cls._current is None else cls._current

        @classmethod
        def get_device_properties(cls, device: DeviceLike = None) -> Any:
            index = cls.current_device() if device is None else device_index(device)
            return accelerator.get_device_properties(index)

    class Interface(base):
        device = accelerator.device
        Event = torch.Event
        Stream = torch.Stream
        current_device = staticmethod(accelerator.current_device)
        set_device = staticmethod(accelerator.set_device)
        device_count = staticmethod(accelerator.device_count)
        is_available = staticmethod(accelerator.is_available)
        stream = staticmethod(accelerator.stream)
        current_stream = staticmethod(accelerator.current_stream)
        set_stream = staticmethod(accelerator.set_stream)
        synchronize = staticmethod(accelerator.synchronize)
        exchange_device = staticmethod(accelerator._exchange_device)
        maybe_exchange_device = staticmethod(accelerator._maybe_exchange_device)
        get_compute_capability = staticmethod(accelerator.get_device_capability)
        is_bf16_supported = staticmethod(accelerator.is_bf16_supported)
        memory_allocated = staticmethod(accelerator.memory_allocated)

        @staticmethod
        def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
            accelerator._set_stream_by_id(stream_id, device_index, device_type)

        @staticmethod
        def get_raw_stream(device_idx: int) -> int:
            return int(accelerator.current_stream(device_idx).native_handle)

    Interface.Worker = Worker
    return Interface


def _exchange_device(index: int) -> int:
    """Called while a graph is traced: PyTorch remembers on which device `device="graft"` made a
    fake tensor, and takes no notice of the current device."""
    from torch._subclasses import FakeTensorMode

    FakeTensorMode.cache_clear()
    return accelerator._exchange_device(index)


def _device_variable(base: Any, name: str) -> Any:
    class DeviceVariable(base):
        _exchange_fn = staticmethod(_exchange_device)
        _maybe_exchange_fn = staticmethod(_exchange_device)
        _get_device_index_fn = staticmethod(device_index)

        def module_name(self) -> str:
            return f"torch.{name}"

        def python_type(self) -> type:
            return accelerator.device

    return DeviceVariable


def _refuse_inductor(common: Any, name: str) -> None:
    from torch._inductor.custom_graph_pass import CustomGraphModulePass

    class Refusal(CustomGraphModulePass):
        def __call__(self, gm: torch.fx.GraphModule) -> None:
            raise RuntimeError(
                f"Inductor and AOTInductor write no code for device '{name}'. Call torch.compile "
                f'without a backend or with backend="{_BACKEND}"; a program to keep is saved with '
                "torch.export.save and compiled after torch.export.load."
            )

        def uuid(self) -> str:
            return "graft"

    class Unreached:
        """In the place of what writes code: Refusal comes before it."""

        supports_caching = False

    common.register_backend_for_device(name, Unreached, Unreached, device_custom_pass=Refusal())

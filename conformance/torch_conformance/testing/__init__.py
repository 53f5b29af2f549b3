# conformance/torch_conformance/testing/__init__.py: what test files import: cells as items, and capabilities.
from torch_conformance.testing.items import (
    Capabilities,
    add_tests,
    capabilities,
    declared_dtypes,
    instantiate_device_type_tests,
    requires,
    requires_autocast,
    requires_complex,
    requires_devices,
    requires_distributed,
    requires_dtype,
    requires_fp64,
    requires_generator,
    requires_memory_statistics,
    requires_pinned_memory,
    requires_streams,
    requires_timed_events,
)

__all__ = [
    "Capabilities", "add_tests", "capabilities", "declared_dtypes", "instantiate_device_type_tests",
    "requires", "requires_autocast", "requires_complex", "requires_devices", "requires_distributed",
    "requires_dtype", "requires_fp64", "requires_generator", "requires_memory_statistics",
    "requires_pinned_memory", "requires_streams", "requires_timed_events",
]  # fmt: skip

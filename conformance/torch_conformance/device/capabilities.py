# conformance/torch_conformance/device/capabilities.py: what a device can do, and decorators that ask for it.
"""A test names what it needs, never the devices that have it.

What a device declares is believed; what nobody declares is tried, once per process. The dtypes of a
device come from the first of:

1. `supported_dtypes()` of its device module, `torch.<device>`;
2. `torch.accelerator.get_device_capability()`, which the device's C++ guard answers;
3. a trial: a tensor of each dtype goes to the device and must come back unchanged.
"""

from __future__ import annotations

import functools
import inspect
import unittest
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch

from torch_conformance import SetupError
from torch_conformance import private_names as inside

_F = TypeVar("_F", bound=Callable[..., Any])
_AUTOCAST = (torch.float16, torch.bfloat16)


def _works(trial: Callable[[], Any]) -> bool:
    """Whether a trial succeeds; whatever a device raises means that it cannot."""
    try:
        return trial() is not False
    except Exception:
        return False


class Capabilities:
    """What one device type can do; each answer is found when it is first asked for."""

    def __init__(self, device: str) -> None:
        try:
            self.type = torch.device(device).type
        except RuntimeError as error:
            raise SetupError(
                f"PyTorch knows no device '{device}': import the package that adds it first"
            ) from error
        self.module = None if self.type == "cpu" else getattr(torch, self.type, None)

    @functools.cached_property
    def count(self) -> int:
        """Number of devices of the type."""
        if self.type in ("cpu", "meta"):
            return 1
        return int(self.module.device_count()) if self.module else 0

    @functools.cached_property
    def declared(self) -> tuple[frozenset[torch.dtype], str] | None:
        """The dtypes that the device names itself, and where; None when it names none."""
        offered = getattr(self.module, "supported_dtypes", None)
        if offered is not None:
            return frozenset(offered()), f"torch.{self.type}.supported_dtypes()"
        if self._is_accelerator():
            try:
                known = torch.accelerator.get_device_capability(self.type)
            except (RuntimeError, ValueError, AttributeError):
                return None
            if known.get("supported_dtypes"):
                return frozenset(known["supported_dtypes"]), "torch.accelerator"
        return None

    @functools.cached_property
    def source(self) -> str:
        """Who says so about dtypes: for messages."""
        return f"declared by {self.declared[1]}" if self.declared else "tried"

    def supports(self, dtype: torch.dtype) -> bool:
        if self.declared is not None:
            return dtype in self.declared[0]
        return _carries(self.type, dtype)

    def dtypes(self, among: Iterable[torch.dtype] | None = None) -> list[torch.dtype]:
        """Those of among (all usual ones when None) that the device has, in the order given."""
        if among is None:
            among = inside.get_all_dtypes()
        return [dtype for dtype in among if self.supports(dtype)]

    def autocast(self, dtype: torch.dtype | None = None) -> bool:
        """Whether torch.autocast lowers a matrix product to dtype (None: to any)."""
        if not torch.amp.is_autocast_available(self.type):
            return False
        offered = getattr(self.module, "get_amp_supported_dtype", lambda: _AUTOCAST)()
        wanted = list(offered) if dtype is None else [d for d in offered if d == dtype]
        return any(_lowers(self.type, d) for d in wanted)

    @functools.cached_property
    def streams(self) -> bool:
        """Whether it has streams of its own; a host without any runs everything in order."""

        def trial() -> bool:
            stream = torch.Stream(self.type)
            stream.synchronize()
            return bool(stream.query())

        return self.type != "cpu" and _works(trial)

    @functools.cached_property
    def timed_events(self) -> bool:
        def trial() -> bool:
            stream = torch.accelerator.current_stream(self.type)
            marks = [torch.Event(self.type, enable_timing=True) for _ in range(2)]
            for mark in marks:
                mark.record(stream)
            stream.synchronize()
            return marks[0].elapsed_time(marks[1]) >= 0

        return self.streams and _works(trial)

    @functools.cached_property
    def generator(self) -> bool:
        return _works(lambda: torch.rand(1, generator=torch.Generator(self.type), device=self.type))

    @functools.cached_property
    def pinned_memory(self) -> bool:
        return self._is_accelerator() and _works(lambda: torch.ones(1).pin_memory().is_pinned())

    @functools.cached_property
    def memory_statistics(self) -> bool:
        return self._is_accelerator() and _works(lambda: torch.accelerator.memory_stats(self.type))

    @property
    def distributed(self) -> str | None:
        """The backend of torch.distributed that was registered for the type."""
        if not torch.distributed.is_available():
            return None
        return torch.distributed.Backend.default_device_backend_map.get(self.type)

    def _is_accelerator(self) -> bool:
        current = torch.accelerator.current_accelerator()
        return current is not None and current.type == self.type


@functools.cache
def _known(device_type: str) -> Capabilities:
    return Capabilities(device_type)


def capabilities(device: str | torch.device) -> Capabilities:
    """What a device's type can do; the same object each time."""
    return _known(str(device).partition(":")[0])


@functools.cache
def _carries(device_type: str, dtype: torch.dtype) -> bool:
    def trial() -> bool:
        there = torch.ones(3, dtype=torch.float32).to(dtype)
        back = there.to(device_type).cpu()
        return back.dtype == dtype and back.view(torch.uint8).equal(there.view(torch.uint8))

    return _works(trial)


@functools.cache
def _lowers(device_type: str, dtype: torch.dtype) -> bool:
    def trial() -> bool:
        square = torch.ones(2, 2, device=device_type)
        with torch.autocast(device_type, dtype=dtype):
            return torch.mm(square, square).dtype == dtype

    return _works(trial)


def _device_of(test: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The device that a test is called for: its argument `device`, or its class's."""
    try:
        given = inspect.signature(test).bind_partial(*args, **kwargs).arguments
    except TypeError:
        given = kwargs
    device = given.get("device") or given.get("devices")
    if device is None and args and hasattr(args[0], "get_primary_device"):
        device = args[0].get_primary_device()
    if device is None:
        raise SetupError(
            f"{test.__name__} needs an argument `device`, or a class given to "
            "instantiate_device_type_tests, so that its capabilities can be asked for"
        )
    return str(device[0] if isinstance(device, list | tuple) else device)


def requires(what: str, has: Callable[[Capabilities], bool]) -> Callable[[_F], _F]:
    """Decorator: the test runs where has(capabilities of its device); elsewhere it says why not."""

    def decorate(test: _F) -> _F:
        @functools.wraps(test)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            found = capabilities(_device_of(test, args, kwargs))
            if not has(found):
                raise unittest.SkipTest(f"needs {what}, which '{found.type}' does not have")
            return test(*args, **kwargs)

        return guarded  # type: ignore[return-value]

    return decorate


def requires_dtype(*dtypes: torch.dtype) -> Callable[[_F], _F]:
    names = ", ".join(str(d).removeprefix("torch.") for d in dtypes)
    return requires(f"the dtype {names}", lambda found: all(map(found.supports, dtypes)))


def requires_devices(count: int) -> Callable[[_F], _F]:
    return requires(f"{count} devices", lambda found: found.count >= count)


def requires_autocast(dtype: torch.dtype | None = None) -> Callable[[_F], _F]:
    to = f" to {str(dtype).removeprefix('torch.')}" if dtype else ""
    return requires(f"autocast{to}", lambda found: found.autocast(dtype))


requires_fp64 = requires_dtype(torch.float64)
requires_complex = requires_dtype(torch.complex64)
requires_streams = requires("streams", lambda found: found.streams)
requires_timed_events = requires("events that measure time", lambda found: found.timed_events)
requires_generator = requires("a random generator", lambda found: found.generator)
requires_pinned_memory = requires("pinned host memory", lambda found: found.pinned_memory)
requires_memory_statistics = requires("memory statistics", lambda found: found.memory_statistics)
requires_distributed = requires(
    "a backend of torch.distributed (Backend.register_backend(..., devices=[...]))",
    lambda found: found.distributed is not None,
)

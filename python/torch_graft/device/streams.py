# python/torch_graft/device/streams.py: the streams of torch.graft.
"""Streams and events are those of PyTorch for all devices."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Any

import torch

from torch_graft import _C
from torch_graft.device.indices import DeviceLike, device_index

__all__ = [
    "Event", "ExternalStream", "Stream", "StreamContext", "current_stream", "default_stream", "set_stream", "stream",
]  # fmt: skip

# Subclasses of these would break graphs of torch.compile.
Stream = torch.Stream
Event = torch.Event
current_stream = torch.accelerator.current_stream
set_stream = torch.accelerator.set_stream


class StreamContext:
    """Context manager that makes a stream current; None changes nothing."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if self.stream is not None:
            self.stream.__exit__(kind, error, trace)


def stream(stream: torch.Stream | None) -> contextlib.AbstractContextManager[Any]:
    """As StreamContext, in the form that torch.compile takes: the stream itself is the context."""
    return contextlib.nullcontext() if stream is None else stream


def default_stream(device: DeviceLike = None) -> torch.Stream:
    index = device_index(device, optional=True)
    return _stream(_C.default_stream_id(index), index)


def ExternalStream(stream_ptr: int, device: DeviceLike = None) -> torch.Stream:
    """The stream behind a handle of the vendor's library, such as cl_command_queue.

    Whoever made the handle keeps it, and destroys it only after the process's last use of this
    stream. RuntimeError if the driver takes no streams of others (stream_wrap).
    """
    index = device_index(device, optional=True)
    return _stream(_C.wrap_stream(index, stream_ptr), index)


def _stream(stream_id: int, index: int) -> torch.Stream:
    kind = torch.accelerator.current_stream(index).device_type
    return torch.Stream(stream_id=stream_id, device_index=index, device_type=kind)


def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
    """Makes the stream current that has these numbers, which torch.Stream tells."""
    set_stream(
        torch.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type)
    )

# python/torch_graft/offloading/streaming.py: which streamed weights are on the device while a call runs.
"""A weight comes when an operator first names it, or ahead of that in the order of the last call, on a stream
apart; it leaves when the next ones need its place."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from torch_graft import private_names as inside
from torch_graft.offloading.saved_weights import refuse_checkpoints, saving
from torch_graft.offloading.streamed_weight import StreamedWeight, address

_PLAIN = {torch.Tensor, torch.nn.Parameter}


class Streaming(inside.TorchDispatchMode):
    """Within call(), each operator of the thread finds the streamed weights that it names.

    Weights in use and those ahead take at most the window, twice the bytes of the largest one, or
    what one operator needs. One thread at a time, on the current stream of the device.
    """

    supports_higher_order_operators = True

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device
        self.module = torch.get_device_module(device.type)
        self.copying = self.module.Stream(device)
        self.weights: dict[int, StreamedWeight] = {}  # by address
        self.loaded: dict[int, StreamedWeight] = {}  # of these, by age
        self.current: dict[int, None] = {}  # those of the last operator that named others
        self.order: list[int] = []  # as the last call named them
        self.named: list[int] = []  # as this call did
        self.window = 0
        self.gradients = False

    def add(self, host: torch.Tensor, copy: torch.Tensor, buffer: bool) -> None:
        """copy: of host's form, used by nothing; it loses its memory."""
        one = StreamedWeight(host, copy, buffer)
        self.weights[one.address] = one
        self.order.append(one.address)

    def keep(self, hosts: Iterable[torch.Tensor]) -> None:
        """Drops the weights whose host is none of these."""
        known = {id(host) for host in hosts}
        self.weights = {key: one for key, one in self.weights.items() if id(one.host) in known}

    def find(self, tensor: torch.Tensor) -> StreamedWeight | None:
        """The streamed weight whose memory a tensor uses."""
        return self.weights.get(self._address(tensor))

    def _address(self, tensor: torch.Tensor) -> int:
        if tensor.device != self.device or tensor.layout != torch.strided or tensor.is_nested:
            return 0
        return address(tensor)

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """Around a call. What the device wrote is in the hosts afterwards, unless the call raised."""
        self.gradients = gradients = torch.is_grad_enabled()
        with torch.inference_mode(False):
            for one in self.weights.values():
                one.follow(gradients)
        self.weights = {one.address: one for one in self.weights.values()}
        self.window = 2 * max((one.bytes for one in self.weights.values()), default=0)
        self.named = []
        try:
            self._load_ahead()
            with saving(self.find, self.copying) if gradients else contextlib.nullcontext(), self:
                yield
        except BaseException:
            self._leave(False)
            raise
        self._leave(True)
        self.order = self.named

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if not _PLAIN.issuperset(
            types
        ):  # a subclass calls operators on its parts, which come here again
            return NotImplemented
        kwargs = kwargs or {}
        named = dict.fromkeys([*self._addresses(args), *self._addresses(kwargs.values())])
        others = not named.keys() <= self.current.keys()
        if others:
            self._use(named)
        try:
            result = func(*args, **kwargs)
        except torch.OutOfMemoryError:
            if not self._free(None):
                raise
            result = func(*args, **kwargs)
        if others:
            self._load_ahead()
        return result

    def _addresses(self, values: Iterable[Any]) -> Iterator[int]:
        """Of the streamed weights among an operator's arguments."""
        for value in values:
            if isinstance(value, torch.Tensor):
                key = self._address(value)
                if key in self.weights:
                    yield key
            elif isinstance(value, tuple | list):
                yield from self._addresses(value)

    def _use(self, named: dict[int, None]) -> None:
        """Has these on the device for what is queued next."""
        if self.gradients:
            refuse_checkpoints()
        stream = self.module.current_stream(self.device)
        used = stream.record_event()
        for key in self.current:
            self.loaded[key].used = used
        self.current = {key: None for key in named if key in self.loaded}
        for key in named:
            if key not in self.loaded:
                self._load(key)
            self.current[key] = None
            one = self.loaded[key]
            if one.arrived is not None:
                stream.wait_event(one.arrived)
            one.arrived = one.used = None
        self.named += named

    def _load(self, key: int) -> None:
        one = self.weights[key]
        self._free(self.window - one.bytes)
        try:
            one.load(self.copying)
        except torch.OutOfMemoryError:
            if not self._free(None):
                raise
            one.load(self.copying)
        self.loaded[key] = one

    def _load_ahead(self) -> None:
        """Loads what the last call named next, as far as the window has room."""
        room = self.window - sum(self.weights[key].bytes for key in self.current)
        for key in self._upcoming():
            room -= self.weights[key].bytes
            if room < 0:
                return
            if key not in self.loaded:
                try:
                    self._load(key)
                except torch.OutOfMemoryError:
                    return

    def _upcoming(self) -> list[int]:
        """The weights that are not current in the order in which the last call named them next."""
        place = len(self.named)
        if place > 0 and self.order[place - 1 : place] != self.named[-1:]:
            if self.named[-1] not in self.order:
                return []
            place = 1 + self.order.index(self.named[-1])
        return [key for key in dict.fromkeys(self.order[place:])
                if key in self.weights and key not in self.current]  # fmt: skip

    def _free(self, most: int | None) -> bool:
        """Empties weights that are not current, used ones first, until the others have at most so many
        bytes, or all of them; whether there was one."""
        held = sum(one.bytes for one in self.loaded.values())
        others = [key for key in self.loaded if key not in self.current]
        found = False
        for key in sorted(others, key=lambda key: self.loaded[key].used is None):
            if most is not None and held <= most:
                break
            held -= self.loaded[key].bytes
            self._empty(key, True)
            found = True
        return found

    def _empty(self, key: int, bring_home: bool) -> None:
        one = self.loaded.pop(key)
        if bring_home:
            one.bring_home()
        if one.used is not None:
            self.copying.wait_event(one.used)  # the stream of the memory uses it again in its order
        one.empty()

    def _leave(self, bring_home: bool) -> None:
        """Empties all weights at the end of a call, also those that it gave other memory."""
        self.copying.synchronize()  # hosts in pinned memory are read no more
        used = self.module.current_stream(self.device).record_event()
        self.current = {}
        self.loaded |= {key: one for key, one in self.weights.items() if key != one.address}
        for key in list(self.loaded):
            self.loaded[key].used = used
            self._empty(key, bring_home)

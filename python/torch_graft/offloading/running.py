# python/torch_graft/offloading/running.py: a call of an offloaded model, on the device and back.
"""The weights that changed go to the device, then the arguments; results and written tensors come back."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.utils.rnn import PackedSequence

from torch_graft import _C
from torch_graft import private_names as inside
from torch_graft.compiler.optimizing import Options, optimize
from torch_graft.offloading.residence import Residence, too_large
from torch_graft.offloading.streaming import Streaming
from torch_graft.offloading.twin import Twin


class Runner:
    """Runs an offloaded model's calls, one at a time. What it holds on the device is made by the
    first call, and again after an error in making it."""

    def __init__(
        self, options: Options, device: torch.device, uncounted_writes: str, resident: str | int
    ) -> None:
        self.options, self.device, self.uncounted_writes = options, device, uncounted_writes
        self.resident = resident
        self.lock = threading.RLock()
        self._forget()

    def _forget(self) -> None:
        self.weights = _C.DeviceCopies(self.uncounted_writes, self.options.training)
        self.copies: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # by id of the host
        self.used: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # of them, while following
        self.hosts: dict[int, torch.Tensor] = {}  # by id of the copy
        self.twin = Twin(self._copy_of, self._host_of)
        self.compiled: Any = None
        self.model_state: _C.ModelState | None = None
        self.twin_state: _C.ModelState | None = None
        self.residence: Residence | None = None  # None: all weights stay
        self.streaming: Streaming | None = None

    def __call__(
        self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        leaves, form = _flat((args, kwargs))
        with self.lock, self._surroundings():
            self._follow(model)
            arguments = _Arguments(leaves, self.device)  # on their way while weights are compared
            self.weights.refresh()
            given, named = inside.tree_unflatten(arguments.leaves, form)
            with self._streamed():
                result = self.compiled.forward(*given, **named)
                arguments.shipment.write_back()
                self.weights.write_back()
                if not self.twin_state.holds(self.compiled):  # type: ignore[union-attr]
                    self.twin.bring_back()
                    self.model_state = None
                found, form = _flat(result)
                known = arguments.hosts
                return inside.tree_unflatten([self._home(one, known) for one in found], form)

    @contextlib.contextmanager
    def _surroundings(self) -> Iterator[None]:
        """The device, the mode of gradients, and on the device the autocast that the CPU has."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.get_device_module(self.device.type).device(self.device))
            if not self.options.training:
                stack.enter_context(torch.no_grad())
            if torch.is_autocast_enabled("cpu"):
                dtype = torch.get_autocast_dtype("cpu")
                stack.enter_context(torch.autocast(self.device.type, dtype=dtype))
            yield

    @contextlib.contextmanager
    def _streamed(self) -> Iterator[None]:
        """Around the twin's call, if some weights stream through: it runs eagerly."""
        with contextlib.ExitStack() as stack:
            if self.streaming is not None:
                if self.options.dtype is not None:
                    stack.enter_context(torch.autocast(self.device.type, dtype=self.options.dtype))
                stack.enter_context(self.streaming.call())
            yield

    def _follow(self, model: torch.nn.Module) -> None:
        """Makes the twin what the model is now: its tensors, modules and attributes."""
        if self.model_state is not None and self.model_state.holds(model):
            return
        self.model_state = None
        training = self.options.training
        if self.compiled is None and too_large(model, self.device, self.resident, training):
            self._stream(model)
        try:
            self._build(model)
        except torch.OutOfMemoryError:
            if self.streaming is not None or self.resident == "all":
                raise
            self._stream(model)
            self._build(model)

    def _stream(self, model: torch.nn.Module) -> None:
        self.residence = Residence(model, self.device, self.resident)
        self.streaming = Streaming(self.device)

    def _build(self, model: torch.nn.Module) -> None:
        used, self.used = self.copies, {}
        try:
            state = _C.ModelState(model)
            root = self.twin.follow(model)
        except BaseException:
            self.twin.clear()
            self._forget()
            raise
        self.copies = self.used
        if len(self.copies) != len(used):
            hosts = [host for host, _ in self.copies.values()]
            self.weights.keep(hosts)
            if self.streaming is not None:
                self.streaming.keep(hosts)
        self.hosts = {id(copy): host for host, copy in self.copies.values()}
        if self.streaming is not None:
            self.compiled = root
        elif self.compiled is None:
            mode, dynamic, dtype = self.options
            self.compiled = optimize(root, mode=mode, dynamic=dynamic, dtype=dtype)
        self.twin_state = _C.ModelState(self.compiled)
        self.model_state = state

    def _copy_of(self, host: torch.Tensor) -> torch.Tensor:
        if id(host) in self.used:
            return self.used[id(host)][1]
        if id(host) not in self.copies:
            self.copies[id(host)] = host, self._made(host)
        self.used[id(host)] = self.copies[id(host)]
        return self.used[id(host)][1]

    def _made(self, host: torch.Tensor) -> torch.Tensor:
        parameter = isinstance(host, torch.nn.Parameter)
        check_weight(host)
        with torch.inference_mode(False), torch.no_grad():
            copy = torch.empty_like(host, device=self.device, requires_grad=False)
        if parameter:
            copy = torch.nn.Parameter(copy, requires_grad=False)
        # Autograd may keep a buffer while the model writes it, so it stays where there are gradients.
        stays = (
            self.residence is None
            or (not parameter and self.options.training)
            or self.residence.stays(host)
        )
        (self.weights if stays else self.streaming).add(host, copy, not parameter)  # type: ignore[union-attr]
        return copy

    def _host_of(self, copy: torch.Tensor) -> torch.Tensor:
        if id(copy) in self.hosts or copy.device != self.device:
            return self.hosts.get(id(copy), copy)
        with torch.no_grad():
            made = copy.detach().cpu()
        return torch.nn.Parameter(made) if isinstance(copy, torch.nn.Parameter) else made

    def _home(self, leaf: Any, known: dict[int, torch.Tensor]) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.device == self.device:
            if id(leaf) not in known:
                known[id(leaf)] = self.hosts[id(leaf)] if id(leaf) in self.hosts else leaf.cpu()
            return known[id(leaf)]
        return leaf.cpu() if isinstance(leaf, PackedSequence) else leaf


def _flat(value: Any) -> tuple[list[Any], Any]:
    flat: tuple[list[Any], Any] = inside.tree_flatten(
        value, is_leaf=lambda one: isinstance(one, PackedSequence)
    )
    return flat


class _Arguments:
    """The leaves of a call's arguments, tensors of the CPU exchanged for copies on the device."""

    def __init__(self, leaves: list[Any], device: torch.device) -> None:
        tensors: dict[int, torch.Tensor] = {}
        for leaf in leaves:
            if not isinstance(leaf, torch.Tensor) or leaf.device == device:
                continue
            if leaf.device.type != "cpu":
                raise ValueError(
                    f"an argument of the call is on {leaf.device}, but the model runs on {device}: "
                    f"give tensors on the CPU or on {device}"
                )
            tensors.setdefault(id(leaf), leaf)
        self.shipment = _C.Shipment(list(tensors.values()), device)
        copies = dict(zip(tensors, self.shipment.copies, strict=True))
        self.hosts = {id(copy): tensors[key] for key, copy in copies.items()}
        self.leaves = [
            leaf.to(device) if isinstance(leaf, PackedSequence) else copies.get(id(leaf), leaf)
            for leaf in leaves
        ]


def check_weight(host: torch.Tensor) -> None:
    """Raises ValueError or TypeError for a tensor of a model that cannot be offloaded."""
    if torch.nn.parameter.is_lazy(host):
        raise ValueError(
            "the model has a parameter without a size: call the model on the CPU once, then offload it"
        )
    if type(host) not in (torch.Tensor, torch.nn.Parameter) and not isinstance(
        host, torch.nn.Buffer
    ):
        raise TypeError(
            f"offloading takes plain tensors and parameters, but the model has a {type(host).__name__}"
        )
    _C.check_host(host)

# python/torch_graft/compiler/calling.py: calls of an optimized module that have to be traced.
"""Runs a call through Dynamo once, and learns what it comes down to: next time no Python runs."""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch

from torch_graft import _C
from torch_graft import private_names as inside
from torch_graft.compiler.building import Built, build_backend
from torch_graft.compiler.placing import of_graft
from torch_graft.compiler.user_kernels import registrations

_log = logging.getLogger("torch_graft.optimize")
_logged: weakref.WeakKeyDictionary[torch.nn.Module, set[str]] = weakref.WeakKeyDictionary()
_lock = threading.RLock()  # Dynamo traces one model at a time
_SLOWLY = "goes through Dynamo at each call"
_PLAIN = (int, float, str, bool, type(None), torch.dtype, torch.device)


class _Watched(threading.local):
    """The graphs that the calling thread's traced call ran: their function, inputs and outputs."""

    def __init__(self) -> None:
        self.runs: list[tuple[Built, tuple[Any, ...], Any]] | None = None
        self.began = False


_watched = _Watched()


def call(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of model.forward(*args, **kwargs), compiled where that is possible."""
    with surroundings(model._graft_options):
        observed = _C.calls_are_observed()
        if observed or not on_device(model, args, kwargs):
            why = "a mode or a tracer observes operators" if observed else "not on a Graft device"
            _record(model, f"runs eagerly: {why}")
            return model._graft_class.forward(model, *args, **kwargs)
    with _lock:
        if model._graft_compiled is None:
            object.__setattr__(model, "_graft_compiled", _Compiled(model))
        return model._graft_compiled(model, args, kwargs)


def on_device(model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the call is one of a Graft device. Raises RuntimeError where devices are mixed."""
    places: dict[torch.device, str] = {}
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        places.setdefault(tensor.device, name)
    packed = torch.nn.utils.rnn.PackedSequence  # whose sizes of batches are always on the CPU
    flat = inside.tree_flatten_with_path((args, kwargs), lambda one: isinstance(one, packed))
    for path, one in flat[0]:
        leaf = one.data if isinstance(one, packed) else one
        if isinstance(leaf, torch.Tensor) and (leaf.dim() > 0 or leaf.device.type != "cpu"):
            keyword = path[0].idx == 1
            name = f"argument {inside.key_text(path[1:])}" if keyword else f"argument {path[1].idx}"
            places.setdefault(leaf.device, name)
    if not any(of_graft(device) for device in places):
        return False
    if len(places) == 1:
        return True
    where = ", ".join(f"{name} on {device}" for device, name in places.items())
    raise RuntimeError(
        f"the model and the arguments of a call must be on one device, but are on several: {where}. "
        "Move them with .to(device)."
    )


def _record(model: Any, text: str) -> None:
    """Logs what holds for calls of a model, once for each model."""
    if not _log.isEnabledFor(logging.INFO):
        return
    known = _logged.setdefault(model, set())
    if text not in known:
        known.add(text)
        _log.info("%s %s", model._graft_class.__name__, text)


@contextlib.contextmanager
def surroundings(options: Any) -> Iterator[None]:
    """What optimize() was asked for, around a call."""
    with contextlib.ExitStack() as stack:
        if not options.training:
            stack.enter_context(torch.no_grad())
        if options.dtype is not None:
            name = inside.privateuse1_name()
            stack.enter_context(torch.autocast(name, dtype=options.dtype))
        yield


class _Compiled:
    """The model's calls through Dynamo. One thread at a time."""

    def __init__(self, model: Any) -> None:
        forward = model._graft_class.forward

        def call(*args: Any, **kwargs: Any) -> Any:
            return forward(model, *args, **kwargs)

        # Dynamo keeps what it compiled by the code object: this one is the model's own.
        call.__code__ = call.__code__.replace(co_name=f"call_{type(model).__name__}")
        self.options = model._graft_options
        self.through_dynamo = torch.compile(
            call, backend=build_backend(_watching), fullgraph=True, dynamic=self.options.dynamic
        )
        # Calls that run eagerly are known by what would be known of compiled ones.
        self.eager = _C.TracedCalls(64, not self.options.training, inside.library_impls)
        self.told: set[str] = set()
        self.registrations = registrations.epoch

    def __call__(self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if registrations.epoch != self.registrations:
            self.registrations = registrations.epoch
            model._graft_calls.clear()
            self.eager.clear()
        if self.eager.call(model, args, kwargs) is not NotImplemented:
            return self._eagerly(model, args, kwargs)
        state = _C.ModelState(model)
        tensors = _C.argument_tensors(args, kwargs)
        versions = None if tensors is None else [_version(one) for one in tensors]
        outer, _watched.runs, _watched.began = _watched.runs, [], False
        try:
            with surroundings(self.options), patient():
                result = self.through_dynamo(*args, **kwargs)
            runs = _watched.runs
        except Exception as error:
            if _watched.began:
                raise
            self._refused(error, model, args, kwargs)
            return self._eagerly(model, args, kwargs)
        finally:
            _watched.runs = outer
        if tensors is None:
            _record(model, f"{_SLOWLY}: Graft cannot compare objects in the arguments")
        elif len(runs) != 1:
            _record(model, f"{_SLOWLY}: a call runs {len(runs)} graphs")
        elif not state.holds(model):
            _record(model, f"{_SLOWLY}: a call assigns to the model's attributes")
        elif len(tensors) > 1 and [_version(one) for one in tensors] != versions:
            _record(model, f"{_SLOWLY}: a call writes to one of several arguments")
        else:
            self._learn(model, args, kwargs, tensors, runs[0], result)
        return result

    def _eagerly(self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with surroundings(self.options):
            return model._graft_class.forward(model, *args, **kwargs)

    def _refused(
        self, error: Exception, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        reason = _reason(error)
        _record(model, f"runs eagerly, because the compiler refuses it: {reason}")
        if reason not in self.told:
            self.told.add(reason)
            warnings.warn(
                f"{type(model).__name__} runs eagerly, because the compiler refuses it: {reason}",
                stacklevel=5,
            )
        if _C.argument_tensors(args, kwargs) is not None:
            self.eager.add(model, args, kwargs, list, False, [], ("constant", True))

    def _learn(
        self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
        tensors: list[torch.Tensor], run: tuple[Built, tuple[Any, ...], Any], result: Any,
    ) -> None:  # fmt: skip
        built, inputs, outputs = run
        known = _Known(model, tensors, outputs)
        sources = [known.source(one) for one in inputs]
        form = known.form(result)
        if form is None or any(source is None for source in sources):
            which = "a result" if form is None else "an input of the graph"
            _record(model, f"{_SLOWLY}: the source of {which} is unknown")
            return
        direct = built.direct(len(inputs), len(outputs))
        function = built.function if direct is None else direct
        model._graft_calls.add(model, args, kwargs, function, direct is None, sources, form)
        _log.debug("%s has %d kinds of calls that run without Python",
                   model._graft_class.__name__, len(model._graft_calls))  # fmt: skip


class _Known:
    """The tensors of a call by identity: the model's, the arguments, and what the graph returned."""

    def __init__(self, model: torch.nn.Module, tensors: list[torch.Tensor], outputs: Any) -> None:
        self.arguments = {id(one): place for place, one in enumerate(tensors)}
        self.outputs = {id(one): place for place, one in enumerate(outputs)
                        if isinstance(one, torch.Tensor)}  # fmt: skip
        self.model: dict[int, torch.Tensor] = {}
        for module in model.modules():
            attributes = (
                inside.module_parameters(module),
                inside.module_buffers(module),
                vars(module),
            )
            for one in (value for values in attributes for value in values.values()):
                if isinstance(one, torch.Tensor):
                    self.model[id(one)] = one

    def source(self, one: Any) -> tuple[str, Any] | None:
        """Where an input of the graph comes from; None where nobody checks that it stays."""
        if not isinstance(one, torch.Tensor):
            return ("constant", one) if isinstance(one, _PLAIN) else None
        in_model, in_arguments = id(one) in self.model, id(one) in self.arguments
        if in_model == in_arguments:  # a weight among the arguments is somebody else's next time
            return None
        return ("constant", one) if in_model else ("argument", self.arguments[id(one)])

    def form(self, result: Any) -> tuple[Any, ...] | None:
        """How TracedCalls.add makes the result; None where it cannot."""
        if isinstance(result, torch.Tensor):
            if id(result) in self.outputs:
                return ("result", self.outputs[id(result)])
            return self.source(result)
        if isinstance(result, _PLAIN):
            return ("constant", result)
        if type(result) in (tuple, list):
            return _all(type(result).__name__, self._forms(result))
        if type(result) is dict:
            return _all("dict", self._forms(result.values()), tuple(result))
        leaves, shape = inside.tree_flatten(result)
        if shape.is_leaf():
            return None
        return _all("made", self._forms(leaves), functools.partial(_unflattened, shape))

    def _forms(self, members: Any) -> list[Any]:
        return [self.form(member) for member in members]


def _all(word: str, members: list[Any], *before: Any) -> tuple[Any, ...] | None:
    return None if None in members else (word, *before, members)


def _unflattened(shape: Any, leaves: list[Any]) -> Any:
    return inside.tree_unflatten(leaves, shape)


def _watching(built: Built) -> Callable[..., Any]:
    def run(*inputs: Any) -> Any:
        _watched.began = True
        outputs = built.function(*inputs)
        if _watched.runs is not None:
            _watched.runs.append((built, inputs, outputs))
        return outputs

    return run


def _version(tensor: torch.Tensor) -> int:
    return -1 if tensor.is_inference() else inside.autograd_version(tensor)


@contextlib.contextmanager
def patient() -> Iterator[None]:
    """One graph per shape and number is what was asked for; recurrent modules are graphs, too, and
    hooks are a part of the model."""
    with inside.dynamo_config.patch(
        allow_rnn=True, recompile_limit=256, accumulated_recompile_limit=4096,
        specialize_float=True, specialize_int=True, skip_nnmodule_hook_guards=False,
    ):  # fmt: skip
        yield


def _reason(error: Exception) -> str:
    """The first lines of Dynamo's long messages, with the user's line where one is named."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = " ".join(lines[:2]) if lines else type(error).__name__
    at = next((line for line in reversed(lines) if line.startswith("File ")), None)
    return reason if at is None else f"{reason} ({at})"

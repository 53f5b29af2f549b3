# python/torch_graft/compiler/user_kernels.py: nodes of a graph that a kernel of the user's computes.
"""A user may register kernels for PyTorch's operators on the device. Eager calls reach them through
the dispatcher; here compiled graphs learn of them. See docs/use/compile.md."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import fx
from torch.fx.traceback import annotate
from torch.utils.checkpoint import CheckpointPolicy

from torch_graft import _C
from torch_graft import private_names as inside
from torch_graft.compiler.placing import of_graft
from torch_graft.ve import NAME as SLOT

# Operators that graphs have, and those that PyTorch's kernels for these call on the device.
_BEHIND = {
    "aten::convolution": "aten::convolution_overrideable",
    "aten::convolution_backward": "aten::convolution_backward_overrideable",
}

_CALLED = "graft_called"  # in a node's custom notes: the overload that the model called


class UserCall(NamedTuple):
    """kernel: what computes a node. called: the overload that it is for, where the node has another."""

    kernel: _C.UserKernel
    called: str | None


def kernels_of(graph: fx.Graph, device: torch.device) -> dict[fx.Node, UserCall]:
    """The nodes that a user's kernel computes for tensors on the device."""
    if not of_graft(device):
        return {}
    nodes = {node: _called(node) for node in graph.nodes if node.op == "call_function"}
    names = {name for name, _ in nodes.values() if name}
    behind = {_BEHIND[name] for name in names & _BEHIND.keys()}
    found = _C.user_kernels(sorted(names | behind), device.type == SLOT)
    calls = {node: (found.get(name) or found.get(_BEHIND.get(name, "")), called)
             for node, (name, called) in nodes.items()}  # fmt: skip
    return {node: UserCall(kernel, called) for node, (kernel, called) in calls.items() if kernel}


def _called(node: fx.Node) -> tuple[str, str | None]:
    """The overload that the model called ("aten::relu_"; "" for what is no operator), and the same as
    texts of graphs have it, where the node has another."""
    target: Any = node.target
    if target is inside.graphsafe_run_with_rng_state:
        target = node.args[0]
    if not isinstance(target, inside.OpOverload):
        return "", None
    name: str = target.name()
    noted: str | None = node.meta.get("custom", {}).get(_CALLED)
    # Other nodes beside the functional one have the note, too: casts, and gradients.
    if noted is None or _base(noted) != _base(name).removesuffix("_functional"):
        return name, None
    plain, _, overload = noted.replace("::", ".").removeprefix("aten.").partition(".")
    return noted, f"aten.{plain}.{overload or 'default'}"


def _base(name: str) -> str:
    """What the overloads of an operator and of its form in place have in common."""
    return name.partition(".")[0].removesuffix("_")


def users_among(operators: Iterable[Any], device: torch.device | None) -> list[Any]:
    """The operators of which one of the forms has a user's kernel for tensors on the device."""
    if device is None or not of_graft(device):
        return []
    bases = {_base(name) for name in registrations.of(device.type == SLOT).called}
    return [one for one in operators
            if isinstance(one, inside.OpOverload) and _base(one.name()) in bases]  # fmt: skip


def keep_results(kernels: dict[fx.Node, UserCall]) -> None:
    """Of a joint graph: the backward part takes what a user's kernel computed from the forward part,
    and does not call the kernel again."""
    for node in kernels:
        node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
        for item in node.users:
            if item.target is operator.getitem:
                item.meta["recompute"] = CheckpointPolicy.MUST_SAVE


class _Noting(inside.TorchDispatchMode):
    """PyTorch writes x.relu_() as relu and a copy, but eager calls another kernel for it: nodes are
    given the overload that the model called."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if not _replaces(func):
            return func(*args, **(kwargs or {}))
        with annotate({_CALLED: func.name()}):
            return func(*args, **(kwargs or {}))


def _replaces(operator: Any) -> bool:
    """Whether all that the operator returns is what it wrote."""
    schema = inside.operator_schema(operator)
    returned = [one.alias_info is not None and one.alias_info.is_write for one in schema.returns]
    return bool(schema.is_mutable) and all(returned)


@contextlib.contextmanager
def noting(device: torch.device | None) -> Iterator[None]:
    """While a graph is traced in it, its nodes are given what kernels_of asks for, and operators that
    have a user's kernel stay whole."""
    names, traced = _NONE if device is None else registrations.of(device.type == SLOT)
    with contextlib.ExitStack() as stack:
        if names:
            stack.enter_context(_Noting())
        for base in {name.partition(".")[0] for name in names | traced}:
            overloads = getattr(torch.ops.aten, base.removeprefix("aten::"))
            for overload in overloads.overloads():
                stack.enter_context(_whole(getattr(overloads, overload), names))
        yield


@contextlib.contextmanager
def _whole(operator: Any, names: frozenset[str]) -> Iterator[None]:
    """Where tracing asks the operator for autograd's kernel, it gets the dispatcher's, and not one
    that PyTorch composes in Python for every device, or that it remembers of the time before."""
    keys, kernels, known = inside.DispatchKey, operator.py_kernels, inside.dispatch_cache(operator)
    key, composite = keys.AutogradPrivateUse1, keys.CompositeImplicitAutograd
    known.clear()
    before = dict(kernels)
    if kernels.keys() & {keys.Autograd, composite} and key not in kernels:
        kernels[key] = _autograd_of(operator.name())
        if operator.name() in names and not inside.has_kernel_for_key(operator.name(), composite):
            kernels.pop(composite, None)
    try:
        yield
    finally:
        kernels.clear()
        kernels.update(before)
        known.clear()


def _autograd_of(name: str) -> Any:
    """The key of the kernel that eager calls reach first on a device."""
    keys, has = inside.DispatchKey, inside.has_kernel_for_key
    key = keys.AutogradPrivateUse1
    if not has(name, key) and has(name, keys.Autograd):
        return keys.Autograd
    backend = has(name, keys.PrivateUse1) or has(name, keys.CompositeExplicitAutograd)
    if not has(name, key) and not backend and has(name, keys.CompositeImplicitAutograd):
        return keys.CompositeImplicitAutograd
    return key  # its own, or PyTorch's fallback


def compile_again_after_registrations() -> None:
    """Dynamo calls the code that it is compiling only as long as the registrations stay."""
    source = inside.ImportSource("torch_graft")
    for member in ("compiler", "user_kernels", "registrations", "epoch"):
        source = inside.AttrSource(source, member)
    inside.install_guard(source.make_guard(inside.GuardBuilder.EQUALS_MATCH))


class _Operators(NamedTuple):
    """called: with a kernel for the device, which compiled graphs call. traced: with one for autograd
    on it, whose calls are what compiled graphs have."""

    called: frozenset[str]
    traced: frozenset[str]


_NONE = _Operators(frozenset(), frozenset())


class _Registrations:
    """The kernels that users registered. One thread at a time, as Dynamo compiles."""

    def __init__(self) -> None:
        self._known: dict[bool, tuple[Any, _Operators]] = {}
        self._size = len(inside.library_impls)
        self._impls = self._of_aten()
        self._epoch = 0

    def of(self, slot: bool) -> _Operators:
        """The operators that have one. A library that was opened since may have brought some."""
        now = hash(frozenset(inside.library_impls)), _C.loaded_libraries()
        known, found = self._known.get(slot, (None, _NONE))
        if known != now:
            found = _Operators(
                frozenset(_C.all_user_kernels(slot)), frozenset(_C.user_autograd_kernels(slot))
            )
            self._known[slot] = now, found
        return found

    @property
    def epoch(self) -> int:
        """Another number each time that torch.library's kernels for PyTorch's operators have changed.
        Graphs are compiled again then: Dynamo asks at each call, so this compares two sizes."""
        size = len(inside.library_impls)
        if size != self._size:
            self._size = size
            impls = self._of_aten()
            self._epoch += impls != self._impls
            self._impls = impls
        return self._epoch

    @staticmethod
    def _of_aten() -> frozenset[str]:
        return frozenset(one for one in inside.library_impls if one.startswith("aten/"))


registrations = _Registrations()

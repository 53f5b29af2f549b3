# python/torch_graft/compiler/size_numbers.py: floating-point numbers that follow from sizes.
"""A graph of symbolic sizes multiplies, say, by 2 / n. The text form has whole numbers alone as
symbols, so such a number becomes a tensor of no dimensions that the graph computes, in float64."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from torch_graft import private_names as inside
from torch_graft.compiler.writer import device_of

# In other dtypes a number keeps more digits than a tensor of the operand's dtype would.
_EXACT = (torch.float32, torch.float64)
_aten = torch.ops.aten
# What PyTorch traces of numbers -> the operator on tensors.
_TWINS: dict[Any, Any] = {
    operator.add: _aten.add.Tensor,
    operator.sub: _aten.sub.Tensor,
    operator.mul: _aten.mul.Tensor,
    operator.truediv: _aten.div.Tensor,
    operator.pow: _aten.pow.Tensor_Tensor,
    operator.neg: _aten.neg.default,
    torch.sym_sqrt: _aten.sqrt.default,
}


def compute_on_device(module: fx.GraphModule) -> None:
    """Gives operators tensors in place of such numbers, where the result stays the same. What
    cannot be given one keeps its number, and the writer refuses it."""
    numbers = [node for node in module.graph.nodes
               if node.op == "call_function" and _follows(node)]  # fmt: skip
    if not numbers:
        return
    values = (node.meta.get("val") for node in module.graph.nodes)
    mode = next((one.fake_mode for one in values if isinstance(one, inside.FakeTensor)), None)
    if mode is None:
        return
    made = _Tensors(module.graph, device_of(module.graph), mode)
    for node in numbers:
        for user in list(node.users):
            _give(user, node, made)
    for node in reversed(numbers):
        if not node.users:
            module.graph.erase_node(node)
    module.recompile()


def _follows(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.SymFloat)


class _Tensors:
    """The tensor of each number, made at its first use, behind the number."""

    def __init__(self, graph: fx.Graph, device: torch.device, mode: Any) -> None:
        self.graph, self.device, self.mode = graph, device, mode
        self.known: dict[Any, fx.Node] = {}

    def of(self, number: fx.Node) -> fx.Node | None:
        """None where the number is computed by something that tensors have no twin of."""
        return self._of(number, [number])

    def _of(self, number: Any, last: list[fx.Node]) -> fx.Node | None:
        """last: the node behind which the next one goes."""
        if number not in self.known:
            node = self._made(number, last)
            if node is None:
                return None
            self.known[number] = node
        return self.known[number]

    def _made(self, number: Any, last: list[fx.Node]) -> fx.Node | None:
        if not isinstance(number, fx.Node) or not _follows(number):
            return self._filled(number, last)
        if number.target is torch.sym_float:
            return self._filled(number.args[0], last)
        if number.target not in _TWINS:
            return None
        parts = [self._of(one, last) for one in number.args]
        return None if None in parts else self._add(_TWINS[number.target], tuple(parts), {}, last)

    def _filled(self, value: Any, last: list[fx.Node]) -> fx.Node:
        named = {"dtype": torch.float64, "device": self.device}
        return self._add(_aten.full.default, ([], value), named, last)

    def _add(
        self, target: Any, given: tuple[Any, ...], named: dict[str, Any], last: list[fx.Node]
    ) -> fx.Node:
        with self.graph.inserting_after(last[0]):
            node = self.graph.call_function(target, given, named)
        node.meta["val"] = self.result(target, given, named)
        last[0] = node
        return node

    def result(self, target: Any, given: tuple[Any, ...], named: dict[str, Any]) -> torch.Tensor:
        """What the operator makes of fake tensors."""
        fake = fx.node.map_arg(given, lambda one: one.meta["val"])
        with self.mode:
            made: torch.Tensor = target(*fake, **named)
        return made


def _give(user: fx.Node, number: fx.Node, made: _Tensors) -> None:
    before = user.meta.get("val")
    if user.target is _aten.scalar_tensor.default:
        _cast(user, number, made)
        return
    if not isinstance(before, torch.Tensor) or user.kwargs or number not in user.args:
        return
    operands = [one.meta["val"] for one in user.all_input_nodes if one is not number]
    tensors = [one for one in operands if isinstance(one, torch.Tensor)]
    if len(tensors) != len(operands) or any(one.dtype not in _EXACT for one in tensors):
        return
    target = _taking_tensor(user, user.args.index(number))
    tensor = made.of(number) if target is not None else None
    if tensor is None:
        return
    given = tuple(tensor if one is number else one for one in user.args)
    after = made.result(target, given, {})
    same = after.dtype, after.size(), after.stride()
    if same == (before.dtype, before.size(), before.stride()):
        user.target, user.args = target, given


def _cast(user: fx.Node, number: fx.Node, made: _Tensors) -> None:
    """A tensor of the number is the number's tensor in another dtype."""
    wanted = user.meta["val"]
    tensor = made.of(number) if wanted.device == made.device else None
    if tensor is not None:
        user.target, user.args = inside.to_copy.default, (tensor,)
        user.kwargs = {"dtype": wanted.dtype}


def _taking_tensor(user: fx.Node, position: int) -> Any:
    """The overload that takes a tensor there and is else the same, or None."""
    if not isinstance(user.target, inside.OpOverload):
        return None
    own = _types(user.target)
    if position >= len(own):
        return None
    wanted = [*own[:position], "Tensor", *own[position + 1 :]]
    packet = user.target.overloadpacket
    for name in packet.overloads():
        overload = getattr(packet, name)
        if _types(overload) == wanted:
            return overload
    return None


def _types(overload: Any) -> list[str]:
    return [str(one.type) for one in inside.operator_schema(overload).arguments]

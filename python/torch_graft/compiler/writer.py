# python/torch_graft/compiler/writer.py: an FX graph as text, "graft-graph 1" of docs/develop/compiler-ir.md.
"""Writes one graph of AOTAutograd with its fake tensors; raises Refusal for what has no text."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import torch
from torch import fx

from torch_graft import private_names as inside
from torch_graft.compiler.constants import Constants
from torch_graft.compiler.literals import literal_text, quoted, type_text
from torch_graft.compiler.marks import Marks, marks_of
from torch_graft.compiler.refusal import Refusal, refuse
from torch_graft.compiler.sizes import Inexpressible, Sizes
from torch_graft.compiler.user_kernels import UserCall, kernels_of
from torch_graft.compiler.user_line import user_line, user_module

_NUMBERS = (int, torch.SymInt)


class GraphText(NamedTuple):
    """A graph's text, the tensors that its external constants name, and the device it runs on."""

    text: str
    externals: dict[str, torch.Tensor]
    device: torch.device


class Boundary(NamedTuple):
    """What AOTAutograd knows of a graph's ends: by placeholder its kind, by output its marks.

    reads_numbers: whether 0-dim tensors in host memory are read at the call. A backward graph has
    them from its forward graph, which may have left them on the device.
    """

    kinds: dict[str, str]
    outputs: list[str]  # "", "saved" or "mutation %x"
    reads_numbers: bool


def write(module: fx.GraphModule, name: str, boundary: Boundary) -> GraphText:
    """The text of a graph. Raises Refusal, naming node and source line."""
    writer = _Writer(module, boundary)
    for node in module.graph.nodes:
        try:
            writer.add(node)
        except Inexpressible as error:
            raise refuse(node, str(error)) from None
    return GraphText(writer.text(name), writer.constants.externals, writer.device)


class _Writer:
    def __init__(self, module: fx.GraphModule, boundary: Boundary) -> None:
        self.module = module
        self.boundary = boundary
        self.sizes = Sizes()
        self.constants = Constants(self.sizes)
        self.device = device_of(module.graph)
        self.kernels = kernels_of(module.graph, self.device)
        self.names: dict[fx.Node, str] = {}  # of the value of a node with one result
        self.generators: dict[fx.Node, int] = {}  # inputs: which of the call's generators
        self.several: dict[fx.Node, list[str | None]] = {}  # of a node with a list of results
        self.taken = {node.name for node in module.graph.nodes}
        self.inputs: list[tuple[str, str, str]] = []  # name, type, what follows
        self.lines: list[str] = []
        self.outputs: list[str] = []
        self.root: dict[str, str] = {}
        self.memory: dict[int, str] = {}  # of an input's storage
        self.mutated: set[str] = set()
        self.origins: dict[str, str] = {}  # of symbols
        self.integers = 0

    def add(self, node: fx.Node) -> None:
        if node.op == "placeholder":
            self.placeholder(node)
        elif node.op == "get_attr":
            self.attribute(node)
        elif node.op == "call_function":
            self.call(node)
        elif node.op == "output":
            self.output(node)
        else:
            raise refuse(node, f"AOTAutograd's graphs have no {node.op}")

    def placeholder(self, node: fx.Node) -> None:
        value = node.meta.get("val")
        if isinstance(value, _NUMBERS) and not isinstance(value, bool):
            if isinstance(value, torch.SymInt) and value.node.expr.is_Symbol:
                self.origins.setdefault(self.sizes.text(value), f"integer {self.integers}")
            self.integers += 1
            return
        if isinstance(value, torch.Generator):
            self.generators[node] = len(self.generators)
            return
        if not isinstance(value, torch.Tensor):
            raise refuse(node, f"an input of type {type(value).__name__}, expected a tensor")
        kind = self.boundary.kinds.get(node.name, "activation")
        if value.device != self.device and self.boundary.reads_numbers:
            kind = "scalar"
        self.define(node, node.name, value)
        sharing = self.memory.setdefault(inside.storage_address(value.untyped_storage()), node.name)
        tail = ""
        if sharing != node.name:
            self.root[node.name] = sharing
            tail = f" alias %{sharing}"
        self.inputs.append((node.name, self.type(node, value), f"{kind}|{tail}"))
        self.names[node] = node.name

    def attribute(self, node: fx.Node) -> None:
        value = self.module
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if isinstance(value, fx.GraphModule):
            return  # of a higher order operator, which is refused itself
        if not isinstance(value, torch.Tensor):
            raise refuse(node, f"a constant of type {type(value).__name__}")
        self.check(node, value)
        self.constants.add(node.name, value)
        self.root[node.name] = node.name
        self.names[node] = node.name

    def call(self, node: fx.Node) -> None:
        value = node.meta.get("val")
        if isinstance(value, _NUMBERS) and not isinstance(value, bool):
            return  # written as an expression where it is used
        if isinstance(value, torch.SymFloat):
            return  # what takes it is refused
        if node.target is operator.getitem:
            self.item(node)
            return
        target, given, named, note = node.target, node.args, dict(node.kwargs), ""
        if target is inside.graphsafe_run_with_rng_state:
            target, given = given[0], given[1:]
            note = f' note generator="{self.generators[named.pop("rng_state")]}"'
            marks = Marks([], None, random=True, opaque=False)
        elif isinstance(target, inside.OpOverload):
            marks = marks_of(node)
        else:
            raise refuse(node, "a higher order operator or a Python function")
        if (users := self.kernels.get(node)) is not None and marks.views is None:
            marks = marks._replace(opaque=True)
            note += self.users_note(users)
        results = self.results(node, value, marks)
        arguments = [self.argument(node, one) for one in given]
        arguments += [f"{key}={self.argument(node, one)}" for key, one in named.items()]
        line = f"node {results}{' ' if results else ''}= {target}({', '.join(arguments)})"
        self.lines.append(line + self.tail(node, marks) + note)

    def users_note(self, users: UserCall) -> str:
        called = "" if users.called is None else f" note called={quoted(users.called)}"
        slot = ' note slot="ve"' * users.kernel.slots
        return f" note kernel={quoted(users.kernel.place)}{called}{slot}"

    def results(self, node: fx.Node, value: Any, marks: Marks) -> str:
        base = self.root[self.names[marks.views]] if marks.views else None
        if isinstance(value, torch.Tensor):
            self.define(node, node.name, value, base)
            self.names[node] = node.name
            return f"%{node.name}: {self.type(node, value)}"
        if value is None:
            return ""
        if not isinstance(value, list | tuple):
            raise refuse(node, f"a result of type {type(value).__name__}")
        taken = {user.args[1]: user.name for user in reversed(node.users)
                 if user.target is operator.getitem}  # fmt: skip
        texts, names = [], []
        for position, one in enumerate(value):
            name = taken.get(position) or self.fresh(f"{node.name}_{position}")
            names.append(name if isinstance(one, torch.Tensor) else None)
            if isinstance(one, torch.Tensor):
                self.define(node, name, one, base)
                texts.append(f"%{name}: {self.type(node, one)}")
            elif one is None or isinstance(one, _NUMBERS):
                texts.append("none")  # a number is written where it is used
            else:
                raise refuse(node, f"a result of type {type(one).__name__}")
        self.several[node] = names
        return ", ".join(texts)

    def fresh(self, wished: str) -> str:
        while wished in self.taken:
            wished += "_"
        self.taken.add(wished)
        return wished

    def item(self, node: fx.Node) -> None:
        source, position = node.args
        names = self.several.get(source) if isinstance(source, fx.Node) else None
        if names is None or not isinstance(position, int):
            raise refuse(node, "an item of a value that is no list of results")
        name = names[position]
        if name is not None:
            self.names[node] = name

    def define(
        self, node: fx.Node, name: str, value: torch.Tensor, base: str | None = None
    ) -> None:
        self.check(node, value)
        self.place(node, value)
        self.root[name] = base or name
        for dim, size in enumerate(value.size()):
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                self.origin(size, f"%{name}[{dim}]", node.op == "placeholder")

    def origin(self, size: torch.SymInt, place: str, given: bool) -> None:
        """Sizes of inputs tell a symbol before integers do; results only what depends on data."""
        symbol = self.sizes.text(size)
        known = self.origins.get(symbol, "integer")
        if given and known.startswith("integer"):
            self.origins[symbol] = place
        elif size.node.shape_env.is_unbacked_symint(size.node.expr):
            self.origins.setdefault(symbol, place)

    def check(self, node: fx.Node, value: torch.Tensor) -> None:
        plain = inside.FakeTensor, torch.Tensor, torch.nn.Parameter, torch.nn.Buffer
        if type(value) not in plain:
            raise refuse(node, f"a tensor subclass, {type(value).__name__}")
        if value.layout != torch.strided:
            raise refuse(node, f"a tensor of layout {value.layout}")
        if value.is_quantized or value.is_conj() or value.is_neg():
            raise refuse(node, "a quantized, lazily conjugated or lazily negated tensor")

    def place(self, node: fx.Node, value: torch.Tensor) -> None:
        """Beside the graph's device, host memory may hold numbers and nothing else has a place."""
        number = value.device.type == "cpu" and value.dim() == 0
        if value.device != self.device and not number:
            raise refuse(node, f"a tensor on {value.device} beside those on {self.device}")

    def type(self, node: fx.Node, value: torch.Tensor) -> str:
        return type_text(value, self.sizes)

    def argument(self, node: fx.Node, value: Any) -> str:
        if isinstance(value, fx.Node):
            given = value.meta.get("val")
            if value in self.names:
                return f"%{self.names[value]}"
            if isinstance(given, _NUMBERS):
                return literal_text(given, self.sizes)
            if given is None:
                return "none"
            raise Inexpressible(f"%{value.name}, a {type(given).__name__}, as an argument")
        if isinstance(value, list | tuple):
            return f"[{', '.join(self.argument(node, one) for one in value)}]"
        return literal_text(value, self.sizes)

    def tail(self, node: fx.Node, marks: Marks) -> str:
        text = ""
        if marks.writes:
            names = [self.names[one] for one in marks.writes]
            self.mutated |= {self.root[name] for name in names}
            text += " writes " + ", ".join(f"%{name}" for name in names)
        if marks.views is not None:
            text += f" views %{self.names[marks.views]}"
        text += " random" * marks.random + " opaque" * marks.opaque
        line, module = user_line(node), user_module(node)
        text += f" at {quoted(line)}" if line else ""
        return text + (f" note module={quoted(module)}" if module else "")

    def output(self, node: fx.Node) -> None:
        given = node.args[0]
        returned: dict[str, str] = {}
        for position, one in enumerate(given if isinstance(given, list | tuple) else (given,)):
            text = self.argument(node, one)
            name = text.removeprefix("%")
            marks = self.boundary.outputs[position]
            if text.startswith("%") and marks != "saved":
                self.stays_on_device(one)
            alias = ""
            if text.startswith("%"):
                root = self.root[name]
                shared = root if root in self.names_of_inputs() else returned.get(root)
                alias = f" alias %{shared}" if shared else ""
                returned.setdefault(root, name)
            if marks == "saved":
                self.outputs.append(f"output {text} saved{alias}")
            else:
                self.outputs.append(f"output {text}{alias}{' ' + marks if marks else ''}")

    def stays_on_device(self, node: fx.Node) -> None:
        value = node.meta["val"]
        if value.device != self.device and node.op != "placeholder":
            raise refuse(node, f"a result on {value.device} of a graph on {self.device}")

    def names_of_inputs(self) -> set[str]:
        return {name for name, _, _ in self.inputs}

    def text(self, name: str) -> str:
        lines = ["graft-graph 1", f"graph {name}"]
        for symbol, facts in self.sizes.symbols.items():
            if symbol not in self.origins:
                raise Refusal(f"the graph compiler does not take graph {name}: no size or integer "
                              f"of the call determines {symbol}")  # fmt: skip
            high = "inf" if facts.high is None else facts.high
            lines.append(f"symbol {symbol} range {facts.low}..{high} hint {facts.hint} "
                         f"from {self.origins[symbol]}")  # fmt: skip
        for given, type_, rest in self.inputs:
            kind, alias = rest.split("|")
            mutated = self.root[given] in self.mutated
            if mutated and kind == "scalar":
                raise Refusal(f"the graph compiler does not take graph {name}: it writes %{given}, "
                              "a number in host memory")  # fmt: skip
            lines.append(f"input %{given}: {type_} {kind}{' mutated' * mutated}{alias}")
        return "\n".join([*lines, *self.constants.lines, *self.lines, *self.outputs, "end", ""])


def device_of(graph: fx.Graph) -> torch.device:
    """That of the first tensor that is more than a number in host memory; the host without one."""
    for node in graph.nodes:
        value = node.meta.get("val")
        for one in value if isinstance(value, list | tuple) else (value,):
            if isinstance(one, torch.Tensor) and (one.device.type != "cpu" or one.dim() > 0):
                return one.device
    return torch.device("cpu")

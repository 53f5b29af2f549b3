# conformance/torch_conformance/fuzz/calls.py: what is fuzzed, and how one call of it is drawn.
"""A subject is an ATen overload with a kernel for the device, or an entry of op_db.

A call is drawn from (seed, subject, number) alone, so that these three name it for ever.
"""

from __future__ import annotations

import fnmatch
import json
import keyword
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from torch_conformance import private_names as inside
from torch_conformance.cells import cases
from torch_conformance.cells.outcome import NotApplicable
from torch_conformance.fuzz import entries
from torch_conformance.fuzz.values import Values

SUITE = "fuzz"
DRAWS = 6  # attempts for a call that the CPU can run in its time and memory
# Arguments of these types cannot be drawn: packed weights, process groups, storages, names.
STRANGE = ("__torch__", "Storage", "Stream", "Dimname", "AnyClass", "QScheme", "List[List[")


class Argument(NamedTuple):
    name: str
    text: str
    keyword: bool

    @property
    def variable(self) -> str:
        return f"{self.name}_" if keyword.iskeyword(self.name) else self.name


class Call(NamedTuple):
    """A call as text; travels between processes as JSON."""

    target: str
    arguments: list[Argument]

    def __str__(self) -> str:
        words = [f"{a.variable} = {a.text}" for a in self.arguments]
        given = [f"{a.name}={a.variable}" if a.keyword and not keyword.iskeyword(a.name)
                 else f"**{{{a.name!r}: {a.variable}}}" if a.keyword else a.variable
                 for a in self.arguments]  # fmt: skip
        return "; ".join([*words, f"{self.target}({', '.join(given)})"])

    def packed(self) -> list[Any]:
        return [self.target, [list(a) for a in self.arguments]]

    @staticmethod
    def unpacked(value: list[Any]) -> Call:
        return Call(value[0], [Argument(*a) for a in value[1]])


class Subject:
    """One thing that is called; draw() needs the recorded templates of `corpus`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def draw(self, chance: random.Random, corpus: str) -> Call:
        raise NotImplementedError

    @property
    def draws_numbers(self) -> bool:
        """Whether its values are random; False where that is only seen in a run."""
        return False


class Overload(Subject):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        qualified, _, overload = name.partition(".")
        space, _, root = qualified.partition("::")
        overload = overload or "default"
        packet = f"torch.ops.{space}.{root}"
        plain = not keyword.iskeyword(overload)
        self.target = f"{packet}.{overload}" if plain else f"getattr({packet}, {overload!r})"
        self.function = getattr(getattr(getattr(torch.ops, space), root), overload)
        self.schema = inside.operator_schema(self.function)

    @property
    def draws_numbers(self) -> bool:
        return torch.Tag.nondeterministic_seeded in self.function.tags

    def draw(self, chance: random.Random, corpus: str) -> Call:
        values = Values(chance)
        known = entries.templates(corpus, self.name)
        template = chance.choice(known) if known and values.happens(0.6) else {}
        wanted = list(self.schema.arguments)
        inputs = [a.name for a in wanted if not a.is_out]
        wrong = set(chance.sample(inputs, min(chance.choice([0, 1, 1, 1, 1, 2]), len(inputs))))
        drawn: list[Argument] = []
        for a in wanted:
            text = self._text(a, values, template, a.name in wrong)
            if text is None:
                continue
            drawn.append(Argument(a.name, text, a.kwarg_only))
            if str(a.real_type) == "Tensor" and text != "None" and not a.is_out:
                values.tensors.append(drawn[-1].variable)
        return Call(self.target, drawn)

    def _text(self, a: Any, values: Values, template: dict[str, str], wrong: bool) -> str | None:
        """The argument's expression; None leaves it at its default."""
        kind = str(a.real_type)
        known = template.get(a.name)
        if a.is_out:
            return values.out(_dtype_of(template))
        if known is not None:
            if not wrong:
                return known
            if kind in ("Tensor", "Optional[Tensor]") and known != "None" and values.happens(0.6):
                return values.changed(known)
        elif a.has_default_value() and not wrong and values.happens(0.6 if not template else 1):
            if a.kwarg_only:
                return None
            return entries.expression(a.default_value) or "None"
        return values.value(kind, a.name, a.N, wrong)


def _dtype_of(template: dict[str, str]) -> str | None:
    """The dtype of a template's first tensor."""
    for text in template.values():
        if text.startswith("made('"):
            return text.split("'")[1]
    return None


class Entry(Subject):
    def draw(self, chance: random.Random, corpus: str) -> Call:
        values = Values(chance)
        known = entries.dtypes(self.name)
        likely = [d for d in ("float32", "int64", "complex64", "bool", "bfloat16") if d in known]
        # Samples take long to make, so a subject keeps to two dtypes.
        steady = random.Random(self.name)
        dtype = chance.choice([likely[0] if likely else known[0], steady.choice(known)])
        try:
            samples = entries.inputs(self.name, dtype)
        except Exception as error:
            raise NotApplicable(f"upstream's samples cannot be made: {error}") from error
        if not samples:
            raise NotApplicable(f"upstream has no sample in {dtype}")
        number = chance.randrange(len(samples))
        positional, named = samples[number]
        places: list[Any] = [*range(len(positional)), *named]
        wrong = set(chance.sample(places, min(chance.choice([0, 1, 1, 1, 1, 2]), len(places))))
        drawn = []
        for place in places:
            by_name = isinstance(place, str)
            value = named[place] if by_name else positional[place]
            where = f"given({self.name!r}, {dtype!r}, {number}, {place!r})"
            simple = entries.expression(value) if not isinstance(value, torch.Tensor) else None
            text = where if simple is None or "made" in simple else simple
            if place in wrong:
                text = _wrong(value, text, str(place) if by_name else "", values)
            drawn.append(Argument(place if by_name else f"x{place}", text, by_name))
            if isinstance(value, torch.Tensor):
                values.tensors.append(drawn[-1].variable)
        return Call(f"entry({self.name!r})", drawn)


def _wrong(value: Any, text: str, name: str, values: Values) -> str:
    """A hostile value in the place of one of a sample."""
    if values.happens(0.08):
        return str(values.one_of("None", "''", "[]", "-1", "nan", "torch.empty(0, device=d)"))
    if isinstance(value, torch.Tensor):
        return (
            values.changed(text)
            if values.happens(0.6)
            else values.value("Tensor", name, None, True)
        )
    if isinstance(value, bool):
        return repr(not value)
    kinds = {int: "int", float: "float", str: "str", complex: "number", torch.dtype: "ScalarType"}
    kind = kinds.get(type(value))
    if type(value) in (list, tuple, torch.Size) and value:
        first = kinds.get(type(value[0]), "Tensor" if isinstance(value[0], torch.Tensor) else "int")
        return values.value(f"List[{first}]", name, len(value), True)
    return values.value(kind or "number", name, None, True)


def registered(key: str, spaces: tuple[str, ...]) -> list[str]:
    """The overloads with a kernel of their own for a dispatch key, whose arguments can be drawn."""
    names = inside.all_operator_names()
    has = inside.has_kernel_for_key
    found = [n for n in names if n.startswith(spaces) and has(n, key)]
    return sorted(name for name in found if _drawable(name))


def _drawable(name: str) -> bool:
    qualified, _, overload = name.partition(".")
    schema = inside.schema_of(qualified, overload)
    kinds = [str(a.real_type) for a in schema.arguments]
    return bool(kinds) and not any(word in kind for kind in kinds for word in STRANGE)


def subjects(device: str, patterns: list[str] | None) -> list[str]:
    """The names of what a run fuzzes: overloads as "aten::add.Tensor", entries as "add"."""
    kind = device.split(":")[0]
    key = inside.dispatch_key_for_device(kind)
    spaces = ("aten::",) if kind == "cpu" else ("aten::", f"{kind}::")
    every = registered(key, spaces) + [e for e in cases.entries("op") if entries.dtypes(e)]
    if patterns is None:
        return every
    return [name for name in every if any(fnmatch.fnmatchcase(name, p) for p in patterns)]


def subject(name: str) -> Subject:
    return Overload(name) if "::" in name else Entry(name)


class Plan(NamedTuple):
    """What one cell runs; its text stands in the cell's aspect."""

    corpus: str
    seed: int
    first: int
    last: int  # the number behind the last call
    at_home: bool = True  # False: the CPU died of the call, the device must not
    attempt: int = 0  # attempts before this one are passed over
    seconds: float = 40.0  # of a call on the device; after that it hangs
    explicit: list[Any] | None = None  # a packed call, instead of drawn ones

    def text(self) -> str:
        return json.dumps(self)

    @staticmethod
    def of(text: str) -> Plan:
        return Plan(*json.loads(text))

    def draws(self, what: Subject, number: int) -> Iterator[Call]:
        """The attempts at one call, in order."""
        if self.explicit is not None:
            yield Call.unpacked(self.explicit)
            return
        chance = random.Random(f"{self.seed}/{what.name}/{number}")
        for _ in range(DRAWS):
            yield what.draw(chance, self.corpus)

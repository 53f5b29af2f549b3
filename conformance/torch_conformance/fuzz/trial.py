# conformance/torch_conformance/fuzz/trial.py: runs one call at one place.
from __future__ import annotations

from typing import Any, NamedTuple

import torch

from torch_conformance import private_names as inside
from torch_conformance.fuzz.calls import Call
from torch_conformance.fuzz.values import environment
from torch_conformance.suites.sample_loop import seed
from torch_conformance.tensors import compare

HOME = torch.device("cpu")


class Elsewhere(Exception):
    """No tensor of the call lies on the device: the call says nothing of it."""


class Result(NamedTuple):
    """What a call gave, and its arguments afterwards."""

    value: Any = None
    arguments: tuple[Any, ...] = ()
    error: Exception | None = None
    built: bool = True

    def compared(self) -> list[Any]:
        """The result, the tensors among the arguments, and what these are views of."""
        given = list(compare.leaves(self.arguments))
        return [
            self.value,
            given,
            [inside.view_base(t) for t in given if inside.view_base(t) is not None],
        ]


def perform(call: Call, device: torch.device, around: Any, change: Any = lambda v: v) -> Result:
    """Runs a call; exceptions are part of the result."""
    names = environment(device)
    seed()
    try:
        for a in call.arguments:
            names[a.variable] = change(eval(a.text, names))
        target = eval(call.target, names)
    except Exception as error:
        return Result(error=error, built=False)
    tensors = [t for a in call.arguments for t in compare.leaves(names[a.variable])]
    if tensors and all(t.device.type != device.type for t in tensors):
        return Result(error=Elsewhere("no tensor of the device"), built=False)
    positional = [names[a.variable] for a in call.arguments if not a.keyword]
    named = {a.name: names[a.variable] for a in call.arguments if a.keyword}
    given = (*positional, *named.values())
    try:
        with around:
            return Result(target(*positional, **named), given)
    except Exception as error:
        return Result(None, given, error)

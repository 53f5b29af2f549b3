# python/torch_graft/deployment/result_form.py: how a result is put together of a graph's outputs.
"""As JSON: {"output": 0}, {"constant": 3}, {"list": [...]}, {"tuple": [...]} or {"dict": {...}}."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from torch_graft import private_names as inside
from torch_graft.deployment.traced_call import NotDeployable

_PLAIN = (int, float, str, bool, type(None))


def form_of(result: Any, outputs: Sequence[torch.Tensor]) -> tuple[str, list[str]]:
    """The form as text, and a name for each output: its path in the result.

    Mappings become dicts; objects of other classes that PyTorch's pytree opens become lists.
    """
    places = {id(tensor): place for place, tensor in enumerate(outputs)}
    names = [f"output{place}" for place in range(len(outputs))]

    def form(value: Any, path: str) -> Any:
        if isinstance(value, torch.Tensor):
            return {"output": output(value, path)}
        if isinstance(value, _PLAIN):
            return {"constant": value}
        if isinstance(value, Mapping):
            return {"dict": {str(key): form(one, join(path, key)) for key, one in value.items()}}
        if isinstance(value, list | tuple):
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [form(one, join(path, i)) for i, one in enumerate(value)]}
        leaves, shape = inside.tree_flatten(value)
        if shape.is_leaf():
            raise NotDeployable(f"the result has a {type(value).__name__}, expected tensors")
        return {"list": [form(one, join(path, i)) for i, one in enumerate(leaves)]}

    def output(value: torch.Tensor, path: str) -> int:
        if id(value) not in places:
            raise NotDeployable(
                f"the result {path or 'of the call'} is an argument or a weight: return a copy of it"
            )
        names[places[id(value)]] = path or "result"
        return places[id(value)]

    def join(path: str, key: Any) -> str:
        return f"{path}.{key}" if path else str(key)

    return json.dumps(form(result, "")), names


def result_of(form: str, outputs: Sequence[torch.Tensor]) -> Any:
    """The result of a call whose graph gave these outputs."""

    def made(value: Any) -> Any:
        [(kind, given)] = value.items()
        if kind == "output":
            return outputs[given]
        if kind == "constant":
            return given
        if kind == "dict":
            return {key: made(one) for key, one in given.items()}
        members = [made(one) for one in given]
        return tuple(members) if kind == "tuple" else members

    return made(json.loads(form))


def argument_names(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], parameters: Iterator[str]
) -> list[str]:
    """A name for each tensor among the arguments: the parameter's, with a path inside of it."""
    named = [*zip(parameters, args, strict=False), *kwargs.items()]
    names = []
    for name, value in named:
        for path, leaf in inside.tree_flatten_with_path(value)[0]:
            if isinstance(leaf, torch.Tensor):
                names.append(f"{name}{inside.key_text(path)}")
    return names

# python/torch_graft/deployment/writing.py: deploy(), a model as one file that needs no Python.
"""See docs/use/deploy/README.md. Nothing of Dynamo is imported before the first call."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from torch_graft import _C
from torch_graft.compiler.calling import on_device, surroundings
from torch_graft.compiler.optimizing import Optimized, Options, module_of
from torch_graft.compiler.placing import carrier
from torch_graft.deployment.preparing import check_processors, prepare
from torch_graft.deployment.result_form import argument_names, form_of
from torch_graft.deployment.traced_call import NotDeployable, TracedCall, trace

_Path = str | os.PathLike[str]


def deploy(
    model: torch.nn.Module | torch.export.ExportedProgram,
    example_inputs: Sequence[Any] | Mapping[str, Any],
    path: str | os.PathLike[str], *, dynamic: bool | None = None, licence: str = "",
    weights: _Path | Sequence[_Path] | None = None, processors: Sequence[str] = (),
) -> None:  # fmt: skip
    """Writes the model as one file, which runs without Python: include/graft/deploy.h, graft-infer,
    torch_graft.load(). Inference only.

    model: on a Graft device, optimized or not, or a program of torch.export, whose dynamic sizes
    stay symbols; what optimize() was given (dtype, dynamic) holds here, too. example_inputs: arguments of a call, by position or by name; the call runs once.
    Inputs become row-major. dynamic: sizes of inputs are symbols. licence: of the model, kept in
    the file. weights: one or several files in the format safetensors, in the folder of path or below
    it; tensors that they have stay there, and the model's file refers to them. A single one that does
    not exist is written, with all weights. processors: levels of x86-64, such as "x86-64-v3", whose
    kernels the file has; none: those of this processor alone. Raises NotDeployable, a RuntimeError
    that names operators and lines, for what needs PyTorch at each call; nothing is written then.
    Raises TypeError, ValueError and FileNotFoundError for arguments, RuntimeError for files of other
    weights, and where kernels for a processor do not compile; the file is without those then.
    """
    beside = _beside(os.fspath(path), weights)
    options = _options(model, dynamic)
    model = module_of(model)
    args, kwargs = arguments_of(model, (), example_inputs)
    forward = model._graft_class.forward if isinstance(model, Optimized) else type(model).forward
    if not on_device(model, args, kwargs):
        raise ValueError(
            f"deploy() got a {type(model).__name__} that is not on a Graft device: move model and "
            'inputs with .to("graft")'
        )
    with surroundings(options):
        call = trace(model, forward.__get__(model), args, kwargs, options.dynamic)
    check_operators(model, call)
    index = carrier(call.written.device).index or 0
    check_processors(processors, index)
    write(call, names_of(forward, args, kwargs), os.fspath(path), licence, beside)
    prepare(os.fspath(path), index, processors)


def _beside(path: str, weights: _Path | Sequence[_Path] | None) -> dict[str, str]:
    """By path of each file of weights, its name from the folder of the model's file."""
    if weights is None:
        return {}
    given = [weights] if isinstance(weights, str | os.PathLike) else list(weights)
    files = [os.fspath(one) for one in given]
    if not files:
        raise ValueError("weights has no file: name files of weights, or leave it out")
    missing = [one for one in files if not os.path.exists(one)]
    if missing and len(files) > 1:
        raise FileNotFoundError(
            f"{missing[0]} is one of {len(files)} files of weights and does not exist: give files "
            "that exist, or a single path, which deploy() then writes"
        )
    return {one: _C.name_beside(path, one) for one in files}


def _options(model: Any, dynamic: bool | None) -> Options:
    if isinstance(model, torch.export.ExportedProgram):  # its mode is that of its graph
        symbols = True if model.range_constraints else None
        return Options("inference", symbols if dynamic is None else dynamic, None)
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"deploy() takes a torch.nn.Module, got a {type(model).__name__}")
    options = (
        model._graft_options if isinstance(model, Optimized) else Options("inference", None, None)
    )
    if options.training or model.training:
        raise ValueError(
            f"deploy() got a {type(model).__name__} that trains: call .eval(), and optimize() "
            'without mode="training"; deploy_training_step() writes steps of training'
        )
    return options if dynamic is None else options._replace(dynamic=dynamic)


def arguments_of(
    function: Any, first: tuple[Any, ...], given: Sequence[Any] | Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Example inputs as a call takes them, row-major: of a module, or of a function that takes
    others first. Raises TypeError where they do not fit."""
    if isinstance(given, torch.Tensor) or not isinstance(given, Sequence | Mapping):
        raise TypeError(
            f"example_inputs must be a tuple or a dict of arguments, got a {type(given).__name__}: "
            "write (x,) for one tensor"
        )
    plain = _row_major(dict(given) if isinstance(given, Mapping) else tuple(given))
    args, kwargs = ((), plain) if isinstance(given, Mapping) else (plain, {})
    module = isinstance(function, torch.nn.Module)
    called = function.forward if module else function
    try:
        inspect.signature(called).bind(*first, *args, **kwargs)
    except TypeError as error:
        name = f"{type(function).__name__}.forward" if module else _name_of(function)
        raise TypeError(f"the example inputs do not fit {name}(): {error}") from None
    return args, kwargs


def _row_major(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().contiguous()
    if isinstance(value, dict):
        return {key: _row_major(one) for key, one in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_row_major(one) for one in value)
    return value


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def names_of(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[str]:
    """A name for each tensor among the arguments, which follow the function's first one."""
    called = function.forward if isinstance(function, torch.nn.Module) else function
    parameters = list(inspect.signature(called).parameters)[1:]
    parameters += [f"argument{i}" for i in range(len(parameters), len(args))]
    return argument_names(args, kwargs, iter(parameters))


def check_operators(model: torch.nn.Module, call: TracedCall) -> None:
    """Raises NotDeployable for operators that only PyTorch computes on the device."""
    device = carrier(call.written.device)
    nodes = _C.needs_pytorch(call.written.text, device.index or 0)
    if nodes:
        raise NotDeployable(
            f"{type(model).__name__} needs PyTorch for {len(nodes)} operators: {', '.join(nodes)}. "
            "Compute them before the call, or write them with other operators"
        )


def write(
    call: TracedCall, arguments: list[str], path: str, licence: str,
    beside: Mapping[str, str] | None = None, *,
    settings: Sequence[str] = (), renamed: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """arguments: names of the call's. beside: files of weights that the model's file refers to.
    settings: weights that programs may set. renamed: names of outputs instead of their paths in the
    result."""
    form, outputs = form_of(call.result, call.outputs)
    outputs = [(renamed or {}).get(name, name) for name in outputs]
    constants = {name: f"constant.{name}" for name in call.written.externals}
    tensors = call.weights | {constants[name]: one for name, one in call.written.externals.items()}
    order = sorted({place for place in call.inputs if isinstance(place, int)})
    taken = [arguments[place] for place in order]
    manifest = _C.Manifest()
    manifest.graph = call.written.text
    manifest.arguments = taken
    manifest.inputs = [(arguments[one], False) if isinstance(one, int) else (one, True)
                       for one in call.inputs]  # fmt: skip
    manifest.integers = [(order.index(argument), dim) for argument, dim in call.integers]
    manifest.outputs = outputs
    manifest.constants = constants
    manifest.settings = list(settings)
    manifest.result = form
    manifest.made_by = f"torch-graft {_C.version()}, torch {torch.__version__}"
    manifest.licence = licence
    stored = {name: one.detach().cpu().contiguous() for name, one in tensors.items()}
    files = dict(beside or {})
    for file in files:
        if not os.path.exists(file):
            _C.write_tensors(file, {name: stored[name] for name in call.weights})
    _C.write_model(path, manifest, stored, list(files.values()))

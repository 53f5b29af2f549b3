# python/torch_graft/deployment/training.py: deploy_training_step(), a step as one file without Python.
"""See docs/use/deploy/training.md."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from torch_graft import private_names as inside
from torch_graft.compiler.calling import on_device, patient, surroundings
from torch_graft.compiler.optimizing import Optimized
from torch_graft.compiler.placing import carrier
from torch_graft.deployment.optimizer_state import PREFIX, check, kept
from torch_graft.deployment.preparing import check_processors, prepare
from torch_graft.deployment.traced_call import NotDeployable, small_operators, tensors_of
from torch_graft.deployment.traced_step import Step, trace_step
from torch_graft.deployment.writing import arguments_of, check_operators, names_of, write

Loss = Callable[..., Any]


def deploy_training_step(
    model: torch.nn.Module, loss: Loss, optimizer: torch.optim.Optimizer,
    example_inputs: Sequence[Any] | Mapping[str, Any], path: str | os.PathLike[str], *,
    dynamic: bool | None = None, licence: str = "", processors: Sequence[str] = (),
) -> None:  # fmt: skip
    """Writes a step of training as one file, which runs without Python as deploy()'s files do: a
    call computes the loss of its arguments, its gradients, and one step of the optimizer.

    model: on a Graft device, in the mode (train() or eval()) in which it is to be trained. loss:
    loss(model, *example_inputs) gives the loss as a tensor of one number; or a tuple that begins
    with it, or a dict that has it as "loss", whose other tensors the call gives, too. optimizer: of
    the model's parameters, at its first or any later step. example_inputs: by position or by name;
    the step is traced with them, and not run. dynamic: their sizes are symbols. licence: of the
    model, kept in the file. processors: levels of x86-64 whose kernels the file has, as for deploy().
    Model, optimizer and gradients stay as they are.

    The file's state is what steps write, under its own names: parameters, buffers, and
    "optimizer.<parameter>.<key>"; and each learning rate, "optimizer.lr", which a program may set.
    Raises NotDeployable, a RuntimeError that says why, for what would need PyTorch at each step;
    nothing is written then. Raises TypeError and ValueError for arguments.
    """
    _check_types(model, loss, optimizer)
    args, kwargs = arguments_of(loss, (model,), example_inputs)
    if not on_device(model, args, kwargs):
        raise ValueError(
            f"deploy_training_step() got a {type(model).__name__} that is not on a Graft device: "
            'move model and inputs with .to("graft"), then make the optimizer'
        )
    check(optimizer)
    weights = _weights(model, loss)
    names = {id(tensor): name for name, tensor in weights.items()}
    _check_parameters(model, optimizer, names)
    plain, options = _plain(model)
    step = Step(plain, loss, optimizer, weights, kept(optimizer, names), args, kwargs,
                options)  # fmt: skip
    with patient(), small_operators():
        call = trace_step(step, bool(_dynamic(model, dynamic)))
    check_operators(model, call)
    settings = [name for name in step.kept.settings if name in call.weights]
    renamed = {} if isinstance(call.result, Mapping) else {"result": "loss", "0": "loss"}
    names_of_inputs = names_of(loss, args, kwargs)
    index = carrier(call.written.device).index or 0
    check_processors(processors, index)
    write(call, names_of_inputs, os.fspath(path), licence, settings=settings, renamed=renamed)
    prepare(os.fspath(path), index, processors)


def _check_types(model: Any, loss: Any, optimizer: Any) -> None:
    if not isinstance(model, torch.nn.Module):
        raise TypeError(
            f"deploy_training_step() takes a torch.nn.Module, got a {type(model).__name__}"
        )
    if not callable(loss):
        raise TypeError(
            f"loss must be a function of (model, *inputs), got a {type(loss).__name__}: write "
            "lambda model, x, y: loss_function(model(x), y)"
        )
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(
            f"optimizer must be a torch.optim.Optimizer, got a {type(optimizer).__name__}"
        )
    if isinstance(model, Optimized) and not model._graft_options.training:
        raise ValueError(
            f"deploy_training_step() got a {type(model).__name__} that is optimized for inference: "
            'give the original module, or optimize(mode="training")'
        )
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        raise ValueError("deploy_training_step() got a DistributedDataParallel: give its module")


def _plain(
    model: Any,
) -> tuple[torch.nn.Module, Callable[[], contextlib.AbstractContextManager[Any]]]:
    """The module that runs as PyTorch does, and what optimize() was asked for around it."""
    if not isinstance(model, Optimized):
        return model, contextlib.nullcontext
    plain: torch.nn.Module = object.__new__(model._graft_class)
    object.__setattr__(plain, "__dict__", model.__dict__)
    return plain, functools.partial(surroundings, model._graft_options)


def _dynamic(model: Any, dynamic: bool | None) -> bool | None:
    if dynamic is None and isinstance(model, Optimized):
        return model._graft_options.dynamic
    return dynamic


def _weights(model: torch.nn.Module, loss: Any) -> dict[str, torch.Tensor]:
    """Each tensor of both once, under its first name."""
    found = dict(tensors_of(model))
    if isinstance(loss, torch.nn.Module):
        found |= {f"loss.{name}": one for name, one in tensors_of(loss).items()}
    weights: dict[str, torch.Tensor] = {}
    known: set[int] = set()
    places: dict[int, str] = {}
    for name, one in found.items():
        if name.startswith(f"{PREFIX}."):
            raise ValueError(
                f"{name} of the model has a name that the optimizer's state has in the file: rename "
                f"the module {PREFIX}"
            )
        if id(one) in known:
            continue
        known.add(id(one))
        place = inside.storage_address(one.untyped_storage())
        if place in places and one.numel() > 0:
            raise NotDeployable(f"{places[place]} and {name} share memory: let one of them go")
        weights[name] = one
        places[place] = name
    return weights


def _check_parameters(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, names: Mapping[int, str]
) -> None:
    parameters = [one for group in optimizer.param_groups for one in group["params"]]
    for one in parameters:
        if id(one) not in names:
            raise NotDeployable(
                f"{type(optimizer).__name__} has a parameter of sizes {list(one.shape)} on "
                f"{one.device} that is none of {type(model).__name__}'s: make the optimizer of "
                "model.parameters(), after model.to()"
            )
        if inside.tensor_backward_hooks(one) or inside.tensor_accumulation_hooks(one):
            raise NotDeployable(f"{names[id(one)]} has hooks, which a deployed step cannot call")
    if not any(one.requires_grad for one in parameters):
        raise NotDeployable(
            f"no parameter of {type(optimizer).__name__} requires a gradient: there is nothing to "
            "train"
        )

# python/torch_graft/deployment/optimizer_state.py: what an optimizer keeps between steps, as named tensors.
"""Tensors that a deployed step keeps for its optimizer, and the optimizer that computes with them."""

from __future__ import annotations

import copy
from collections import UserDict, defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from torch_graft import private_names as inside
from torch_graft.deployment.traced_call import NotDeployable

PREFIX = "optimizer"


class Kept(NamedTuple):
    """By name: state, which steps write, and settings, which programs may set.

    states: by parameter and by PyTorch's key, a name in state, or what is no tensor. rates: by
    group of parameters, a name in settings.
    """

    state: dict[str, torch.Tensor]
    settings: dict[str, torch.Tensor]
    states: dict[torch.nn.Parameter, dict[str, Any]]
    rates: list[str]


def kept(optimizer: torch.optim.Optimizer, names: Mapping[int, str]) -> Kept:
    """names: of parameters, by id. Counts of steps are on the device, whatever capturable says; a
    parameter without a state gets the one that its first step would begin with."""
    trained = [one for group in optimizer.param_groups for one in group["params"]
               if one.requires_grad]  # fmt: skip
    fresh = [one for one in trained if not optimizer.state.get(one)]
    first = _first_states(optimizer, fresh) if fresh else {}
    state: dict[str, torch.Tensor] = {}
    states: dict[torch.nn.Parameter, dict[str, Any]] = {}
    for parameter in trained:
        states[parameter] = dict(first.get(id(parameter)) or optimizer.state[parameter])
        for key, value in states[parameter].items():
            if isinstance(value, torch.Tensor):
                name = f"{PREFIX}.{names[id(parameter)]}.{key}"
                state[name] = value.detach().to(parameter.device)
                states[parameter][key] = name
    settings = {}
    rates = []
    for place, group in enumerate(optimizer.param_groups):
        alone = len(optimizer.param_groups) == 1
        rates.append(f"{PREFIX}.lr" if alone else f"{PREFIX}.groups.{place}.lr")
        settings[rates[-1]] = _rate(group)
    return Kept(state, settings, states, rates)


def _rate(group: Mapping[str, Any]) -> torch.Tensor:
    """The learning rate as a tensor beside the parameters, as exact as they need it."""
    first, rate = group["params"][0], group["lr"]
    if isinstance(rate, torch.Tensor):
        return rate.detach().to(first.device)
    exact = any(one.dtype == torch.float64 for one in group["params"])
    return torch.tensor(rate, dtype=torch.float64 if exact else torch.float32, device=first.device)


class _First(UserDict[str, Any]):
    """A parameter's state that remembers what was put in first under each key."""

    def __init__(self) -> None:
        self.first: dict[str, Any] = {}
        super().__init__()

    def __setitem__(self, key: str, value: Any) -> None:
        if key not in self.first:
            self.first[key] = value.clone() if isinstance(value, torch.Tensor) else value
        super().__setitem__(key, value)


def _first_states(
    optimizer: torch.optim.Optimizer, parameters: list[torch.nn.Parameter]
) -> dict[int, dict[str, Any]]:
    """By id of the parameter. Steps are made by copies: one with gradients of zeros, one of ones."""
    zeros, ones = (_states_after_a_step(optimizer, parameters, value) for value in (0.0, 1.0))
    found: dict[int, dict[str, Any]] = {}
    for group in optimizer.param_groups:
        for one in group["params"]:
            if id(one) in zeros:
                found[id(one)] = {
                    key: _beginning(optimizer, group, key, value, ones[id(one)].get(key))
                    for key, value in zeros[id(one)].items()
                }
    return found


def _states_after_a_step(
    optimizer: torch.optim.Optimizer, parameters: list[torch.nn.Parameter], gradient: float
) -> dict[int, dict[str, Any]]:
    twins: dict[int, Any] = {}
    twin = copied(optimizer, twins)
    given: dict[Any, Any] = {twins[id(one)]: _First() for one in parameters}
    for one, state in twin.state.items():
        given.setdefault(one, state)
    twin.state = defaultdict(_First, given)
    for group in twin.param_groups:
        for one in group["params"]:
            one.grad = torch.full_like(one, gradient) if one.requires_grad else None
    device = parameters[0].device
    with torch.random.fork_rng([device], device_type=device.type):
        twin.step()
    states = {}
    for one in parameters:
        state = twin.state[twins[id(one)]]
        if not isinstance(state, _First):
            raise NotDeployable(
                f"{type(optimizer).__name__} replaces the states of its parameters: call its step() "
                "once before you deploy it, so that they are there"
            )
        states[id(one)] = state.first
    return states


def _beginning(
    optimizer: torch.optim.Optimizer, group: Mapping[str, Any], key: str, value: Any, other: Any
) -> Any:
    if not isinstance(value, torch.Tensor) or torch.equal(value, other):
        return value
    # The first step takes the gradient as it is, as zeros without dampening would.
    if isinstance(optimizer, torch.optim.SGD) and group["dampening"] == 0:
        return torch.zeros_like(value)
    raise NotDeployable(
        f"{type(optimizer).__name__} begins its {key} with the first gradient: call its step() once "
        "before you deploy it"
    )


def copied(optimizer: torch.optim.Optimizer, memo: dict[int, Any]) -> torch.optim.Optimizer:
    """As copy.deepcopy(), which leaves out attributes that PyTorch's own optimizers lack."""
    twin = copy.deepcopy(optimizer, memo)
    for name, value in vars(optimizer).items():
        # A schedule puts a step() that is bound to the original into its attributes.
        if name not in vars(twin) and not callable(value):
            setattr(twin, name, copy.deepcopy(value, memo))
    return twin


def prepared(
    optimizer: torch.optim.Optimizer, own: Kept, tensors: Mapping[str, torch.Tensor],
    twins: Mapping[int, Any],
) -> None:  # fmt: skip
    """Makes a copy of the optimizer compute with these tensors, by name, in operators of one tensor
    each. twins: by id of a parameter, the copy's."""
    for parameter, values in own.states.items():
        optimizer.state[twins[id(parameter)]] = {
            key: tensors[value] if isinstance(value, str) and value in own.state else value
            for key, value in values.items()
        }
    for group, rate in zip(optimizer.param_groups, own.rates, strict=True):
        group["lr"] = tensors[rate]
        for option, value in (("capturable", True), ("foreach", False), ("fused", False)):
            if option in group:
                group[option] = value


def check(optimizer: torch.optim.Optimizer) -> None:
    """Raises NotDeployable where hooks of the optimizer would be lost, or steps call the model."""
    name = type(optimizer).__name__
    if inside.optimizer_step_pre_hooks(optimizer) or inside.optimizer_step_post_hooks(optimizer):
        raise NotDeployable(f"{name} has hooks of steps, which a deployed step cannot call")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise NotDeployable(
            f"{name} computes the loss several times in a step, which a deployed step cannot do: use "
            "an optimizer whose step() needs no closure"
        )
    if any("lr" not in group for group in optimizer.param_groups):
        raise NotDeployable(f"{name} has a group of parameters without a learning rate (lr)")

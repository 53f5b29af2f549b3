# python/torch_graft/deployment/traced_step.py: a step of training as one graph.
"""Traces forward, loss, gradients and optimizer with tensors that have no elements, so that nothing
of the caller's changes. Raises NotDeployable for what would need PyTorch at each step."""

from __future__ import annotations

import contextlib
import copy
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from torch_graft import private_names as inside
from torch_graft.compiler.tracing import Traced, backend
from torch_graft.deployment.optimizer_state import Kept, copied, prepared
from torch_graft.deployment.traced_call import NotDeployable, TracedCall, tensors_of

_PLAIN = (int, float, str, bool, type(None))


class Step(NamedTuple):
    """What is traced. weights: tensors of the model and of the loss, by name, each once. args
    and kwargs follow the model in a call of loss. surroundings: of each call of the model."""

    model: torch.nn.Module
    loss: Any
    optimizer: torch.optim.Optimizer
    weights: dict[str, torch.Tensor]
    kept: Kept
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    surroundings: Callable[[], contextlib.AbstractContextManager[Any]]


def trace_step(step: Step, dynamic: bool) -> TracedCall:
    """The graph of a step. dynamic: sizes of the arguments are symbols."""
    mode = inside.FakeTensorMode(shape_env=ShapeEnv(duck_shape=False), allow_non_fake_inputs=True)
    tensors = step.weights | step.kept.state | step.kept.settings
    weights = {name: _fake(mode, name, one, False) for name, one in tensors.items()}
    leaves, form = inside.tree_flatten((step.args, step.kwargs))
    places = [place for place, one in enumerate(leaves) if isinstance(one, torch.Tensor)]
    arguments = [_fake(mode, f"argument{place}", leaves[place], dynamic) for place in places]
    for place, one in zip(places, arguments, strict=True):
        leaves[place] = one
    run = _Run(step, weights, inside.tree_unflatten(leaves, form))
    given = [*weights.values(), *arguments]
    with mode, _refusals(step):
        module = make_fx(run, record_stack_traces=True, _allow_non_fake_inputs=True)(*given)
    run.check(given)
    names: list[int | str] = [*weights, *range(len(arguments))]
    _leave_out_the_profiler(module)
    captured = _take_constants(module, names, given, mode)
    _check_captured(captured, tensors)
    _leave_out_unused(module, names, given)
    traced = _through_aot(module, given, mode)
    _check_ends(step, traced, len(given), len(run.outputs))
    used = {name: (tensors | captured)[name] for name in names if isinstance(name, str)}
    assert traced.written is not None
    return TracedCall(traced.written, names, [], used, run.outputs, run.result)


def _fake(mode: Any, name: str, one: torch.Tensor, dynamic: bool) -> torch.Tensor:
    kind = DimDynamic.DYNAMIC if dynamic else DimDynamic.STATIC
    context: Any = StatelessSymbolicContext(dynamic_sizes=[kind] * one.dim())
    made: torch.Tensor = mode.from_tensor(
        one, symbolic_context=context, source=inside.ConstantSource(name)
    )
    return made


class _Run:
    """A step of copies of model, loss and optimizer, whose tensors are these."""

    def __init__(self, step: Step, weights: dict[str, torch.Tensor], arguments: Any) -> None:
        twins: dict[int, Any] = {id(one): weights[name] for name, one in step.weights.items()}
        originals = [*step.weights.values()]  # the memo is by id: they have to stay alive
        for parameter, values in step.optimizer.state.items():
            for key, value in values.items():
                name = step.kept.states.get(parameter, {}).get(key)
                if isinstance(value, torch.Tensor) and isinstance(name, str):
                    twins[id(value)] = weights[name]
        try:
            self.model, self.loss = copy.deepcopy((step.model, step.loss), twins)
            self.optimizer = copied(step.optimizer, twins)
        except Exception as error:
            raise NotDeployable(
                f"{type(step.model).__name__}, its loss or its optimizer cannot be copied "
                f"(copy.deepcopy): {error}"
            ) from error
        del originals
        prepared(self.optimizer, step.kept, weights, twins)
        self.twins = twins
        forward = self.model.forward

        def surrounded(*args: Any, **kwargs: Any) -> Any:
            with step.surroundings():
                return forward(*args, **kwargs)

        self.model.forward = surrounded
        self.parameters = [one for group in self.optimizer.param_groups for one in group["params"]
                           if one.requires_grad]  # fmt: skip
        self.step, self.weights = step, weights
        self.arguments = arguments
        self.numbers = self._numbers()
        self.outputs: list[torch.Tensor] = []
        self.result: Any = None

    def __call__(self, *_: torch.Tensor) -> list[torch.Tensor]:
        args, kwargs = self.arguments
        with torch.enable_grad():
            result = self.loss(self.model, *args, **kwargs)
            loss = loss_of(result)
        if not loss.requires_grad:
            raise NotDeployable("the loss depends on no parameter that the optimizer trains")
        with _NoRandomNumbers():
            gradients = torch.autograd.grad(loss, self.parameters, allow_unused=True)
        if all(one is None for one in gradients):
            raise NotDeployable("the loss depends on no parameter that the optimizer trains")
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient
        with _TensorsAsNumbers(), inside.compile_session():
            self.optimizer.step()
        self._write_back()
        leaves, form = inside.tree_flatten(result)
        leaves = [one.detach() if isinstance(one, torch.Tensor) else one for one in leaves]
        self.outputs = [one for one in leaves if isinstance(one, torch.Tensor)]
        self.result = inside.tree_unflatten(leaves, form)
        return self.outputs

    def check(self, given: Sequence[torch.Tensor]) -> None:
        """After the step: what it changed besides tensors, and results that are no results."""
        for (owner, key, value), before in zip(self._numbers(), self.numbers, strict=False):
            if (owner, key, value) != before:
                raise NotDeployable(
                    f"a step changes {key} of {owner} from {before[2]!r} to {value!r}: a deployed "
                    "step keeps tensors alone, make it one"
                )
        taken = {inside.storage_address(one.untyped_storage()) for one in given}
        if any(inside.storage_address(one.untyped_storage()) in taken for one in self.outputs):
            raise NotDeployable(
                "a result of the loss function is an argument or a weight: return a copy of it"
            )

    def _write_back(self) -> None:
        """Tensors that the step put in the place of others, as elements of those."""
        found = tensors_of(self.model)
        now = {name: found.get(name) for name in self.step.weights if name in found}
        for parameter, values in self.step.kept.states.items():
            state = self.optimizer.state[self.twins[id(parameter)]]
            now |= {name: state[key] for key, name in values.items()
                    if isinstance(name, str) and name in self.weights}  # fmt: skip
            if added := [key for key in state if key not in values]:
                raise NotDeployable(
                    f"{type(self.optimizer).__name__} adds {added[0]} to its state in a later step "
                    "than the first: call its step() until it is there, then deploy it"
                )
        with torch.no_grad():
            for name, value in now.items():
                if value is not None and value is not self.weights[name]:
                    if value.shape != self.weights[name].shape:
                        raise NotDeployable(f"a step changes the sizes of {name}")
                    self.weights[name].copy_(value)

    def _numbers(self) -> list[Any]:
        """Plain values of modules and optimizer, by where they are."""
        owners = [(type(one).__name__, vars(one)) for one in self.model.modules()]
        held = [*self.optimizer.state.values(), *self.optimizer.param_groups]
        owners += [(type(self.optimizer).__name__, one) for one in held]
        return [
            (owner, key, value) for owner, values in owners
            for key, value in values.items() if isinstance(value, _PLAIN)
        ]  # fmt: skip


def loss_of(result: Any) -> torch.Tensor:
    """The loss among what the loss function returned. Raises NotDeployable."""
    found = result
    if isinstance(result, Mapping):
        found = result.get("loss")
    elif isinstance(result, tuple | list) and result:
        found = result[0]
    if not isinstance(found, torch.Tensor) or found.dim() > 0:
        what = f"a tensor of sizes {list(found.shape)}" if isinstance(found, torch.Tensor) else (
            f"a {type(found).__name__}")  # fmt: skip
        raise NotDeployable(
            f"the loss function gave {what} as the loss, expected a tensor of one number, alone, "
            'first in a tuple, or as "loss" of a dict'
        )
    return found


class _TensorsAsNumbers(torch.overrides.TorchFunctionMode):
    """Operators that scale by a number take a tensor in its place, such as the learning rate."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        named = dict(kwargs or {})
        for key in ("alpha", "value"):
            if isinstance(named.get(key), torch.Tensor) and len(args) > 1:
                factor = named.pop(key)
                args = (args[0], args[1] * factor, *args[2:])
        return func(*args, **named)


class _NoRandomNumbers(inside.TorchDispatchMode):
    """Gradients draw none, or draw again what the forward drew, as checkpoints do."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        if torch.Tag.nondeterministic_seeded in func.tags:
            raise NotDeployable(
                f"gradients draw random numbers ({func}), as checkpoints do that compute a part of "
                "the model twice: deploy it without them"
            )
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def _refusals(step: Step) -> Iterator[None]:
    """What tracing raises, as NotDeployable with the user's line."""
    try:
        yield
    except NotDeployable:
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = lines[0] if lines else type(error).__name__
        raise NotDeployable(
            f"a step of {type(step.model).__name__} with {type(step.optimizer).__name__} is not one "
            f"graph: {reason}{_line_of(error)}"
        ) from error


def _line_of(error: Exception) -> str:
    """The innermost line that is not PyTorch's nor this package's, else that of an optimizer."""
    frames = traceback.extract_tb(error.__traceback__)
    package, torch_folder = Path(__file__).parents[1], Path(torch.__file__).parent
    own = [one for one in frames
           if not Path(one.filename).is_relative_to(torch_folder)
           and not Path(one.filename).is_relative_to(package)]  # fmt: skip
    optimizers = [one for one in frames
                  if Path(one.filename).is_relative_to(torch_folder / "optim")]  # fmt: skip
    found = (optimizers or own or list(frames))[-1:]
    return f" ({Path(found[0].filename).name}:{found[0].lineno})" if found else ""


def _leave_out_the_profiler(module: fx.GraphModule) -> None:
    for node in reversed(module.graph.nodes):
        if str(node.target).startswith("profiler."):
            module.graph.erase_node(node)


def _take_constants(
    module: fx.GraphModule, names: list[int | str], given: list[torch.Tensor], mode: Any
) -> dict[str, torch.Tensor]:
    """Makes tensors that the loss function captured inputs of the graph, like weights."""
    captured: dict[str, torch.Tensor] = {}
    inputs = module.graph.find_nodes(op="placeholder")
    taken: dict[str, fx.Node] = {}
    constants: set[str] = set()
    for node in module.graph.find_nodes(op="get_attr"):
        target = str(node.target)
        value = getattr(module, target)
        constants.add(target)
        if value.device.type == "cpu" and value.dim() == 0:
            _write_number(module, node, value)
            continue
        if target not in taken:
            name = f"captured.{len(captured)}"
            with module.graph.inserting_after(inputs[-1]):
                taken[target] = module.graph.placeholder(name.replace(".", "_"))
            taken[target].meta = dict(node.meta)
            inputs.append(taken[target])
            captured[name] = value
            names.append(name)
            given.append(_fake(mode, name, value, False))
        node.replace_all_uses_with(taken[target])
        module.graph.erase_node(node)
    for target in constants:
        delattr(module, target)
    return captured


def _write_number(module: fx.GraphModule, node: fx.Node, value: torch.Tensor) -> None:
    """In the place of a constant in host memory."""
    with module.graph.inserting_before(node):
        made = module.graph.call_function(
            torch.ops.aten.full.default, ([], value.item()),
            {"dtype": value.dtype, "device": value.device},
        )  # fmt: skip
    fresh = torch.ops.aten.lift_fresh_copy.default, torch.ops.aten.clone.default
    for user in [*(one for one in node.users if one.target in fresh), node]:
        user.replace_all_uses_with(made)
        module.graph.erase_node(user)


def _check_captured(
    captured: Mapping[str, torch.Tensor], tensors: Mapping[str, torch.Tensor]
) -> None:
    known = {inside.storage_address(one.untyped_storage()): name for name, one in tensors.items()}
    for one in captured.values():
        if (name := known.get(inside.storage_address(one.untyped_storage()))) is not None:
            raise NotDeployable(
                f"the loss function uses {name} without taking it from its first argument: write "
                "loss(model, ...) with the model that it is given"
            )


def _leave_out_unused(
    module: fx.GraphModule, names: list[int | str], given: list[torch.Tensor]
) -> None:
    inputs = module.graph.find_nodes(op="placeholder")
    for place in reversed(range(len(inputs))):
        if not inputs[place].users:
            module.graph.erase_node(inputs[place])
            del names[place], given[place]
    module.recompile()


def _through_aot(module: fx.GraphModule, given: list[torch.Tensor], mode: Any) -> Traced:
    graphs: list[Traced] = []

    def build(traced: Traced) -> Callable[..., Any]:
        graphs.append(traced)
        return lambda *_: []

    with torch.no_grad(), inside.tracing(inside.TracingContext(mode)):
        backend(build)(module, given)
    [traced] = graphs
    return traced


def _check_ends(step: Step, traced: Traced, inputs: int, outputs: int) -> None:
    if traced.refusal is not None:
        raise NotDeployable(
            f"a step of {type(step.model).__name__} is no graph of Graft's: {traced.refusal}"
        )
    [output] = traced.module.graph.find_nodes(op="output")
    placeholders = traced.module.graph.find_nodes(op="placeholder")
    if len(placeholders) != inputs or len(output.args[0]) != outputs:
        raise NotDeployable(
            f"a step of {type(step.model).__name__} changes more than the elements of a tensor (its "
            "sizes, or memory that two of its tensors share), or computes with numbers in host "
            "memory, which a deployed step cannot do"
        )

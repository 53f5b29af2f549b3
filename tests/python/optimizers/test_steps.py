"""Every optimizer of torch.optim steps as on the CPU, in each of its implementations."""

import inspect
import math

import pytest
import torch
from torch import nn, optim
from torch.testing import assert_close
from torch.utils._foreach_utils import (
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
)
from torch.utils._python_dispatch import TorchDispatchMode

# Options of each optimizer beside none at all.
OPTIONS = {
    "Adadelta": [{"weight_decay": 0.1, "maximize": True}],
    "Adafactor": [{"weight_decay": 0.1, "maximize": True}],
    "Adagrad": [{"lr_decay": 0.1, "weight_decay": 0.1, "maximize": True},
                {"initial_accumulator_value": 0.2}],
    "Adam": [{"amsgrad": True, "weight_decay": 0.1, "maximize": True}],
    "AdamW": [{"amsgrad": True, "weight_decay": 0.1}],
    "Adamax": [{"weight_decay": 0.1, "maximize": True}],
    "ASGD": [{"weight_decay": 0.1, "maximize": True, "t0": 1}],
    "LBFGS": [{"line_search_fn": "strong_wolfe"}],
    "Muon": [{"nesterov": False, "weight_decay": 0.1}],
    "NAdam": [{"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}],
    "RAdam": [{"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}],
    "RMSprop": [{"centered": True, "momentum": 0.9, "weight_decay": 0.1, "maximize": True}],
    "Rprop": [{"maximize": True}],
    "SGD": [{"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
            {"momentum": 0.9, "dampening": 0.5, "maximize": True}],
    "SparseAdam": [{"maximize": True}],
}  # fmt: skip
IMPLEMENTATIONS = {
    "default": {}, "loop": {"foreach": False}, "foreach": {"foreach": True},
    "fused": {"fused": True}, "capturable": {"capturable": True},
    "capturable loop": {"capturable": True, "foreach": False},
}  # fmt: skip
# Products of sparse tensors run on the CPU: docs/use/sparse.md.
STATED = {"SparseAdam": {"aten::mul.out"}}
# These take real numbers only.
REAL = {"Adafactor", "LBFGS", "Muon", "SparseAdam"}
SHAPES = [(3,), (4, 5), (2, 3, 2), (7, 1), (), (30,)]
MATRICES = [(4, 5), (5, 4), (7, 3)]


def takes(name, options):
    return set(options) <= set(inspect.signature(getattr(optim, name)).parameters)


CASES = [
    (name, kind, options)
    for name, several in OPTIONS.items()
    for kind, implementation in IMPLEMENTATIONS.items()
    if takes(name, implementation)
    for options in [{}, *several]
]


def drawn(name, dtype=torch.float32, seed=0):
    source = torch.Generator().manual_seed(seed)
    shapes = MATRICES if name == "Muon" else SHAPES
    return [torch.randn(shape, dtype=dtype, generator=source) for shape in shapes]


def optimizer_on(device, name, options, dtype=torch.float32):
    parameters = [nn.Parameter(p.to(device)) for p in drawn(name, dtype)]
    return getattr(optim, name)(parameters, **options)


def advance(optimizer, name, steps, first=1):
    """Takes some steps along drawn gradients; LBFGS finds its own."""
    parameters = optimizer.param_groups[0]["params"]
    for step in range(first, first + steps):
        gradients = drawn(name, parameters[0].dtype, step)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            gradient = gradient.to_sparse() if name == "SparseAdam" else gradient
            parameter.grad = gradient.to(parameter.device)

        def closure():
            optimizer.zero_grad()
            loss = sum((p - 0.5).square().sum() for p in parameters)
            loss.backward()
            return loss

        optimizer.step(closure if name == "LBFGS" else None)
    return [p.detach().cpu() for p in parameters]


def state_devices(optimizer):
    return {
        (key, value.device.type)
        for state in optimizer.state.values()
        for key, value in state.items()
        if isinstance(value, torch.Tensor)
    }


def test_every_optimizer_is_in_the_table():
    found = {
        name
        for name, kind in vars(optim).items()
        if inspect.isclass(kind) and issubclass(kind, optim.Optimizer)
    }
    assert set(OPTIONS) == found - {"Optimizer"}


@pytest.mark.parametrize(("name", "kind", "options"), CASES, ids=str)
def test_steps_as_on_the_cpu(device, module, name, kind, options):
    # Capturable on the CPU is an error; the arithmetic is the same.
    wanted = {k: v for k, v in IMPLEMENTATIONS[kind].items() if k != "capturable"}
    expected = advance(optimizer_on("cpu", name, options | wanted), name, 3)
    module.fallback.reset()
    optimizer = optimizer_on(device, name, options | IMPLEMENTATIONS[kind])
    with module.fallback.off():
        before = module.statistics()["launches"]
        found = advance(optimizer, name, 3)
        assert module.statistics()["launches"] > before
    assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert set(module.fallback.counts()) <= STATED.get(name, set())
    elsewhere = {key for key, where in state_devices(optimizer) if where != device}
    # As for torch.cuda, scalars that the host reads stay with it unless the step is capturable.
    assert elsewhere <= (set() if "capturable" in kind else {"step", "mu_product"})


@pytest.mark.parametrize("name", sorted(set(OPTIONS) - REAL))
def test_complex_parameters(device, module, name):
    expected = advance(optimizer_on("cpu", name, {}, torch.complex64), name, 2)
    with module.fallback.forbid():
        found = advance(optimizer_on(device, name, {}, torch.complex64), name, 2)
    assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [n for n in OPTIONS if takes(n, {"differentiable": True})])
def test_gradients_flow_through_a_step(device, module, name):
    sides = []
    for where in ("cpu", device):
        start = [p.double().to(where).requires_grad_() for p in drawn(name)]
        slopes = [g.double().to(where).requires_grad_() for g in drawn(name, seed=1)]
        parameters = [p.clone() for p in start]
        optimizer = getattr(optim, name)(parameters, differentiable=True)
        with module.fallback.forbid():
            # A second step of these two overwrites, on every device, what backward needs.
            for _ in range(1 if name in {"Adamax", "Rprop"} else 2):
                for parameter, slope in zip(parameters, slopes, strict=True):
                    parameter.grad = slope.sin()
                optimizer.step()
            sum(p.square().sum() for p in parameters).backward()
        sides.append([t.grad.cpu() for t in (*start, *slopes)])
    assert_close(sides[1], sides[0])


def test_the_learning_rate_is_differentiable(device, module):
    sides = []
    for where in ("cpu", device):
        rate = torch.tensor(0.1, device=where, requires_grad=True)
        parameter = torch.arange(1.0, 4.0).to(where).requires_grad_()
        moved = parameter.clone()
        optimizer = optim.SGD([moved], lr=rate, differentiable=True, foreach=False)
        moved.grad = moved * 3
        with module.fallback.forbid():
            optimizer.step()
            moved.square().sum().backward()
        sides.append([rate.grad.cpu(), parameter.grad.cpu()])
    assert_close(sides[1], sides[0])


@pytest.mark.parametrize("where", ["cpu", "device"])
@pytest.mark.parametrize("kind", ["loop", "fused", "capturable"])
@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD"])
def test_the_learning_rate_may_be_a_tensor(device, module, name, kind, where):
    if not takes(name, IMPLEMENTATIONS[kind]):
        kind = "fused"
    rate = torch.tensor(0.05, device=device if where == "device" else "cpu")
    expected = advance(optimizer_on("cpu", name, {"lr": 0.05, "foreach": False}), name, 2)
    with module.fallback.forbid():
        optimizer = optimizer_on(device, name, {"lr": rate, **IMPLEMENTATIONS[kind]})
        found = advance(optimizer, name, 1)
        schedule = optim.lr_scheduler.ConstantLR(optimizer, 1.0)
        found = advance(optimizer, name, 1, first=2)
        schedule.step()
    assert optimizer.param_groups[0]["lr"] is rate
    assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_the_lists_of_supported_devices_are_torchs_own(device):
    from torch.optim import optimizer as source

    for function in (_get_foreach_kernels_supported_devices, _get_fused_kernels_supported_devices,
                     source._get_capturable_supported_devices):  # fmt: skip
        assert device in function()
        assert inspect.getsourcefile(function).startswith(torch.__path__[0])
    parameters = [torch.ones(2, device=device)]
    assert source._default_to_fused_or_foreach(parameters, False) == (False, True)
    assert source._default_to_fused_or_foreach(parameters, False, use_fused=True) == (True, False)


class Seen(TorchDispatchMode):
    """Names of the operators that ran inside."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.add(function.overloadpacket.__name__)
        return function(*args, **(kwargs or {}))


def test_the_list_implementation_is_the_default(device):
    for kind, wanted in (({}, "_foreach_addcdiv_"), ({"fused": True}, "_fused_adamw_")):
        optimizer = optimizer_on(device, "AdamW", kind)
        advance(optimizer, "AdamW", 1)
        with Seen() as seen:
            optimizer.step()
        assert wanted in seen.names


def launches_of(module, device, name, options, count):
    """Launches of the second step over `count` small parameters."""
    parameters = [nn.Parameter(torch.ones(3, 2, device=device)) for _ in range(count)]
    optimizer = getattr(optim, name)(parameters, **options)
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, 0.5)
    optimizer.step()
    module.synchronize()
    before = module.statistics()["launches"]
    optimizer.step()
    module.synchronize()
    return module.statistics()["launches"] - before


LIST = 16  # tensors that one launch takes


def test_a_fused_step_is_one_launch_per_list(device, module):
    for options in ({"lr": 0.1}, {"lr": 0.1, "momentum": 0.9}):
        for count in (1, 40, 161):
            launches = launches_of(module, device, "SGD", options | {"fused": True}, count)
            assert launches <= math.ceil(count / LIST)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "Adagrad"])
def test_a_fused_step_counts_its_steps_by_lists(device, module, name):
    for count in (1, 40, 161):
        launches = launches_of(module, device, name, {"fused": True}, count)
        assert launches <= 2 * math.ceil(count / LIST)


@pytest.mark.parametrize(("name", "operators"), [("SGD", 2), ("RMSprop", 6), ("Adam", 9)])
def test_a_list_operator_is_one_launch_per_list(device, module, name, operators):
    options = {"foreach": True, "weight_decay": 0.1}
    assert launches_of(module, device, name, options, 40) <= operators * math.ceil(40 / LIST)


@pytest.mark.parametrize("kind", ["fused", "foreach"])
def test_a_step_over_two_devices_and_dtypes(device, second, module, kind):
    def parameters():
        return [torch.arange(4, dtype=dtype) + 1 for dtype in (torch.float32, torch.float64) * 2]

    places = [device, device, second, second]
    ours = [nn.Parameter(p.to(d)) for p, d in zip(parameters(), places, strict=True)]
    theirs = [nn.Parameter(p) for p in parameters()]
    for group in (ours, theirs):
        optimizer = optim.Adam(group, 0.1, **IMPLEMENTATIONS[kind])
        with module.fallback.forbid():
            for _ in range(2):
                for p in group:
                    p.grad = p.detach() * 2
                optimizer.step()
    assert [str(p.device) for p in ours[2:]] == [str(torch.device(second))] * 2
    assert_close([p.detach().cpu() for p in ours], [p.detach() for p in theirs])


def test_refusals_name_the_devices(device):
    with pytest.raises(RuntimeError, match=f"fused=True.*complex64 and {device}"):
        advance(optimizer_on(device, "SGD", {"fused": True}, torch.complex64), "SGD", 1)
    with pytest.raises(RuntimeError, match="`fused` does not support `differentiable`"):
        optim.Adam([torch.ones(2, device=device)], fused=True, differentiable=True)
    optimizer = optimizer_on("cpu", "Adam", {"capturable": True})
    with pytest.raises(AssertionError, match=f"supported devices: .*'{device}'"):
        advance(optimizer, "Adam", 1)
    parameter = nn.Parameter(torch.ones(2, device=device))
    parameter.grad = torch.ones(2, device=device).to_sparse()
    with pytest.raises(RuntimeError, match="does not support sparse gradients"):
        optim.Adam([parameter]).step()

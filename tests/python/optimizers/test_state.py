"""State of optimizers: between devices, in captured graphs; hooks, schedules, averages."""

import copy
import inspect
import io

import pytest
import torch
from torch import nn, optim
from torch.optim import lr_scheduler, swa_utils
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.testing import assert_close


def network(device):
    """The same network on every device."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1)).to(device)


def learn(model, optimizer, steps):
    where = next(model.parameters()).device
    x = torch.linspace(-1, 1, 20).reshape(5, 4).to(where)
    for _ in range(steps):
        optimizer.zero_grad()
        (model(x) - 1).square().mean().backward()
        optimizer.step()
    return [p.detach().cpu() for p in model.parameters()]


ADAMS = [{}, {"fused": True}, {"capturable": True}, {"foreach": False, "amsgrad": True}]


@pytest.mark.parametrize("options", ADAMS, ids=str)
@pytest.mark.parametrize("direction", ["to the cpu", "to the device"])
def test_a_state_dict_goes_on_elsewhere(device, direction, options):
    source, target = (device, "cpu") if direction == "to the cpu" else ("cpu", device)
    on = {source: options, target: options}
    on["cpu"] = {k: v for k, v in options.items() if k != "capturable"}
    model = network(source)
    optimizer = optim.AdamW(model.parameters(), 0.05, **on[source])
    learn(model, optimizer, 3)
    buffer = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, buffer)
    buffer.seek(0)
    saved = torch.load(buffer, map_location="cpu", weights_only=True)
    for group in saved["optimizer"]["param_groups"]:
        group.update({"capturable": False} | on[target])
    other = network(target)
    other.load_state_dict(saved["model"])
    its = optim.AdamW(other.parameters(), 0.05, **on[target])
    its.load_state_dict(saved["optimizer"])
    for parameter, state in its.state.items():
        assert state["exp_avg"].device == parameter.device
        follows = on[target].get("fused") or on[target].get("capturable")
        assert state["step"].device.type == (target if follows else "cpu")
    assert_close(learn(other, its, 3), learn(model, optimizer, 3), rtol=1e-4, atol=1e-5)


def test_an_optimizer_is_copied_with_its_model(device):
    model = network(device)
    optimizer = optim.Adam(model.parameters(), 0.05)
    learn(model, optimizer, 2)
    twin, its = copy.deepcopy((model, optimizer))
    assert its.param_groups[0]["params"][0] is next(twin.parameters())
    assert_close(learn(twin, its, 2), learn(model, optimizer, 2))


def test_hooks_of_a_step(device):
    model, calls = network(device), []
    optimizer = optim.SGD(model.parameters(), 0.1)
    handles = [
        optimizer.register_step_pre_hook(lambda *_: calls.append("pre")),
        optimizer.register_step_post_hook(lambda *_: calls.append("post")),
        register_optimizer_step_pre_hook(lambda *_: calls.append("every pre")),
        register_optimizer_step_post_hook(lambda *_: calls.append("every post")),
        optimizer.register_state_dict_post_hook(lambda o, state: {**state, "extra": device}),
        optimizer.register_load_state_dict_pre_hook(lambda o, state: calls.append("load")),
    ]
    try:
        learn(model, optimizer, 1)
        state = optimizer.state_dict()
        assert state["extra"] == device
        optimizer.load_state_dict(state)
    finally:
        for handle in handles:
            handle.remove()
    assert calls == ["every pre", "pre", "post", "every post", "load"]


def test_an_optimizer_may_step_inside_backward(device):
    """A hook steps each parameter as soon as its gradient is whole, and frees the gradient."""
    plain, hooked = network(device), network(device)
    learn(plain, optim.SGD(plain.parameters(), 0.1), 2)
    optimizers = {p: optim.SGD([p], 0.1) for p in hooked.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in hooked.parameters():
        parameter.register_post_accumulate_grad_hook(step)
    x = torch.linspace(-1, 1, 20).reshape(5, 4).to(device)
    for _ in range(2):
        (hooked(x) - 1).square().mean().backward()
    assert all(p.grad is None for p in hooked.parameters())
    assert_close(list(hooked.parameters()), list(plain.parameters()))


@pytest.mark.parametrize("options", [{"capturable": True}, {"capturable": True, "fused": True}],
                         ids=["foreach", "fused"])  # fmt: skip
def test_a_captured_step_is_replayed(device, module, options):
    start, slope = torch.arange(1.0, 7.0), torch.linspace(-1, 1, 6)
    rate = torch.tensor(0.1, device=device)
    sides = []
    for captured in (False, True):
        parameter = nn.Parameter(start.to(device))
        parameter.grad = slope.to(device)
        rate.fill_(0.1)
        optimizer = optim.Adam([parameter], lr=rate, **options)
        optimizer.step()
        if captured:
            graph = module.Graph()
            with module.graph(graph):
                optimizer.step()
        for value in (0.1, 0.05, 0.2):
            rate.fill_(value)
            parameter.grad.add_(0.1)
            graph.replay() if captured else optimizer.step()
        sides.append([parameter.detach().cpu(), optimizer.state[parameter]["step"].cpu()])
    assert sides[1][1].item() == 4
    assert_close(sides[1], sides[0])


SCHEDULES = {
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda e: 0.9**e),
    "MultiplicativeLR": lambda o: lr_scheduler.MultiplicativeLR(o, lambda e: 0.9),
    "StepLR": lambda o: lr_scheduler.StepLR(o, 2),
    "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, [1, 4]),
    "ConstantLR": lambda o: lr_scheduler.ConstantLR(o, 0.5, 3),
    "LinearLR": lambda o: lr_scheduler.LinearLR(o, 0.2, total_iters=4),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, 0.8),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.ConstantLR(o, 0.5), lr_scheduler.ExponentialLR(o, 0.9)], [3]),
    "PolynomialLR": lambda o: lr_scheduler.PolynomialLR(o, 5, 2.0),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 5),
    "ChainedScheduler": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.ConstantLR(o, 0.5), lr_scheduler.ExponentialLR(o, 0.9)]),
    "ReduceLROnPlateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=0, threshold=1.0),
    "CyclicLR": lambda o: lr_scheduler.CyclicLR(o, 0.01, 0.1, 2),
    "CosineAnnealingWarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, 0.1, 8),
}  # fmt: skip


def test_every_schedule_is_in_the_table():
    found = {
        name
        for name, kind in vars(lr_scheduler).items()
        if inspect.isclass(kind) and issubclass(kind, lr_scheduler.LRScheduler)
    }
    assert set(SCHEDULES) == found - {"LRScheduler", "_LRScheduler"}


@pytest.mark.parametrize("tensor", [False, True], ids=["number", "tensor"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_gives_the_rates_of_the_cpu(device, name, tensor):
    sides = []
    for where in ("cpu", device):
        rate = torch.tensor(0.1, device=where) if tensor else 0.1
        parameter = nn.Parameter(torch.ones(3, device=where))
        optimizer = optim.SGD([parameter], lr=rate, momentum=0.9)
        schedule, rates = SCHEDULES[name](optimizer), []
        for _ in range(6):
            optimizer.zero_grad()
            loss = parameter.abs().sum()
            loss.backward()
            optimizer.step()
            schedule.step(*([loss.detach()] if name == "ReduceLROnPlateau" else []))
            rates.append(float(optimizer.param_groups[0]["lr"]))
        again = SCHEDULES[name](optim.SGD([parameter], lr=0.1, momentum=0.9))
        again.load_state_dict(copy.deepcopy(schedule.state_dict()))
        sides.append([rates, schedule.get_last_lr(), parameter.detach().cpu()])
    assert len(set(sides[0][0])) > 1
    assert_close(sides[1][0], sides[0][0])
    assert_close([float(r) for r in sides[1][1]], [float(r) for r in sides[0][1]])
    assert_close(sides[1][2], sides[0][2])


def test_averages_of_a_model(device, module):
    sides = []
    for where in ("cpu", device):
        model = nn.Sequential(network(where), nn.BatchNorm1d(1, affine=False, device=where))
        optimizer = optim.SGD(model.parameters(), 0.1)
        mean = swa_utils.AveragedModel(model)
        ema = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9))
        schedule = swa_utils.SWALR(optimizer, 0.05, anneal_epochs=2)
        with module.fallback.forbid():
            for _ in range(3):
                learn(model[0], optimizer, 1)
                mean.update_parameters(model)
                ema.update_parameters(model)
                schedule.step()
            swa_utils.update_bn([torch.linspace(-1, 1, 20).reshape(5, 4)], mean, device=where)
        states = (*mean.state_dict().values(), *ema.state_dict().values())
        sides.append([t.cpu() for t in states])
    assert_close(sides[1], sides[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("foreach", [True, False])
@pytest.mark.parametrize("kind", [1.0, 2.0, float("inf")])
def test_gradients_are_clipped_as_on_the_cpu(device, module, foreach, kind):
    sides = []
    for where in ("cpu", device):
        source = torch.Generator().manual_seed(4)
        parameters = [nn.Parameter(torch.zeros(n, device=where)) for n in (3, 50, 7)]
        for p in parameters:
            p.grad = torch.randn(p.shape, generator=source).to(where)
        with module.fallback.forbid():
            norm = nn.utils.clip_grad_norm_(parameters, 0.5, kind, foreach=foreach)
            nn.utils.clip_grad_value_(parameters, 0.2, foreach=foreach)
        assert norm.device.type == where
        sides.append([norm.cpu(), *(p.grad.cpu() for p in parameters)])
    assert_close(sides[1], sides[0])

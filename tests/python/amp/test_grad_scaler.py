"""torch.amp.GradScaler: unscaled gradients, skipped steps, growth, its state, several devices."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.testing import assert_close

INF, NAN = float("inf"), float("nan")
OPTIMIZERS = {
    "SGD": lambda p, _: torch.optim.SGD(p, 0.1, momentum=0.9),
    "SGD for each": lambda p, _: torch.optim.SGD(p, 0.1, momentum=0.9, foreach=True),
    "SGD one by one": lambda p, _: torch.optim.SGD(p, 0.1, foreach=False),
    # Without momentum: PyTorch leaves the buffers of a first step that is skipped unwritten.
    "SGD fused": lambda p, _: torch.optim.SGD(p, 0.1, fused=True),
    "Adam": lambda p, _: torch.optim.Adam(p, 0.01),
    "Adam fused": lambda p, _: torch.optim.Adam(p, 0.01, amsgrad=True, fused=True),
    "AdamW fused": lambda p, _: torch.optim.AdamW(p, 0.01, fused=True),
    "Adagrad fused": lambda p, _: torch.optim.Adagrad(p, 0.01, fused=True),
    # The CPU has none that is capturable.
    "Adam capturable": lambda p, where: torch.optim.Adam(p, 0.01, capturable=where != "cpu"),
}  # fmt: skip


def network(where, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)).to(where)


def loss_of(model, factor=1.0):
    where = next(model.parameters()).device
    return model(torch.linspace(-1, 1, 12).reshape(3, 4).to(where) * factor).square().mean()


def leaf(where, n=3):
    return torch.ones(n, device=where, requires_grad=True)


def training(where, make, clip):
    """Six steps, the first and the fourth with infinite gradients; what came of it."""
    model = network(where)
    optimizer = make(model.parameters(), where)
    scaler = torch.amp.GradScaler(where, init_scale=1024.0, growth_interval=2)
    scales, norms = [], []
    for i in range(6):
        optimizer.zero_grad()
        scaler.scale(loss_of(model, INF if i in (0, 3) else i + 1)).backward()
        if clip:
            scaler.unscale_(optimizer)
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.5).cpu())
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return scales, scaler.state_dict(), norms, [p.detach().cpu() for p in model.parameters()]


@pytest.mark.parametrize("clip", [False, True], ids=["", "clipped after unscale_"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_trains_as_on_the_cpu(device, native, name, clip):
    scales, state, norms, parameters = training(device, OPTIMIZERS[name], clip)
    expected = training("cpu", OPTIMIZERS[name], clip)
    assert (scales, state) == expected[:2]
    assert scales == [512, 512, 1024, 512, 512, 1024]
    # Adam divides by the root of the second moment: the last bits of tiny gradients count.
    assert_close([norms, parameters], list(expected[2:]), equal_nan=True, rtol=2e-5, atol=2e-6)


def test_a_half_precision_training_starts_at_any_scale(device, native):
    """The first scale overflows float16: steps are skipped until it fits, then the loss falls."""
    model = network(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler(device, init_scale=2.0**20)
    before, losses = [p.detach().clone() for p in model.parameters()], []
    for i in range(12):
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.float16):
            loss = loss_of(model, 4)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if i == 0:
            assert all(a.equal(b) for a, b in zip(before, model.parameters(), strict=True))
        losses.append(loss.item())
    assert scaler.get_scale() < 2.0**20
    assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize("value", [INF, -INF, NAN, 8.0], ids=str)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str
)
def test_unscale_finds_what_is_not_finite(device, native, dtype, value):
    def gradients(where):
        made = [torch.arange(float(n)).to(dtype).to(where) for n in (1, 0, 77, 5000)]
        grid = torch.arange(24.0).to(dtype).reshape(6, 4).to(where)
        made += [grid.t(), grid.clone()[:, 1]]
        made[3][4321] = value
        return made

    actual, expected = gradients(device), gradients("cpu")
    for each, where in ((actual, device), (expected, "cpu")):
        found, inverse = torch.zeros((), device=where), torch.tensor(0.25, device=where)
        torch._amp_foreach_non_finite_check_and_unscale_(each, found, inverse)
        assert found.item() == (value != 8.0)
    assert_close([g.cpu() for g in actual], expected, equal_nan=True)


def test_found_inf_gathers_over_calls(device, native):
    found, inverse = torch.zeros((), device=device), torch.ones((), device=device)
    for value in (1.0, INF, 1.0):
        torch._amp_foreach_non_finite_check_and_unscale_(
            [torch.full((2,), value, device=device)], found, inverse
        )
    assert found.item() == 1


def test_many_gradients_share_a_launch(device, module, native):
    gradients = [torch.ones(5 + i, device=device) for i in range(160)]
    found, inverse = torch.zeros((), device=device), torch.ones((), device=device)
    module.synchronize()
    before = module.statistics()["launches"]
    torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, inverse)
    module.synchronize()
    assert 0 < module.statistics()["launches"] - before <= 20


def test_scale_follows_the_rule_of_the_cpu(device, native):
    overflows = [0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0]
    for first in (2.0**16, 3e38, 1e-44):
        seen = []
        for where in (device, "cpu"):
            scale = torch.tensor(first, device=where)
            tracker = torch.zeros((), dtype=torch.int32, device=where)
            steps = []
            for one in overflows:
                found = torch.tensor(float(one), device=where)
                torch._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 2)
                steps.append((scale.item(), tracker.item()))
            seen.append(steps)
        assert seen[0] == seen[1]


def test_outputs_of_any_nesting_are_scaled(device, second, native):
    scaler = torch.amp.GradScaler(device, init_scale=4.0)
    # Not on the CPU: PyTorch copies the scale there without waiting for it.
    one = torch.ones((), device=device)
    one, (two, [three]) = scaler.scale([one, (torch.ones(2, device=second), [one.view(1)])])
    assert (one.item(), two.tolist(), three.tolist()) == (4, [4, 4], [4])
    assert [t.device for t in (one, two, three)] == [
        torch.device(device, 0), torch.device(second), torch.device(device, 0)]  # fmt: skip
    assert scaler.scale(torch.ones(3, dtype=torch.float16, device=device)).dtype == torch.float16
    with pytest.raises(ValueError, match="outputs must be a Tensor or an iterable of Tensors"):
        scaler.scale(3)


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adam fused", "SGD fused"])
def test_an_overflow_on_one_device_skips_the_step_on_all(device, second, native, name):
    a, b = leaf(device), leaf(second)
    optimizer = OPTIMIZERS[name]([a, b], device)
    scaler = torch.amp.GradScaler(device, init_scale=8.0)
    seen = []
    for factor in (1.0, INF, 1.0):
        before = [a.detach().clone(), b.detach().clone()]
        optimizer.zero_grad()
        scaler.scale(a.sum()).backward()
        scaler.scale(b.sum() * factor).backward()
        scaler.step(optimizer)
        scaler.update()
        seen.append([x.equal(y) for x, y in zip(before, (a, b), strict=True)])
    assert seen == [[False, False], [True, True], [False, False]]
    assert scaler.get_scale() == 4
    assert_close(a.cpu(), b.cpu())


def test_optimizers_have_states_of_their_own(device, native):
    a, b = leaf(device), leaf(device)
    first, other = (torch.optim.SGD([p], 0.5) for p in (a, b))
    scaler = torch.amp.GradScaler(device, init_scale=8.0)
    scaler.scale(a.sum() * INF).backward()
    scaler.scale(b.sum()).backward()
    scaler.unscale_(other)  # only one of the two by hand
    assert b.grad.tolist() == [1, 1, 1]
    for optimizer in (first, other):
        scaler.step(optimizer)
    scaler.update()
    assert a.tolist() == [1, 1, 1]
    assert b.tolist() == [0.5] * 3
    assert scaler.get_scale() == 4


def test_accumulated_gradients(device, native):
    p = leaf(device)
    optimizer = torch.optim.SGD([p], 0.25)
    scaler = torch.amp.GradScaler(device, init_scale=8.0)
    for _ in range(2):
        scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    assert p.tolist() == [0.5] * 3


def test_gradient_penalty(device, native):
    results = []
    for where in (device, "cpu"):
        model, scaler = network(where), torch.amp.GradScaler(where, init_scale=16.0)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        loss = loss_of(model)
        scaled = torch.autograd.grad(scaler.scale(loss), model.parameters(), create_graph=True)
        penalty = sum((g / scaler.get_scale()).square().sum() for g in scaled).sqrt()
        scaler.scale(loss + penalty).backward()
        scaler.step(optimizer)
        results.append([p.detach().cpu() for p in model.parameters()])
    assert_close(*results)


def test_sparse_gradients(device):
    bag = nn.EmbeddingBag(5, 2, mode="sum", sparse=True).to(device)
    optimizer = torch.optim.SGD(bag.parameters(), 0.5)
    scaler = torch.amp.GradScaler(device, init_scale=4.0)
    before = bag.weight.detach().clone()
    scaler.scale(bag(torch.tensor([[1, 1, 2]], device=device)).sum()).backward()
    scaler.unscale_(optimizer)
    assert bag.weight.grad.coalesce().values().tolist() == [[2, 2], [1, 1]]
    scaler.step(optimizer)
    assert_close((before - bag.weight.detach()).cpu()[:, 0], torch.tensor([0, 1, 0.5, 0, 0]))


def test_state_goes_through_a_file(device, tmp_path):
    file = tmp_path / "scaler.pt"

    def step(scaler, factor):
        p = leaf(device)
        scaler.scale(p.sum() * factor).backward()
        scaler.step(torch.optim.SGD([p], 0.1))
        scaler.update()
        return scaler.get_scale()

    scaler = torch.amp.GradScaler(device, init_scale=64.0, growth_interval=3)
    assert [step(scaler, f) for f in (INF, 1, 1)] == [32, 32, 32]
    state = scaler.state_dict()
    assert state == {"scale": 32.0, "growth_factor": 2.0, "backoff_factor": 0.5,
                     "growth_interval": 3, "_growth_tracker": 2}  # fmt: skip
    torch.save(state, file)
    fresh = torch.amp.GradScaler(device)
    fresh.load_state_dict(torch.load(file, weights_only=True))
    pickled, copied = pickle.loads(pickle.dumps(scaler)), copy.deepcopy(scaler)
    assert [step(s, 1) for s in (scaler, fresh, pickled, copied)] == [64] * 4
    fresh.load_state_dict({**state, "scale": 5.0})  # after the first use: into its tensors
    assert fresh.get_scale() == 5
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        fresh.load_state_dict({})


def test_the_scale_can_be_set(device, native):
    scaler = torch.amp.GradScaler(device, init_scale=4.0)
    scaler.scale(leaf(device).sum())
    scaler.update(new_scale=16.0)
    assert scaler.get_scale() == 16
    scaler.update(torch.tensor(2.0, device=device))
    assert scaler.get_scale() == 2
    with pytest.raises(AssertionError, match="1-element"):
        scaler.update(torch.ones(2, device=device))


def test_a_disabled_scaler_steps_always(device):
    p = leaf(device)
    scaler = torch.amp.GradScaler(device, enabled=False)
    optimizer = torch.optim.SGD([p], 0.5)
    assert scaler.scale(p) is p
    (p.sum() * INF).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [-INF] * 3
    assert (scaler.get_scale(), scaler.state_dict()) == (1.0, {})


def test_fused_optimizers_take_a_scale_by_hand(device, second, native):
    for where in (device, second):  # the scale may lie on another device
        p = leaf(where)
        p.grad = torch.full((3,), 8.0, device=where)
        optimizer = torch.optim.SGD([p], 1.0, fused=True)
        optimizer.grad_scale = torch.tensor(8.0, device=device)
        optimizer.found_inf = torch.zeros((), device=device)
        optimizer.step()
        assert (p.tolist(), p.grad.tolist()) == ([0] * 3, [1] * 3)
        optimizer.found_inf.fill_(1)
        optimizer.step()
        assert p.tolist() == [0] * 3


def test_scaler_in_a_captured_graph(device, module):
    gradient, found = torch.full((5,), 8.0, device=device), torch.zeros((), device=device)
    scale = torch.tensor(8.0, device=device)
    tracker = torch.zeros((), dtype=torch.int32, device=device)
    graph = torch.accelerator.Graph()
    with module.graph(graph):
        found.zero_()
        torch._amp_foreach_non_finite_check_and_unscale_([gradient], found, scale.reciprocal())
        torch._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 1)
    graph.replay()
    assert (gradient.tolist(), scale.item()) == ([1.0] * 5, 16)
    gradient[2] = NAN
    graph.replay()
    assert (found.item(), scale.item()) == (1, 8)


def test_wrong_order_of_calls(device):
    def refused(kind, text, call, *args, **keywords):
        with pytest.raises(kind, match=text):
            call(*args, **keywords)

    p = leaf(device)
    optimizer, scaler = torch.optim.SGD([p], 0.1), torch.amp.GradScaler(device)
    refused(AssertionError, "Attempted step but _scale is None", scaler.step, optimizer)
    refused(AssertionError, "Attempted update but _scale is None", scaler.update)
    scaler.scale(p.sum()).backward()
    refused(RuntimeError, "Closure use is not", scaler.step, optimizer, closure=lambda: 1)
    refused(AssertionError, "No inf checks were recorded prior to update", scaler.update)
    idle = torch.optim.SGD([leaf(device)], 0.1)
    refused(AssertionError, "No inf checks were recorded for this", scaler.step, idle)
    scaler.unscale_(optimizer)
    refused(RuntimeError, "unscale_.. has already been called", scaler.unscale_, optimizer)
    scaler.step(optimizer)
    refused(RuntimeError, "step.. has already been called", scaler.step, optimizer)
    refused(RuntimeError, "unscale_.. is being called after step", scaler.unscale_, optimizer)
    half = torch.ones(2, dtype=torch.float16, device=device, requires_grad=True)
    scaler.scale(half.sum()).backward()
    refused(ValueError, "Attempting to unscale FP16", scaler.unscale_, torch.optim.SGD([half], 0.1))


def test_wrong_tensors(device, second):
    unscale, update = torch._amp_foreach_non_finite_check_and_unscale_, torch._amp_update_scale_

    def number(dtype=torch.float32, where=device, n=()):
        return torch.zeros(n, dtype=dtype, device=where)

    whole, double = torch.int32, torch.float64
    for arguments, text in [
        (([number(n=2)], number(), number(double)), "inv_scale must be"),
        (([number(n=2)], number(double), number()), "found_inf must be"),
        (([number(n=2)], number(), number(n=2)), "inv_scale must be a 1-element tensor"),
        (([number(n=2)], number(n=2), number()), "found_inf must be a 1-element tensor"),
        (([number(whole, n=2)], number(), number()), "Int"),
        (([number(n=2)], number(where="cpu"), number(where="cpu")), "same device"),
        (([number(n=2, where=second)], number(), number()), "same device"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            unscale(*arguments)
    for arguments, text in [
        ((number(double), number(whole), number()), "current_scale must be"),
        ((number(n=2), number(whole), number()), "current_scale must be a 1-element tensor"),
        ((number(), number(torch.int64), number()), "growth_tracker must be"),
        ((number(), number(whole), number(where=second)), "same device"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            update(*arguments, 2.0, 0.5, 1)


def test_module_of_the_old_name(device, module, python):
    """torch.cuda.amp with the device's name changed."""
    p = leaf(device)
    scaler = module.amp.GradScaler(init_scale=8.0)
    assert isinstance(scaler, torch.amp.GradScaler)
    scaler.scale(p.sum()).backward()
    scaler.step(torch.optim.SGD([p], 0.5))
    scaler.update()
    assert p.tolist() == [0.5] * 3
    assert pickle.loads(pickle.dumps(scaler)).get_scale() == 8
    code = """
        import warnings
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            scaler = getattr(torch, D).amp.GradScaler()
        print(json.dumps([scaler.is_enabled(), [str(w.message) for w in seen]]))
    """
    enabled, (message,) = python(code, GRAFT_DEVICES=None, GRAFT_HOST_DEVICES="0").value()
    assert not enabled
    assert "GradScaler is enabled, but there is no device" in message


def test_fused_momentum_survives_a_first_step_that_is_skipped(device):
    results = []
    for fused in (True, False):
        p = torch.ones(50, device=device, requires_grad=True)
        optimizer = torch.optim.SGD([p], 0.1, momentum=0.9, fused=fused)
        scaler = torch.amp.GradScaler(device, init_scale=8.0)
        for factor in (float("inf"), 1.0, 2.0):
            torch.full(
                (50,), float("nan"), device=device
            )  # what the buffers get if nobody writes them
            optimizer.zero_grad()
            scaler.scale(p.sum() * factor).backward()
            scaler.step(optimizer)
            scaler.update()
        results.append(p.detach())
    torch.testing.assert_close(*results)

# tests/python/deployment/test_training_step.py: steps of training in files give what the process gives.
from __future__ import annotations

import copy
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import digits
import torch_graft
from inference import built, graft_infer
from steps_in_process import Batch, batches, loss_of, network, stepped, trained
from torch_graft.deployment.traced_call import NotDeployable

pytestmark = [pytest.mark.any_driver, pytest.mark.one_mode]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def weights_of(step: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value for name, value in step.state_dict().items()
            if not name.startswith("optimizer.")}  # fmt: skip


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda given: torch.optim.SGD(given, lr=0.1),
    "momentum": lambda given: torch.optim.SGD(given, lr=0.05, momentum=0.9, weight_decay=0.01),
    "nesterov": lambda given: torch.optim.SGD(given, lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda given: torch.optim.Adam(given, lr=0.01),
    "adamw": lambda given: torch.optim.AdamW(given, lr=0.01, weight_decay=0.1),
    "amsgrad": lambda given: torch.optim.Adam(given, lr=0.01, amsgrad=True, weight_decay=0.1),
    "rmsprop": lambda given: torch.optim.RMSprop(given, lr=0.01, momentum=0.5),
    "adagrad": lambda given: torch.optim.Adagrad(given, lr=0.05, lr_decay=0.1),
    "nadam": lambda given: torch.optim.NAdam(given, lr=0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_ten_steps_are_those_of_the_process(name: str, device: str, tmp_path: Path) -> None:
    data = batches(device)
    model = network().to(device)
    optimizer = OPTIMIZERS[name](model.parameters())
    path = tmp_path / "step.graft"
    torch_graft.deploy_training_step(model, loss_of, optimizer, data[0], path)
    step = torch_graft.load(path)
    losses = stepped(step, data)
    torch.testing.assert_close(losses, trained(model, optimizer, data), rtol=2e-5, atol=2e-6)
    wanted = model.state_dict()
    assert weights_of(step).keys() == wanted.keys()
    torch.testing.assert_close(weights_of(step), wanted, rtol=1e-4, atol=2e-6)
    host = network()
    on_cpu = [(x.cpu(), y.cpu()) for x, y in data]
    expected = trained(host, OPTIMIZERS[name](host.parameters()), on_cpu)
    torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-5)
    assert losses[-1] != losses[0]


def test_an_optimizer_goes_on_from_its_step(device: str, tmp_path: Path) -> None:
    data = batches(device)
    model = network().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    trained(model, optimizer, data[:4])
    path = tmp_path / "step.graft"
    torch_graft.deploy_training_step(model, loss_of, optimizer, data[0], path)
    step = torch_graft.load(path)
    assert step.get_buffer("optimizer.0.weight.step").item() == 4
    losses = stepped(step, data[4:])
    torch.testing.assert_close(losses, trained(model, optimizer, data[4:]), rtol=2e-5, atol=2e-6)
    again = network().to(device)
    missing = again.load_state_dict(step.state_dict(), strict=False).missing_keys
    assert missing == []
    torch.testing.assert_close(again.state_dict(), model.state_dict(), rtol=1e-4, atol=2e-6)
    key = "optimizer.4.bias.exp_avg"
    torch.testing.assert_close(
        step.get_buffer(key), optimizer.state[model[4].bias]["exp_avg"], rtol=1e-4, atol=1e-6
    )


def test_nothing_of_the_caller_changes(device: str, tmp_path: Path) -> None:
    data = batches(device, 2)
    model = network(0.5).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loss_of(model, *data[0]).backward()
    gradients = [one.grad for one in model.parameters()]
    tensors = [*model.state_dict(keep_vars=True).values(), *gradients]
    before = [(one, one._version, one.detach().clone()) for one in tensors]
    numbers = torch.get_device_module(device).get_rng_state()
    torch_graft.deploy_training_step(model, loss_of, optimizer, data[0], tmp_path / "step.graft")
    for one, version, value in before:
        assert one._version == version
        assert torch.equal(one, value)
    assert all(one.grad is kept for one, kept in zip(model.parameters(), gradients, strict=True))
    assert optimizer.state == {}
    assert optimizer.param_groups[0]["lr"] == 0.01
    assert not optimizer.param_groups[0]["capturable"]
    assert torch.equal(torch.get_device_module(device).get_rng_state(), numbers)
    assert all(one.is_leaf and one.requires_grad for one in model.parameters())


def test_dropout_draws_what_the_process_draws(device: str, tmp_path: Path) -> None:
    data = batches(device, 4)
    model = network(0.5).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    path = tmp_path / "step.graft"
    torch_graft.deploy_training_step(model, loss_of, optimizer, data[0], path)
    step = torch_graft.load(path)
    torch.manual_seed(7)
    losses = stepped(step, data)
    torch.manual_seed(7)
    torch.testing.assert_close(losses, trained(model, optimizer, data), rtol=2e-5, atol=2e-6)
    other = torch_graft.load(path)
    torch.manual_seed(8)
    assert not torch.allclose(stepped(other, data), losses)
    assert program_step(path, data[0], tmp_path, "--seed", "7") == losses[0]


def program_step(path: Path, batch: Batch, folder: Path, *words: str) -> torch.Tensor:
    """The loss of a step of graft-infer."""
    inputs: list[str] = []
    for name, one in zip("xy", batch, strict=True):
        numpy.save(folder / f"{name}.npy", one.cpu().numpy())
        inputs += ["--input", f"{folder}/{name}.npy"]
    ran = graft_infer(str(path), *inputs, "--output", f"{folder}/out_", *words)
    assert ran.returncode == 0, ran.stderr
    return torch.from_numpy(numpy.load(folder / "out_loss.npy"))


def test_a_loop_of_graft_infer_trains(device: str, tmp_path: Path) -> None:
    data = batches(device, 3)
    model = network().to(device)
    path = tmp_path / "step.graft"
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch_graft.deploy_training_step(model, loss_of, optimizer, data[0], path)
    told = graft_infer(str(path)).stdout
    assert "input  x: float32[8, 6]\ninput  y: int64[8]\noutput loss: float32[]\n" in told
    assert "state  optimizer.lr: float32[]" in told
    step = torch_graft.load(path)
    for batch in data:
        found = program_step(path, batch, tmp_path, "--state", f"{tmp_path}/s_")
        assert torch.equal(found, step(*batch).cpu())
    for name, value in step.state_dict().items():
        kept = torch.from_numpy(numpy.load(tmp_path / f"s_{name}.npy"))
        assert torch.equal(kept, value.cpu()), name


def test_a_program_in_cpp_trains(device: str, tmp_path: Path) -> None:
    data = batches(device, 6)
    model = network().to(device)
    path = tmp_path / "step.graft"
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    torch_graft.deploy_training_step(model, loss_of, optimizer, data[0], path, dynamic=True)
    torch.cat([x for x, _ in data]).cpu().numpy().tofile(tmp_path / "x")
    torch.cat([y for _, y in data]).cpu().numpy().tofile(tmp_path / "y")
    program = built(tmp_path, "c++", "-std=c++17", source="training_program.cpp")
    ran = subprocess.run(
        [program, path, tmp_path / "x", tmp_path / "y", tmp_path / "weight"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    step = torch_graft.load(path)
    losses = [step(*batch).item() for batch in data[:3]]
    step.get_buffer("optimizer.lr").fill_(0.01)
    losses += [step(*batch).item() for batch in data[3:]]
    assert [float(line) for line in ran.stdout.split()] == losses
    weight = torch.from_numpy(numpy.fromfile(tmp_path / "weight", "float32")).reshape(16, 6)
    assert torch.equal(weight, step.state_dict()["0.weight"].cpu())


def test_the_learning_rate_is_set_between_steps(device: str, tmp_path: Path) -> None:
    data = batches(device, 6)
    model = network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    path = tmp_path / "step.graft"
    torch_graft.deploy_training_step(model, loss_of, optimizer, data[0], path)
    step = torch_graft.load(path)
    for batch in data:
        loss = trained(model, optimizer, [batch])
        torch.testing.assert_close(stepped(step, [batch]), loss, rtol=2e-5, atol=2e-6)
        schedule.step()
        step.get_buffer("optimizer.lr").fill_(optimizer.param_groups[0]["lr"])
    torch.testing.assert_close(weights_of(step), model.state_dict(), rtol=1e-4, atol=2e-6)


def test_groups_of_parameters_have_their_own(device: str, tmp_path: Path) -> None:
    data = batches(device, 3)
    model = network().to(device)
    rate = torch.tensor(0.2, device=device)
    optimizer = torch.optim.SGD(
        [{"params": model[0].parameters(), "lr": rate}, {"params": model[4].parameters()}], lr=0.1
    )
    path = tmp_path / "step.graft"
    torch_graft.deploy_training_step(model, loss_of, optimizer, data[0], path)
    step = torch_graft.load(path)
    rates = {name: value.item() for name, value in step.state_dict().items() if "lr" in name}
    assert rates == pytest.approx({"optimizer.groups.0.lr": 0.2, "optimizer.groups.1.lr": 0.1})
    torch.testing.assert_close(
        stepped(step, data), trained(model, optimizer, data), rtol=2e-5, atol=2e-6
    )
    torch.testing.assert_close(weights_of(step)["1.weight"], torch.ones(16, device=device))


def test_other_results_and_names(device: str, tmp_path: Path) -> None:
    def scored(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> dict[str, Any]:
        scores = model(images)
        right = (scores.gather(1, labels[:, None]) >= scores.amax(1, True)).sum()
        return {"scores": scores, "loss": F.cross_entropy(scores, labels), "right": right, "of": 8}

    batch = batches(device, 1)[0]
    model = network().to(device)
    wanted = scored(copy.deepcopy(model), *batch)
    path = tmp_path / "step.graft"
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = {"labels": batch[1], "images": batch[0]}
    torch_graft.deploy_training_step(model, scored, optimizer, inputs, path)
    found = torch_graft.load(path)(**inputs)
    assert list(found) == ["scores", "loss", "right", "of"]
    torch.testing.assert_close(found, wanted)
    assert not found["loss"].requires_grad
    assert "output right: int64[]" in graft_infer(str(path)).stdout
    pair = tmp_path / "pair.graft"
    torch_graft.deploy_training_step(
        model, lambda model, x, y: (loss_of(model, x, y), model(x)), optimizer, batch, pair
    )
    assert "output loss: float32[]\noutput 1: float32[8, 3]" in graft_infer(str(pair)).stdout


def test_one_file_for_all_batches(device: str, tmp_path: Path) -> None:
    model = network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    path = tmp_path / "step.graft"
    example = batches(device, 1, rows=6)[0]  # as many as columns
    torch_graft.deploy_training_step(model, loss_of, optimizer, example, path, dynamic=True)
    step = torch_graft.load(path)
    for rows in (8, 3, 64):
        data = batches(device, 1, rows)
        wanted = trained(model, optimizer, data)
        torch.testing.assert_close(stepped(step, data), wanted, rtol=2e-5, atol=2e-6)


class Tokens(nn.Module):
    """A table, an attention without dropout, layer norm."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.qkv = nn.Linear(8, 24)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.table(tokens)
        query, key, value = self.qkv(x).unflatten(-1, (6, 4)).transpose(1, 2).chunk(3, 1)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.head(self.norm(x + seen.transpose(1, 2).flatten(2)))


def test_a_language_model(device: str, tmp_path: Path) -> None:
    torch.manual_seed(3)
    model = Tokens().to(device)
    data = [(torch.randint(0, 11, (4, 6)).to(device),) for _ in range(5)]

    def next_token(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    path = tmp_path / "step.graft"
    torch_graft.deploy_training_step(model, next_token, optimizer, data[0], path)
    step = torch_graft.load(path)
    losses = stepped(step, data)  # type: ignore[arg-type]
    wanted = trained(model, optimizer, data, next_token)  # type: ignore[arg-type]
    torch.testing.assert_close(losses, wanted, rtol=5e-5, atol=5e-6)
    again = Tokens().to(device)
    again.load_state_dict(step.state_dict(), strict=False)
    torch.testing.assert_close(again.state_dict(), model.state_dict(), rtol=2e-4, atol=5e-5)


class Count(torch.optim.Optimizer):
    """Steps of falling size, counted in a tensor or in a number."""

    def __init__(self, parameters: Any, counter: Any) -> None:
        super().__init__(parameters, {"lr": 0.5})
        self.counter = counter

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for one in group["params"]:
                if one.grad is not None:
                    state = self.state[one]
                    state.setdefault("count", self.counter)
                    state["count"] = state["count"] + 1
                    one.sub_(one.grad * (group["lr"] / state["count"]))


def test_an_optimizer_of_the_users(device: str, tmp_path: Path) -> None:
    data = batches(device, 4)
    model = network().to(device)
    optimizer = Count(model.parameters(), torch.zeros((), device=device))
    path = tmp_path / "step.graft"
    with pytest.raises(NotDeployable, match="a step changes count of Count from 0 to 1"):
        torch_graft.deploy_training_step(
            model, loss_of, Count(model.parameters(), 0), data[0], path
        )
    assert not path.exists()
    torch_graft.deploy_training_step(model, loss_of, optimizer, data[0], path)
    step = torch_graft.load(path)
    losses = stepped(step, data)
    torch.testing.assert_close(losses, trained(model, optimizer, data), rtol=2e-5, atol=2e-6)
    assert step.get_buffer("optimizer.0.weight.count").item() == 4


def test_the_digits_train_from_a_file(device: str, tmp_path: Path) -> None:
    train_x, train_y, test_x, test_y = digits.load()
    torch.manual_seed(0)
    model = digits.Net().to(device)
    step_model = copy.deepcopy(model)
    optimizer = torch.optim.SGD(step_model.parameters(), lr=0.05, momentum=0.9)
    first = train_x[: digits.BATCH].to(device), train_y[: digits.BATCH].to(device)
    path = tmp_path / "digits.graft"
    torch_graft.deploy_training_step(step_model, loss_of, optimizer, first, path)
    step = torch_graft.load(path)
    torch.manual_seed(5)
    wanted = digits.steps(model, device, train_x, train_y, 3, 0, False)
    torch.manual_seed(5)
    order = torch.Generator().manual_seed(0)
    losses = []
    for _ in range(3):
        shuffled = torch.randperm(len(train_x), generator=order)
        for i in range(len(train_x) // digits.BATCH):
            rows = shuffled[i * digits.BATCH : (i + 1) * digits.BATCH]
            losses.append(step(train_x[rows].to(device), train_y[rows].to(device)).cpu())
    curve = torch.stack(losses)
    torch.testing.assert_close(curve[:10], wanted[:10], rtol=1e-3, atol=1e-4)
    step_model.load_state_dict(step.state_dict(), strict=False)
    images = test_x.to(device)
    ours = digits.correct(digits.logits_of(step_model, images).cpu(), test_y) / len(test_y)
    theirs = digits.correct(digits.logits_of(model, images).cpu(), test_y) / len(test_y)
    assert ours > 0.9
    assert abs(ours - theirs) < 0.03


def test_a_model_that_is_optimized_for_training(device: str, tmp_path: Path) -> None:
    data = batches(device, 3)
    model = torch_graft.optimize(network().to(device), mode="training", dtype=torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    path = tmp_path / "step.graft"
    torch_graft.deploy_training_step(model, loss_of, optimizer, data[0], path)
    losses = stepped(torch_graft.load(path), data)
    torch.testing.assert_close(losses, trained(model, optimizer, data), rtol=2e-2, atol=2e-2)

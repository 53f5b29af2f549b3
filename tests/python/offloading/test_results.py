# tests/python/offloading/test_results.py: an offloaded model takes and gives what its model does on the CPU.
from __future__ import annotations

import copy
import io
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import torch_graft
from networks import NETWORKS
from optimized_net import Net
from traced_models import CASES

pytestmark = [pytest.mark.any_driver, pytest.mark.one_mode]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def leaves(result: object) -> list[torch.Tensor]:
    return [one for one in torch.utils._pytree.tree_leaves(result) if isinstance(one, torch.Tensor)]


def close(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    for one, wanted in zip(leaves(found), leaves(expected), strict=True):
        assert one.device.type == "cpu"
        assert_close(one, wanted.detach(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("where", ["graft", "ve"])
def test_numbers_equal_the_cpus(where: str, device: str) -> None:
    model = Net().eval()
    offloaded = torch_graft.optimize(model, device=device if where == "graft" else where)
    for batch in (2, 3, 2):
        x = torch.randn(batch, 3, 8, 8)
        close(offloaded(x), model(x))
    assert all(one.device.type == "cpu" for one in offloaded.parameters())


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name: str, device: str) -> None:
    make_model, make_inputs = NETWORKS[name]
    model = make_model().eval()
    offloaded = torch_graft.optimize(model, device=device)
    for _ in range(2):
        inputs = make_inputs()
        close(offloaded(*inputs), model(*inputs))


@pytest.mark.parametrize("name", [name for name in CASES if name != "counting"])
def test_written_arguments_aliases_and_views(name: str, device: str) -> None:
    make_model, make_inputs = CASES[name]
    model = make_model().eval()
    offloaded = torch_graft.optimize(copy.deepcopy(model), device=device)
    for _ in range(3):
        inputs = make_inputs()
        same = copy.deepcopy(inputs)
        with torch.no_grad():
            close(offloaded(*same), model(*inputs))
        close(same, inputs)
    close(list(offloaded.buffers()), list(model.buffers()))


def test_everything_is_the_models(device: str) -> None:
    model = Net()
    offloaded = torch_graft.optimize(model, device=device)
    assert isinstance(offloaded, Net)
    assert list(offloaded.state_dict()) == list(model.state_dict())
    assert all(a is b for a, b in zip(offloaded.parameters(), model.parameters(), strict=True))
    assert offloaded.eval() is offloaded
    assert not model.training
    assert not model.norm.training
    x = torch.randn(2, 3, 8, 8)
    close(offloaded.conv(x), model.conv(x))


class Forms(nn.Module):
    """Takes and gives nested containers, numbers, texts and None."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, given: dict[str, Any], *, scale: float, names: list[str], rest: Any = None):
        first, (second, number) = given["x"], given["pair"]
        y = self.linear(first) * scale + second * number
        result = {"y": y, "again": [y, (first, None)], "names": names, "weight": self.linear.weight}
        return result if rest is None else (result, rest + 1)


def test_nested_arguments_and_results(device: str) -> None:
    model = Forms().eval()
    offloaded = torch_graft.optimize(model, device=device)
    for rest in (None, torch.tensor(3), 7):
        x = torch.randn(3, 4)
        given = {"x": x, "pair": (torch.randn(3, 4), 2)}
        found = offloaded(given, scale=0.5, names=["a"], rest=rest)
        expected = model(given, scale=0.5, names=["a"], rest=rest)
        close(found, expected)
        result = found if rest is None else found[0]
        assert result["again"][0] is result["y"]
        assert result["again"][1][0] is x
        assert result["weight"] is model.linear.weight
        assert result["names"] == ["a"]


def test_arguments_on_the_device_are_taken(device: str) -> None:
    model = Net().eval()
    offloaded = torch_graft.optimize(model, device=device)
    x = torch.randn(2, 3, 8, 8)
    close(offloaded(x.to(device)), model(x))


def test_layouts_of_arguments(device: str) -> None:
    model = nn.Linear(4, 3).eval()
    offloaded = torch_graft.optimize(model, device=device)
    base = torch.randn(4, 6)
    for x in (base.t(), base[:, :1].expand(4, 4), base[::2, ::1][:, :4], torch.empty(0, 4),
              base.t().pin_memory()):  # fmt: skip
        close(offloaded(x), model(x))


def test_a_packed_sequence_goes_there_and_back(device: str) -> None:
    model = nn.LSTM(3, 4).eval()
    offloaded = torch_graft.optimize(model, device=device)
    packed = nn.utils.rnn.pack_sequence([torch.randn(5, 3), torch.randn(2, 3)])
    found, expected = offloaded(packed), model(packed)
    assert_close(found[0].data, expected[0].data.detach(), rtol=1e-4, atol=1e-4)
    close(found[1], expected[1])


def test_running_statistics_come_back(device: str) -> None:
    model = Net().train()
    offloaded = torch_graft.optimize(copy.deepcopy(model), device=device)
    for _ in range(3):
        x = torch.randn(4, 3, 8, 8)
        with torch.no_grad():
            close(offloaded(x), model(x))
        close(list(offloaded.buffers()), list(model.buffers()))
    assert offloaded.norm.num_batches_tracked.item() == 3
    offloaded.norm.reset_running_stats()
    model.norm.reset_running_stats()
    x = torch.randn(2, 3, 8, 8)
    close(offloaded.eval()(x), model.eval()(x))


class Remembering(nn.Module):
    """Assigns to its attributes and fills its containers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.calls, self.seen, self.last = 0, [], None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total = self.total + x.sum(0)
        self.calls += 1
        self.seen.append(x.mean(0))
        self.last = x * 2
        return self.total * self.calls + sum(self.seen)


def test_attributes_that_a_call_assigns_come_back(device: str) -> None:
    model = Remembering()
    offloaded = torch_graft.optimize(copy.deepcopy(model), device=device)
    for _ in range(3):
        x = torch.randn(2, 3)
        close(offloaded(x), model(x))
        close(
            [offloaded.total, offloaded.last, *offloaded.seen],
            [model.total, model.last, *model.seen],
        )
        assert offloaded.calls == model.calls
    assert list(offloaded.state_dict()) == ["total"]


def test_hooks(device: str) -> None:
    model = Net().eval()
    offloaded = torch_graft.optimize(model, device=device)
    x, places = torch.randn(2, 3, 8, 8), []
    offloaded(x)
    offloaded.register_forward_pre_hook(lambda module, args: places.append(args[0].device.type))
    offloaded.register_forward_hook(lambda module, args, result: result + 1)
    model.conv.register_forward_hook(lambda module, args, result: result * 3)
    assert_close(offloaded(x), model(x).detach(), rtol=1e-4, atol=1e-4)
    assert places == ["cpu", "cpu"]


def test_the_model_changes_its_shape(device: str) -> None:
    model = Net().eval()
    offloaded = torch_graft.optimize(model, device=device)
    x = torch.randn(2, 3, 8, 8)
    close(offloaded(x), model(x))
    model.head = nn.Linear(8, 9)
    close(offloaded(x), model(x))
    model.scale = 0.25
    close(offloaded(x), model(x))
    model.norm = nn.Identity()
    close(offloaded(x), model(x))
    model.head.bias = None
    close(offloaded(x), model(x))
    model.half().float().to(memory_format=torch.channels_last)
    close(offloaded(x), model(x))


def test_tied_weights_stay_tied(device: str) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)).eval()
    model[2].weight = model[0].weight
    offloaded = torch_graft.optimize(model, device=device)
    x = torch.randn(2, 4)
    close(offloaded(x), model(x))
    with torch.no_grad():
        model[0].weight.mul_(2)
    close(offloaded(x), model(x))


def test_autocast_of_the_cpu_holds(device: str) -> None:
    model = nn.Linear(8, 8).eval()
    offloaded = torch_graft.optimize(model, device=device)
    x = torch.randn(2, 8)
    with torch.autocast("cpu", torch.bfloat16):
        found, expected = offloaded(x), model(x)
    assert found.dtype == expected.dtype == torch.bfloat16
    assert_close(found, expected.detach(), rtol=2e-2, atol=2e-2)
    assert offloaded(x).dtype == torch.float32


def test_copies_and_files(device: str) -> None:
    model = Net().eval()
    offloaded = torch_graft.optimize(model, device=device)
    x = torch.randn(2, 3, 8, 8)
    expected = offloaded(x)
    file = io.BytesIO()
    torch.save(offloaded, file)
    file.seek(0)
    for other in (copy.deepcopy(offloaded), torch.load(file, weights_only=False)):
        assert_close(other(x), expected)
        with torch.no_grad():
            other.head.bias.add_(1)
        assert_close(other(x), expected + 1, rtol=1e-4, atol=1e-4)
    assert_close(offloaded(x), expected)


def test_threads_take_turns(device: str) -> None:
    model = Net().eval()
    offloaded = torch_graft.optimize(model, device=device)
    inputs = [torch.randn(2, 3, 8, 8) for _ in range(4)]
    found: dict[int, torch.Tensor] = {}

    def call(place: int) -> None:
        for _ in range(3):
            found[place] = offloaded(inputs[place])

    threads = [threading.Thread(target=call, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place, x in enumerate(inputs):
        close(found[place], model(x))


def test_under_compile_and_modes_the_model_runs_as_it_is(device: str) -> None:
    model = Net().eval()
    offloaded = torch_graft.optimize(model, device=device)
    x = torch.randn(2, 3, 8, 8)
    compiled = torch.compile(offloaded, backend="eager")
    with torch.no_grad():
        close(compiled(x), model(x))
        offloaded(x)
        with torch.inference_mode():
            close(offloaded(x), model(x))
    model.conv.weight.data.mul_(2)
    close(offloaded(x), model(x))
    traced = torch.fx.experimental.proxy_tensor.make_fx(offloaded)(x)
    close(traced(x).detach(), model(x).detach())

# tests/python/compiler/test_optimized_calls.py: copies, arguments, errors and tracers of optimized modules.
from __future__ import annotations

import copy
import gc
import io
import pickle
import warnings
import weakref
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import torch_graft
from optimized_net import DEVICE, Branching, Net, check, fresh, hits, image, pair
from torch_graft.compiler.optimizing import Optimized

pytestmark = [pytest.mark.both_modes, pytest.mark.any_driver]

_reset = pytest.fixture(autouse=True)(fresh)


def test_hooks_of_the_module_itself_run_once() -> None:
    _model, optimized = pair()
    seen: list[str] = []
    optimized.register_forward_pre_hook(lambda module, args: seen.append("before"))
    optimized.register_forward_hook(lambda module, args, result: seen.append("after"))
    optimized(image())
    optimized(image())
    assert seen == ["before", "after"] * 2


@pytest.mark.parametrize("way", ["pickle", "torch.save", "deepcopy"])
def test_copies_are_optimized_modules_of_their_own(way: str) -> None:
    model, optimized = pair()
    x = image()
    expected = optimized(x)
    if way == "pickle":
        other = pickle.loads(pickle.dumps(optimized))
    elif way == "deepcopy":
        other = copy.deepcopy(optimized)
    else:
        file = io.BytesIO()
        torch.save(optimized, file)
        file.seek(0)
        other = torch.load(file, weights_only=False)
    assert isinstance(other, Optimized)
    assert type(other) is type(optimized)
    for _ in range(2):
        assert_close(other(x), expected)
    assert hits(other) == 1
    model.head.bias.data.add_(1)
    assert_close(other(x), expected)
    assert_close(optimized(x), expected + 2 * 0 + 1)


def test_nothing_keeps_the_model_alive() -> None:
    model, optimized = pair()
    optimized(image())
    optimized(image())
    gone = [weakref.ref(model), weakref.ref(optimized), weakref.ref(model.conv)]
    del model, optimized
    torch._dynamo.reset()
    gc.collect()
    assert [one() for one in gone] == [None] * 3


class Structured(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, batch: dict[str, Any], *, times: int = 1, flag: bool = False) -> Any:
        y = self.linear(batch["x"]) * times
        return {"y": y, "both": (y, batch["x"]), "list": [y + 1, None, "name"]}, flag


def test_structured_arguments_and_results() -> None:
    model = Structured().eval().to(DEVICE)
    optimized = torch_graft.optimize(model)
    for times in (1, 2, 2, 1):
        batch = {"x": torch.randn(2, 4, device=DEVICE), "rest": [1, None]}
        with torch.no_grad():
            expected = model(batch, times=times, flag=True)
        found = optimized(batch, times=times, flag=True)
        assert_close(found[0]["y"], expected[0]["y"])
        assert list(found[0]) == ["y", "both", "list"]
        assert found[0]["list"][1:] == [None, "name"]
        assert found[0]["both"][1] is batch["x"]
        assert found[0]["both"][0] is found[0]["y"]
        assert found[1] is True
    assert hits(optimized) == 2


def test_arguments_that_alias_are_told_apart() -> None:
    class Two(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a + 2 * b if a is b else a - b

    model = Two().eval().to(DEVICE)
    optimized = torch_graft.optimize(model)
    a, b = torch.ones(3, device=DEVICE), torch.ones(3, device=DEVICE)
    for _ in range(2):
        check(model, optimized, a, b)
        check(model, optimized, a, a)


def test_what_cannot_be_compiled_runs_eagerly_with_one_warning() -> None:
    model = Branching().eval().to(DEVICE)
    optimized = torch_graft.optimize(model)
    x = torch.randn(2, 4, device=DEVICE)
    with pytest.warns(UserWarning, match="Branching runs eagerly, because the compiler refuses it"):
        check(model, optimized, x)
    check(model, optimized, x)  # warnings are errors here
    check(model, optimized, -x)


def test_wrong_shapes_give_eagers_error() -> None:
    model, optimized = pair()
    optimized(image())
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(RuntimeError, match=r"channels|shape"):
                optimized(torch.randn(2, 4, 8, 8, device=DEVICE))
    check(model, optimized, image())


def test_mixed_devices_are_named() -> None:
    model, optimized = pair()
    with pytest.raises(RuntimeError, match=r"conv.weight on graft:0, argument 0 on cpu"):
        optimized(torch.randn(2, 3, 8, 8))
    model.head.to("cpu")
    with pytest.raises(RuntimeError, match=r"head.weight on cpu"):
        optimized(image())


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((lambda x: x,), TypeError, "takes a torch.nn.Module, got a function"),
        ((Net(), 1, 2), TypeError, "do not fit Net.forward"),
    ],
)
def test_bad_arguments_are_named(arguments: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        torch_graft.optimize(*arguments)


def test_bad_options_are_named() -> None:
    with pytest.raises(ValueError, match='mode must be "inference" or "training", got \'fast\''):
        torch_graft.optimize(Net(), mode="fast")
    with pytest.raises(ValueError, match=r"got torch\.int8"):
        torch_graft.optimize(Net(), dtype=torch.int8)
    with pytest.raises(
        TypeError, match="is already optimized: give optimize\\(\\) the original module"
    ):
        torch_graft.optimize(torch_graft.optimize(Net()))


def test_grad_mode_and_autocast_are_told_apart() -> None:
    model = nn.Linear(8, 8).to(DEVICE)
    optimized = torch_graft.optimize(model, mode="training")
    x = torch.randn(2, 8, device=DEVICE)
    for _ in range(2):
        assert optimized(x).requires_grad
        with torch.no_grad():
            assert not optimized(x).requires_grad
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            assert optimized(x).dtype == torch.bfloat16


def test_tracers_see_the_model() -> None:
    model, optimized = pair()
    x = image()
    optimized(x)
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert optimized(mode.from_tensor(x)).shape == (2, 5)
    compiled = torch.compile(optimized, backend="eager", fullgraph=True)
    check(model, compiled, x)


def test_attributes_that_the_model_changes_are_followed() -> None:
    class Calls(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0
            self.sizes = [1.0, 2.0]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x * self.calls + self.sizes[1]

    model = Calls().eval()
    model.register_buffer("place", torch.zeros(1, device=DEVICE))
    optimized = torch_graft.optimize(model)
    x = torch.ones(2, device=DEVICE)
    for call in range(1, 5):
        assert_close(optimized(x), x * call + 2)


def test_lists_of_the_model_are_looked_at() -> None:
    class Listed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.sizes = [1.0, 2.0]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.sizes[1]

    optimized = torch_graft.optimize(Listed().eval())
    x = torch.ones(2, device=DEVICE)
    for _ in range(2):
        assert_close(optimized(x), x * 2)
    optimized.sizes[1] = 5.0
    for _ in range(2):
        assert_close(optimized(x), x * 5)
    assert hits(optimized) == 2


def test_other_devices_run_the_model() -> None:
    model = Net().eval()
    optimized = torch_graft.optimize(model)
    x = torch.randn(1, 3, 8, 8)
    assert_close(optimized(x), model(x).detach())
    assert not optimized(x).requires_grad
    assert len(optimized._graft_calls) == 0

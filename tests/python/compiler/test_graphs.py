"""Models as texts: they read back, pass by pass they compute what eager computes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from eager_comparison import close, run
from graph_interpreter import Interpreter
from torch_graft import _C
from torch_graft.compiler.tracing import Traced, backend
from traced_models import CASES

pytestmark = pytest.mark.one_mode


class Stages:
    """A graph after each of its passes; a call runs all of them and compares."""

    def __init__(self, traced: Traced) -> None:
        if traced.refusal is not None:
            raise traced.refusal
        assert traced.written is not None
        text = _C.compiler_canonical(traced.written.text)
        assert _C.compiler_canonical(text) == text
        if "symbol " not in text:
            assert traced.written.text == text, "the writer's own spelling is the canonical one"
        self.stages = [("the text", Interpreter(text, traced.written.externals, True))]
        self.inference = traced.part == "inference"
        for name in _C.compiler_passes(not self.inference):
            text = _C.compiler_optimize(text, [name])
            assert _C.compiler_canonical(text) == text, name
            self.stages.append((name, Interpreter(text, traced.written.externals, False)))
        assert _C.compiler_arena_bytes(text) >= 0
        assert _C.compiler_draw(text).startswith("<svg")

    def __call__(self, *given: Any) -> list[Any]:
        before = torch.get_rng_state()
        inputs, after = _copies(given), torch.get_rng_state()
        expected = self.stages[0][1](*inputs)
        for name, stage in self.stages[1:]:
            torch.set_rng_state(before)
            mine = _copies(given)
            got = stage(*mine)
            close(got, expected, f"after {name}")
            close(mine, inputs, f"inputs after {name}")
        torch.set_rng_state(before)
        del after
        return self.stages[-1][1](*given)


def _copies(given: tuple[Any, ...]) -> list[Any]:
    return [one.detach().clone() if isinstance(one, torch.Tensor) else one for one in given]


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    torch._dynamo.reset()
    with torch._dynamo.config.patch(allow_rnn=True):
        yield
    torch._dynamo.reset()


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("train", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("name", CASES)
def test_every_pass_keeps_what_a_model_computes(name: str, train: bool, dynamic: bool) -> None:
    make_model, make_inputs = CASES[name]
    torch.manual_seed(1)
    eager = make_model().train(train)
    compiled = copy.deepcopy(eager)
    inputs = make_inputs()
    if train and name not in ("mutating",):
        inputs = tuple(one.requires_grad_(one.is_floating_point()) for one in inputs)
    again = tuple(one.detach().clone().requires_grad_(one.requires_grad) for one in inputs)
    built: list[str] = []

    def build(traced: Traced) -> Stages:
        built.append(traced.part)
        return Stages(traced)

    with torch.set_grad_enabled(train):
        call = torch.compile(compiled, backend=backend(build), fullgraph=True, dynamic=dynamic)
        close(run(compiled, call, again, train), run(eager, eager, inputs, train), name)
    assert built == (["forward", "backward"] if train else ["inference"])


@pytest.mark.parametrize("name", ["mlp", "views"])
def test_on_the_device(name: str, device: str) -> None:
    make_model, make_inputs = CASES[name]
    torch.manual_seed(1)
    eager = make_model().to(device)
    compiled = copy.deepcopy(eager)
    inputs = tuple(one.to(device) for one in make_inputs())
    call = torch.compile(compiled, backend=backend(Stages), fullgraph=True)
    close(run(compiled, call, inputs, True), run(eager, eager, inputs, True), name)


def test_one_graph_serves_all_batch_sizes() -> None:
    model = CASES["mlp"][0]()
    built: list[str] = []

    def build(traced: Traced) -> Stages:
        built.append(traced.part)
        return Stages(traced)

    call = torch.compile(model, backend=backend(build), fullgraph=True, dynamic=True)
    with torch.no_grad():
        for batch in (2, 7, 64, 1024):
            given = torch.randn(batch, 12), torch.randint(5, (batch,))
            close([call(*given)], [model(*given)], f"batch {batch}")
    assert built == ["inference"]

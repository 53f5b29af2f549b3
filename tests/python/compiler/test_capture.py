"""torch_graft.compiler.capture: texts, passes, pictures, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch
from torch import nn

from torch_graft import _C
from torch_graft.compiler import Refusal, capture, decompositions
from torch_graft.compiler.tracing import Traced, backend
from traced_models import CASES, Counting

pytestmark = pytest.mark.one_mode


def small() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def test_a_training_capture_has_both_graphs(device: str) -> None:
    model = small().to(device)
    found = capture(model, torch.randn(32, 8, device=device), training=True, dynamic=True)
    assert found.backward is not None
    assert "range 2..inf hint 32 from %" in found.forward
    assert found.forward.count(" parameter") == 4
    assert " saved" in found.forward
    assert " tangent" in found.backward


def test_nodes_tell_the_line_and_the_module_of_the_user() -> None:
    found = capture(Counting(), torch.randn(4, 6))
    [product] = [line for line in found.forward.splitlines() if "aten.addmm" in line]
    assert 'at "traced_models.py:' in product
    assert 'note module="linear"' in product


def test_a_capture_runs_nothing_and_changes_nothing() -> None:
    model = Counting()
    state = torch.get_rng_state()
    found = capture(model, torch.randn(4, 6), training=True)
    assert model.calls == 0
    assert torch.equal(model.mean, torch.zeros(6))
    del state
    assert "buffer mutated" in found.forward
    assert " random" in found.forward
    assert " writes %" in found.forward


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_attention_is_random_where_it_drops(device: str, dropout: float) -> None:
    x = torch.randn(2, 2, 4, 8, device=device)
    attend = nn.functional.scaled_dot_product_attention
    found = capture(lambda x: attend(x, x, x, dropout_p=dropout), x)
    [node] = [line for line in found.forward.splitlines() if " = aten._scaled_dot" in line]
    assert (" random" in node) == (dropout > 0)
    assert " opaque" not in node


def test_parts_of_a_tensor_share_its_memory() -> None:
    def parts(x: torch.Tensor) -> torch.Tensor:
        a, b = x.split(3, 1)
        c, d = x.split([2, 4], 1)
        return a + b + c.sum() + d.mean()

    lines = capture(parts, torch.randn(2, 6)).forward.splitlines()
    for name in ("split.Tensor", "split_with_sizes.default"):
        [line] = [line for line in lines if f"aten.{name}(" in line]
        assert " views %" in line, line


def test_what_the_forward_overwrites_is_saved_before() -> None:
    found = capture(Counting(), torch.randn(4, 6), training=True).forward
    saved = [line.split()[1] for line in found.splitlines() if line.endswith(" saved")]
    [clone] = [line for line in found.splitlines() if "aten.clone" in line]
    assert clone.split()[1].rstrip(":") in saved
    assert found.index("aten.clone") < found.index("aten.copy_")


def test_passes_by_name_and_all_of_them(tmp_path: object) -> None:
    found = capture(nn.Sequential(nn.LayerNorm(8), nn.GELU()), torch.randn(4, 8))
    assert "native_layer_norm" in found.forward
    assert found.optimized([]).forward == found.forward
    assert "aten.native_layer_norm" not in found.optimized(["expand_composites"]).forward
    ready = found.optimized()
    assert "\ngroup " in ready.forward
    assert ready.arena_bytes() <= found.arena_bytes()
    path = f"{tmp_path}/one.svg"
    ready.draw(path)
    with open(path, encoding="utf-8") as file:
        assert file.read().startswith("<svg")


def test_a_training_capture_draws_two_pictures(tmp_path: object) -> None:
    capture(small(), torch.randn(2, 8), training=True).draw(f"{tmp_path}/two.svg")
    with open(f"{tmp_path}/two-backward.svg", encoding="utf-8") as file:
        assert "aten.mm" in file.read()


def test_an_unknown_pass_is_named() -> None:
    with pytest.raises(RuntimeError, match=r'no pass "polish".*fuse_epilogues'):
        capture(small(), torch.randn(2, 8)).optimized(["polish"])


def test_every_pass_has_its_name() -> None:
    text = "graft-graph 1\ngraph x\ninput %a: float32[2] activation\noutput %a\nend\n"
    for name in ("choose_layouts", *_C.compiler_passes(True), *_C.compiler_passes(False)):
        assert _C.compiler_optimize(text, [name]) == text
    with pytest.raises(RuntimeError, match=r'no pass "polish".*choose_layouts'):
        _C.compiler_optimize(text, ["polish"])


def test_a_wrong_text_is_told_with_its_line() -> None:
    with pytest.raises(RuntimeError, match=r"line 3, column \d+"):
        _C.compiler_canonical("graft-graph 1\ngraph x\ninput %a float32[2] activation\nend\n")
    with pytest.raises(RuntimeError, match="reads version 1"):
        _C.compiler_optimize("graft-graph 2\ngraph x\nend\n", [])


def test_constants_large_and_small() -> None:
    table = torch.arange(1000.0)

    def weighted(x: torch.Tensor) -> torch.Tensor:
        return x * torch.tensor([0.5, float("inf"), 3.0]) + table[:3]

    found = capture(weighted, torch.randn(3))
    assert "= [0.5, inf, 3.0]" in found.forward


def complex_factor(x: torch.Tensor) -> torch.Tensor:
    return torch.mul(x, 2j).real


def small_floats(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.float8_e4m3fn).float()


def branch(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))


def two_devices(x: torch.Tensor) -> torch.Tensor:
    return (x + 1).to("meta")


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (complex_factor, "complex numbers have no text"),
        (small_floats, "got torch.float8_e4m3fn, expected one of the compiler's dtypes"),
        (branch, "higher order operator"),
        (two_devices, "a tensor on (meta|cpu) beside those on"),
    ],
)
def test_what_has_no_text_is_refused_with_its_line(function: object, reason: str) -> None:
    with pytest.raises(Refusal, match=f"(?s)%.*{reason}") as caught:
        capture(function, torch.randn(4, 4))
    assert "test_capture.py:" in str(caught.value)


def test_a_refused_graph_can_stay_eager() -> None:
    seen: list[Traced] = []

    def build(traced: Traced) -> object:
        seen.append(traced)
        return traced.module

    call = torch.compile(complex_factor, backend=backend(build))  # type: ignore[arg-type]
    x = torch.randn(3)
    assert torch.equal(call(x), complex_factor(x))
    assert seen[0].refusal is not None
    assert seen[0].written is None


def test_products_of_sizes_and_their_division() -> None:
    def folded(x: torch.Tensor) -> torch.Tensor:
        return x.flatten()[: x.shape[0] * x.shape[1] // 3]

    found = capture(folded, torch.randn(5, 7), dynamic=True)
    assert "floordiv(s" in found.forward
    assert found.forward.count("\nsymbol ") == 2


def test_an_integer_of_the_call_is_a_symbol() -> None:
    found = capture(lambda x, n: x.new_zeros(n) + x[0], torch.randn(5), 9, dynamic=True)
    assert "hint 9 from integer " in found.forward


def test_a_size_that_depends_on_data_is_refused() -> None:
    config = torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
    with config, pytest.raises(Refusal, match=r"test_capture.py:\d+"):
        capture(lambda x: x.nonzero() * 2, torch.randn(5))


def test_inputs_that_share_memory_say_so() -> None:
    base = torch.randn(4, 4)
    found = capture(lambda a, b: a + b, base, base[1:2])
    assert " alias %" in found.forward


def test_kept_operators_are_core_decompositions() -> None:
    from torch._decomp import core_aten_decompositions

    core = {str(operator) for operator in core_aten_decompositions()}
    assert set(decompositions.KEPT) <= core, "an entry without effect"
    assert not {str(operator) for operator in decompositions.table()} & set(decompositions.KEPT)


def test_what_a_row_of_the_op_table_computes_arrives_whole() -> None:
    taken_apart = {str(operator) for operator in decompositions.table()}
    rows = {
        f"aten.{one.split('(')[0]}"
        for row in json.loads(_C.op_table_json())
        for one in row["overloads"]
    }
    assert {"aten.silu.default", "aten.lerp.Scalar", "aten.softplus_backward.default"} <= rows
    assert not rows & taken_apart
    assert not rows & set(decompositions.KEPT), "kept twice"


def test_importing_the_compiler_loads_no_dynamo() -> None:
    code = "import torch_graft.compiler, sys; assert 'torch._dynamo' not in sys.modules"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("name", ["gpt2", "digits"])
def test_models_on_the_device(name: str, device: str) -> None:
    make_model, make_inputs = CASES[name]
    inputs = tuple(one.to(device) for one in make_inputs())
    found = capture(make_model().to(device), *inputs, training=True, dynamic=name == "gpt2")
    assert found.optimized().arena_bytes() > 0

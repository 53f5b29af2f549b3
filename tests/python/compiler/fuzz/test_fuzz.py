# tests/python/compiler/fuzz/test_fuzz.py: random programs, compiled and eager; what they found; the shrinker.
"""GRAFT_FUZZ_SEEDS=first:count runs other seeds than the fixed ones."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
import torch

from draft import Draft, generate
from operators import OPERATORS, Operator
from program import Node, Program, Source
from shrinking import shrink
from trial import Mismatch, Way, fuzz, message, shrunk, trial
from values import Unfit, check

pytestmark = pytest.mark.one_mode

_FIRST, _COUNT = map(int, os.environ.get("GRAFT_FUZZ_SEEDS", "0:24").split(":"))
_WAYS = [Way(False, True), Way(False, False, True), Way(True, True, True), Way(True, False)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(_FIRST, _FIRST + _COUNT))
@pytest.mark.seldom
def test_a_random_program(seed: int, device: str) -> None:
    fuzz(seed, device)


# What the fuzzer found, as small as it made it.
_FOUND = {
    "one output takes the memory of an operand that another one reads later": Program(
        15,
        (Source("a0", (), learns=True), Source("a1", (1, 1), learns=True)),
        (Node("v0", "log_softmax", ("a1",), {"dim": 0}), Node("v1", "addcdiv", ("a1", "a1", "a0"))),
        ("v0", "v1"),
    ),
    "a diagonal": Program(
        18, (Source("a0", (2, 3, 4)),), (Node("v0", "diagonal", ("a0",)),), ("v0",)
    ),
    "a pool that makes its result channels-last by as_strided": Program(
        1041,
        (Source("a0", (2, 3, 4, 5), layout="channels_last", learns=True),),
        (
            Node("v0", "mul_number", ("a0",), {"number": 2}),
            Node("v1", "adaptive_avg_pool2d", ("v0",), {"size": 1}),
        ),
        ("v1",),
    ),
    "a slice that begins at a symbol": Program(
        215,
        (Source("a0", (1, 2)), Source("a1", (1, 1), learns=True)),
        (Node("v0", "cat", ("a0", "a1"), {"dim": 1}),),
        ("v0",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", _WAYS, ids=str)
@pytest.mark.parametrize("name", _FOUND)
def test_what_was_found(name: str, way: Way, device: str) -> None:
    trial(_FOUND[name], way, device)


def test_a_seed_gives_one_program() -> None:
    assert generate(3).code() == generate(3).code() != generate(4).code()


def test_most_operators_are_drawn() -> None:
    drawn = {node.op for seed in range(50) for node in generate(seed).nodes}
    assert len(drawn) > 0.85 * len(OPERATORS)


def test_a_jump_near_an_operand_is_unfit() -> None:
    """Half of the numbers that rounding moves past 0 would be false alarms."""
    near = Source("a0", (40,), "bfloat16", low=-0.01, high=0.01)
    rounded = Node("v0", "tanh", ("a0",))
    program = Program(1, (near,), (rounded, Node("v1", "sign", ("v0",))), ("v1",))
    with pytest.raises(Unfit, match="jumps"):
        check(program)
    check(replace(program, nodes=(rounded,), outputs=("v0",)))


def _chain(*ops: str) -> Program:
    attributes = {"transpose": {"a": 0, "b": 1}, "softmax": {"dim": 1}, "add_number": {"number": 2}}
    before, nodes = "a0", []
    for at, op in enumerate(ops):
        nodes.append(Node(f"v{at}", op, (before,), attributes.get(op, {})))
        before = nodes[-1].name
    return Program(7, (Source("a0", (3, 5), "bfloat16"),), tuple(nodes), ("v1", before))


def _softmax_after_transpose(program: Program) -> bool:
    turned: set[str] = set()
    for node in program.nodes:
        if node.op == "transpose" or turned.intersection(node.operands):
            if node.op == "softmax":
                return True
            turned.add(node.name)
    return False


def test_a_planted_defect_shrinks_to_its_two_nodes() -> None:
    program = _chain("tanh", "transpose", "add_number", "sin", "softmax", "exp", "square")
    assert _softmax_after_transpose(program)
    least = shrink(program, _softmax_after_transpose)
    assert [node.op for node in least.nodes] == ["transpose", "softmax"]
    assert least.sources == (replace(program.sources[0], shape=(1, 1), dtype="float32"),)
    assert len(least.outputs) == 1


@pytest.mark.filterwarnings("ignore")
def test_a_wrong_operator_is_found_and_named(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    """It computes another function as soon as it is compiled."""

    def propose(draft: Draft) -> tuple[tuple[str, ...], dict[str, object]]:
        return (draft.floating(),), {}

    form = "(torch.sin({0}) if torch.compiler.is_compiling() else torch.cos({0}))"
    monkeypatch.setitem(OPERATORS, "wrong", Operator(form, propose))
    program, way = _chain("tanh", "transpose", "wrong", "add_number", "softmax"), Way(False, False)
    with pytest.raises(Mismatch) as caught:
        trial(program, way, device)
    least, why = shrunk(program, way, device, caught.value)
    assert [node.op for node in least.nodes] == ["wrong"]
    text = message(7, least, way, device, why)
    assert "seed 7" in text
    names: dict[str, object] = {}
    exec(text[text.index("# seed 7") :].split("print(")[0], names)
    [result] = names["program"](*names["inputs"]("cpu"))  # type: ignore[operator]
    assert isinstance(result, torch.Tensor)

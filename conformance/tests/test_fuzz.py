# conformance/tests/test_fuzz.py: the fuzz of operators finds what is planted, and nothing on the CPU.
from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import planted_calls
from invocation import fuzz
from torch_conformance.fuzz import entries
from torch_conformance.fuzz.calls import Call, Plan, subject, subjects
from torch_conformance.fuzz.trial import perform
from torch_conformance.fuzz.values import environment as names
from torch_conformance.suites.sample_loop import seed
from torch_conformance.tensors import compare
from vendor_file import DEVICES

SOUND = ["add", "index_select", "cumsum", "mm", "sort", "where", "nn.functional.conv2d"]
PLANTED = [*planted_calls.CRASHES, *planted_calls.TAKES, *planted_calls.REFUSES,
           *planted_calls.WRONG, *planted_calls.HANGS]  # fmt: skip


def red(folder: Path) -> dict[str, set[str]]:
    """Aspect -> the operators with a finding, overloads and entries under one name."""
    found: dict[str, set[str]] = {}
    for cell in json.loads((folder / "results.json").read_text())["cells"]:
        if cell["status"] not in ("pass", "skip", "xfail"):
            root = cell["entry"].split("::")[-1].split(".")[0]
            found.setdefault(cell["aspect"], set()).add(root)
    return found


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("fuzz") / "corpus.json"
    code = (
        "import sys; from torch_conformance.fuzz.entries import write_corpus as w; w(sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=250)
    return str(path)


@pytest.mark.seldom
def test_what_is_planted_is_found_and_nothing_else(tmp_path):
    chosen = [*PLANTED, *SOUND]
    patterns = [p for name in chosen for p in (name, f"aten::{name}", f"aten::{name}.*")]
    code, out, err = fuzz(tmp_path, "--plugin", "planted_calls", "--ops", ",".join(patterns),
                          "--calls", "10", "--least", "70", "--device-seconds", "2")  # fmt: skip
    assert code == 1, out + err
    found = red(tmp_path)
    assert found["survives"] == {*planted_calls.CRASHES, *planted_calls.HANGS}
    assert found["refuses"] == set(planted_calls.TAKES)
    assert found["accepts"] == set(planted_calls.REFUSES)
    assert found["values"] == set(planted_calls.WRONG)
    text = (tmp_path / "findings.txt").read_text()
    assert "SIGSEGV" in text
    assert "no end" in text
    assert "simplest: " in text
    assert "torch-conformance fuzz --device cpu --plugin planted_calls --seed 0 --ops" in text


@pytest.mark.seldom
def test_a_finding_names_the_command_that_repeats_it(tmp_path):
    code, out, _ = fuzz(tmp_path, "--plugin", "planted_calls", "--ops", "flip", "--calls", "60")
    assert code == 1
    command = next(line for line in out.splitlines() if "--call " in line).split()
    number = command[command.index("--call") + 1]
    again, out, _ = fuzz(tmp_path / "again", "--plugin", "planted_calls", "--ops", "flip",
                         "--call", number)  # fmt: skip
    assert again == 1
    assert "1 calls of 1 subjects, seed 0" in out


@pytest.mark.seldom
def test_the_cpu_against_itself_is_green(tmp_path):
    code, out, err = fuzz(tmp_path, "--calls", "1500", "--least", "1", "--seed", "3")
    assert code == 0, out + err
    assert "seed 3" in out


@pytest.mark.parametrize(
    "name", ["aten::add.Tensor", "aten::convolution", "cumsum", "aten::addmm.out"]
)
def test_a_seed_names_its_calls(corpus, name):
    plan = Plan(corpus, 7, 0, 5)
    twice = [[str(c) for n in range(5) for c in plan.draws(subject(name), n)] for _ in range(2)]
    assert twice[0] == twice[1]
    other = [str(c) for n in range(5) for c in plan._replace(seed=8).draws(subject(name), n)]
    assert other != twice[0]


@pytest.mark.parametrize(
    "name", ["aten::add.Tensor", "cumsum", "aten::_fft_c2c", "aten::random_.from"]
)
def test_a_printed_call_can_be_run(corpus, name):
    cpu, ran = torch.device("cpu"), 0
    for number in range(30):
        call = next(Plan(corpus, 0, 0, 30).draws(subject(name), number))
        assert Call.unpacked(json.loads(json.dumps(call.packed()))) == call
        result = perform(call, cpu, contextlib.nullcontext())
        if result.error is None:
            space = names(cpu)
            *lines, last = str(call).split("; ")
            exec("; ".join(lines), space)
            seed()
            again = eval(last, space)
            assert compare.difference(again, result.value, {}) is None
            ran += 1
    assert ran


def test_every_overload_of_the_device_and_every_entry_is_a_subject():
    every = subjects(f"{DEVICES[-1]}:0", None)
    assert {"aten::add.Tensor", "aten::mm.out", "add", "linalg.svd"} <= set(every)
    assert len(every) > 1300
    assert not [n for n in every if "storage" in n.lower()]


def test_templates_of_another_form_of_an_operator_serve(corpus):
    assert entries.templates(corpus, "aten::addmm")
    for name in ("aten::addmm.out", "aten::addmm_"):
        assert entries.templates(corpus, name)[0].keys() >= {"self", "mat1", "mat2"}

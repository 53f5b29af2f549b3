# tests/python/language/test_generate.py: generate() of transformers' models on the device.
"""Tokens are the CPU's, with caches that grow, of a fixed length and with a window; eager and compiled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters

import random_models
from random_models import moved, prompt
from sandbox import Ran

pytestmark = pytest.mark.one_mode

CACHES: dict[str, dict[str, Any]] = {
    "dynamic": {},
    "static": {"cache_implementation": "static", "disable_compile": True},
}
# Graphs of these prompts around a window's length; as many with backend="eager" on the CPU.
WINDOWS = {"dynamic": 6, "static": 4}
# A window is a cache of its own kind: it forgets what it has passed.
SHAPES = ["llama", "qwen3", "mistral", "mixtral"]
NEW = 2 * random_models.WINDOW


def generated(model: Any, given: torch.Tensor, **options: Any) -> torch.Tensor:
    given = given.to(model.device)
    options = {"max_new_tokens": NEW, "do_sample": False} | options
    return model.generate(given, attention_mask=torch.ones_like(given), **options)


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("shape", SHAPES)
def test_tokens_are_the_cpu_s(shape: str, cache: str, device: str, native: None) -> None:
    model = random_models.build(shape)
    there = moved(model, device)
    for length in (12, 5):
        expected = generated(model, prompt(length), **CACHES[cache])
        assert torch.equal(generated(there, prompt(length), **CACHES[cache]).cpu(), expected)


PAGED = """
import torch_graft.integrations.transformers
import random_models
from random_models import moved, prompt
from transformers import ContinuousBatchingConfig, GenerationConfig

def tokens(model, given):
    whole = model.generate(given, attention_mask=torch.ones_like(given), max_new_tokens=16, do_sample=False)
    return whole[0, given.shape[1]:].tolist()

for shape in ("llama", "qwen3", "mistral", "mixtral"):
    model = random_models.build(shape)
    prompts = [prompt(length, rows=1) for length in (12, 3, 20)]
    with torch.get_device_module(D).fallback.forbid():
        found = moved(model, D).generate_batch(
            [one[0].tolist() for one in prompts], progress_bar=False,
            generation_config=GenerationConfig(max_new_tokens=16, do_sample=False, eos_token_id=-1),
            continuous_batching_config=ContinuousBatchingConfig(num_blocks=16, max_batch_tokens=32),
        )
    expected = [tokens(model, one) for one in prompts]
    assert [list(one.generated_tokens) for one in found.values()] == expected, shape
"""


def test_a_paged_cache_serves_requests_of_different_lengths(python: Callable[..., Ran]) -> None:
    python(PAGED, PYTHONPATH=str(Path(__file__).parent)).good()


@pytest.mark.seldom
@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("shape", SHAPES)
def test_two_graphs_serve_all_lengths(shape: str, cache: str, device: str, fresh: None) -> None:
    """One takes any prompt, one a token after any past; a window has more, for the library's own branches."""
    model = random_models.build(shape)
    there = moved(model, device)
    there.forward = torch.compile(there.forward, dynamic=True)
    counters.clear()
    for length in (12, 5, 9):
        expected = generated(model, prompt(length), **CACHES[cache])
        assert torch.equal(generated(there, prompt(length), **CACHES[cache]).cpu(), expected)
    assert counters["stats"]["unique_graphs"] == (WINDOWS[cache] if shape == "mistral" else 2)
    assert not counters["graph_break"]


def test_prompts_of_a_bucket_share_its_graphs(device: str, fresh: None) -> None:
    """Filled up from the left to the bucket's length, with a mask of what they really have."""
    model = random_models.build("llama")
    there = moved(model, device)
    there.forward = torch.compile(there.forward, dynamic=True)
    counters.clear()
    for length in (12, 5, 9):
        given = torch.nn.functional.pad(prompt(length), (16 - length, 0))
        options = {"max_new_tokens": 12, "do_sample": False} | CACHES["static"]
        mask = (given != 0).long()
        expected = model.generate(given, attention_mask=mask, **options)
        there_mask = mask.to(device)
        found = there.generate(given.to(device), attention_mask=there_mask, **options)
        assert torch.equal(found.cpu(), expected)
    assert counters["stats"]["unique_graphs"] == 2


AUTOMATIC = """
import torch_graft.integrations.transformers
import random_models
from torch._dynamo.utils import counters
from torch_graft import compiler, integrations
from random_models import moved, prompt

def tokens(model, given, **options):
    given = given.to(model.device)
    options = {"max_new_tokens": 12, "do_sample": False} | options
    return model.generate(given, attention_mask=torch.ones_like(given), **options).cpu()

model = random_models.build("llama")
there = moved(model, D)
for length in (12, 5):
    assert tokens(there, prompt(length), cache_implementation="static").equal(tokens(model, prompt(length)))
assert counters["stats"]["unique_graphs"] == 1, counters
assert all(report.compiled for report in compiler.reports())
assert tokens(there, prompt(7)).equal(tokens(model, prompt(7)))
assert counters["stats"]["unique_graphs"] == 1, "a cache that grows is not compiled unasked"
integrations.disable("transformers")
del there._compiled_call
counters.clear()
tokens(there, prompt(12), cache_implementation="static")
assert "unique_graphs" not in counters["stats"]
"""


def test_a_static_cache_is_compiled_by_the_integration(python: Callable[..., Ran]) -> None:
    python(AUTOMATIC, PYTHONPATH=str(Path(__file__).parent)).good()


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("shape", ["llama", "mistral"])
def test_tokens_of_bfloat16_differ_only_where_two_are_alike(
    shape: str, cache: str, device: str
) -> None:
    model = random_models.build(shape).to(torch.bfloat16)
    there = moved(model, device)
    given = prompt(12)
    seen = generated(
        model, given, output_logits=True, return_dict_in_generate=True, **CACHES[cache]
    )
    found = generated(there, given, **CACHES[cache]).cpu()
    for row, (ours, theirs) in enumerate(zip(found, seen.sequences, strict=True)):
        apart = (ours != theirs).nonzero()
        if len(apart) == 0:
            continue
        step = apart[0].item() - given.shape[1]  # what follows has another past
        first, second = seen.logits[step][row].float().topk(2).values
        assert first - second <= 0.05 * seen.logits[step][row].float().abs().max()

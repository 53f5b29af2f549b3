"""flex_attention on the device: eager and compiled, with gradients, against its formula on the CPU."""

import warnings

import pytest
import torch
from torch.nn.attention.flex_attention import AuxRequest, create_block_mask
from torch.nn.attention.flex_attention import flex_attention as torchs

from sandbox import NAME
from torch_graft.integrations.flex_attention import flex_attention

pytestmark = pytest.mark.one_mode

BATCH, HEADS, KEY_HEADS, ROWS, WIDTH = 2, 4, 2, 40, 8


def causal(_batch, _head, row, column):
    return row >= column


def operands(place):
    """query, key, value and the bias of each head, with gradients."""
    make = torch.Generator().manual_seed(0)
    sizes = ((BATCH, HEADS, ROWS, WIDTH), *[(BATCH, KEY_HEADS, ROWS, WIDTH)] * 2, (HEADS,))
    return [torch.randn(size, generator=make).to(place).requires_grad_() for size in sizes]


def formula(query, key, value, bias):
    """The output, the sums in logarithms and the largest scores, without flex_attention."""
    groups = HEADS // KEY_HEADS
    key, value = (one.repeat_interleave(groups, 1) for one in (key, value))
    far = torch.arange(ROWS)[:, None] - torch.arange(ROWS)
    scores = query @ key.transpose(-1, -2) / WIDTH**0.5 + bias[:, None, None] * far
    scores = scores.masked_fill(far < 0, float("-inf"))
    return scores.softmax(-1) @ value, scores.logsumexp(-1), scores.amax(-1)


def attend(call, query, key, value, bias):
    def lean(score, _batch, head, row, column):
        return score + bias[head] * (row - column)

    mask = create_block_mask(causal, BATCH, None, ROWS, ROWS, device=query.device)
    aux = AuxRequest(lse=True, max_scores=True)
    out, extra = call(query, key, value, lean, mask, enable_gqa=True, return_aux=aux)
    return out, extra.lse, extra.max_scores


@pytest.mark.parametrize(
    "way", ["eager", "compiled", pytest.param("dynamic", marks=pytest.mark.seldom)]
)
def test_output_and_gradients_are_those_of_the_formula(way, native):
    call = flex_attention
    if way != "eager":
        torch.compiler.reset()
        call = torch.compile(flex_attention, dynamic=way == "dynamic")
    given, wanted_of = operands(NAME), operands("cpu")
    found = attend(call, *given)
    wanted = formula(*wanted_of)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-4, atol=1e-5)
    for out, sums, _ in (found, wanted):
        (out.square().sum() + sums.sum()).backward()
    for one, other in zip(given, wanted_of, strict=True):
        torch.testing.assert_close(one.grad.cpu(), other.grad, rtol=1e-3, atol=1e-4)


def test_a_whole_function_around_it_is_compiled():
    """The graph compiler takes the operators that it stands for, with gradients."""

    def layer(query, key, value, bias):
        return attend(flex_attention, query * 2, key, value, bias)[0].relu()

    torch.compiler.reset()
    given, wanted_of = operands(NAME), operands("cpu")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*without compiling it.*")
        found = torch.compile(layer, fullgraph=True)(*given)
        found.sum().backward()
    query, *others = wanted_of
    formula(query * 2, *others)[0].relu().sum().backward()
    for one, other in zip(given, wanted_of, strict=True):
        torch.testing.assert_close(one.grad.cpu(), other.grad, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("compiled", [False, True])
def test_autocast_narrows_query_key_and_value(compiled):
    torch.compiler.reset()
    call = torch.compile(flex_attention) if compiled else flex_attention
    query, key, value, _ = (one.detach() for one in operands("cpu"))
    with torch.autocast("cpu", torch.bfloat16):
        wanted = torchs(query, key, value, enable_gqa=True)
    with torch.autocast(NAME, torch.bfloat16):
        found = call(query.to(NAME), key.to(NAME), value.to(NAME), enable_gqa=True)
    assert found.dtype == wanted.dtype == torch.bfloat16
    torch.testing.assert_close(found.cpu(), wanted, rtol=0.02, atol=0.02)


def test_pytorchs_other_checks_are_made():
    query, key, value, _ = operands(NAME)
    larger = create_block_mask(causal, None, None, 256, 256, device=NAME)
    elsewhere = create_block_mask(causal, None, None, ROWS, ROWS, device="cpu")
    with pytest.raises(ValueError, match="same number of heads"):
        flex_attention(query, key, value)
    with pytest.raises(
        (ValueError, RuntimeError), match="created for a larger length"
    ):  # until and since 2.14
        flex_attention(query, key, value, block_mask=larger, enable_gqa=True)
    with pytest.raises(RuntimeError, match="block_mask to be on the same device"):
        flex_attention(query, key, value, block_mask=elsewhere, enable_gqa=True)
    with pytest.raises(ValueError, match="same device"):
        flex_attention(query, key.cpu(), value, enable_gqa=True)
    with pytest.raises(ValueError, match="Cannot specify both"):
        flex_attention(query, key, value, enable_gqa=True, return_lse=True, return_aux=AuxRequest())


def test_pytorchs_function_is_unchanged_and_serves_other_devices():
    query, key, value, _ = operands(NAME)
    with pytest.raises(ValueError, match="only supported on"):
        torchs(query, key, value, enable_gqa=True)
    query, key, value, _ = operands("cpu")
    with pytest.raises(NotImplementedError, match="backward on CPU"):
        flex_attention(query, key, value, enable_gqa=True)
    with torch.no_grad():
        query, key, value = (one.detach() for one in (query, key, value))
        assert torch.equal(flex_attention(query, key, value, enable_gqa=True),
                           torchs(query, key, value, enable_gqa=True))  # fmt: skip


MODEL = """
import torch_graft.integrations.transformers
from torch_graft import integrations
from transformers import LlamaConfig, LlamaForCausalLM

def step(place, way):
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1,
                         num_attention_heads=4, num_key_value_heads=2, attn_implementation=way)
    model = LlamaForCausalLM(config).to(place)
    words = torch.arange(80, device=place).reshape(2, 40) % 64
    mask = torch.ones_like(words)
    mask[1, 30:] = 0
    loss = model(input_ids=words, attention_mask=mask, labels=words.masked_fill(mask == 0, -100)).loss
    loss.backward()
    return [loss.cpu(), *(one.grad.cpu() for one in model.parameters())]

for found, wanted in zip(step(D, "flex_attention"), step("cpu", "eager"), strict=True):
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-6)
integrations.disable("transformers")
import torch.nn.attention.flex_attention as torchs
import transformers.integrations.flex_attention as attention
assert attention.flex_attention is torchs.flex_attention
"""


def test_a_model_of_transformers_takes_it(python):
    python(MODEL, timeout=250, TRANSFORMERS_VERBOSITY="error").good()

"""What runs in the process of one side of the language models' table: builds a model, decodes, prefills."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from record import synchronize
from timing import seconds_per_call

PROMPT, CACHE, TOKENS, GROUP = 512, 1024, 8, 128
_made: dict[str, Any] = {}

SHAPES: dict[str, dict[str, Any]] = {
    "Llama 1.0 B": {
        "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
        "num_key_value_heads": 8,
    },
    "Qwen2 0.4 B": {
        "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
        "num_key_value_heads": 2,
    },
    "Mixtral 0.6 B": {
        "hidden_size": 1024, "intermediate_size": 1792, "num_hidden_layers": 12, "num_attention_heads": 16,
        "num_key_value_heads": 4, "num_local_experts": 8, "num_experts_per_tok": 2,
    },
}  # fmt: skip


@dataclass(frozen=True)
class Way:
    """weights: "bf16", "int8" or "int4". compiler: "" for eager, "graft", "inductor" or "frozen"."""

    weights: str
    compiler: str


def built(shape: str, device: str) -> torch.nn.Module:
    import transformers as library

    kind = shape.split(" ")[0]
    config = getattr(library, f"{kind}Config")(
        vocab_size=32000, max_position_embeddings=2048, tie_word_embeddings=True, **SHAPES[shape]
    )
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        model = getattr(library, f"{kind}ForCausalLM")(config)
    torch.set_default_dtype(torch.float32)
    return model.eval().requires_grad_(False)


def quantize(model: torch.nn.Module, weights: str, device: str) -> None:
    if weights == "bf16":
        return
    from torchao.quantization import Int4WeightOnlyConfig, Int8WeightOnlyConfig, quantize_

    if device != "cpu":
        import torch_graft.integrations.torchao  # noqa: F401
    if weights == "int8":
        quantize_(model, Int8WeightOnlyConfig())
    elif device == "cpu":
        from torchao.prototype.quantization.int4 import PrototypeInt4WeightOnlyConfig

        quantize_(model, PrototypeInt4WeightOnlyConfig(GROUP, set_inductor_config=False))
    else:
        quantize_(model, Int4WeightOnlyConfig(GROUP, set_inductor_config=False))


def has_experts(shape: str) -> bool:
    """Whether most weights are those of experts, no linear layers, which torchao leaves as they are."""
    return "num_local_experts" in SHAPES[shape]


def bytes_of(tensor: Any) -> int:
    """Of a tensor, or of the tensors that a subclass holds."""
    if hasattr(tensor, "__tensor_flatten__"):
        names, _ = tensor.__tensor_flatten__()
        return sum(bytes_of(getattr(tensor, name)) for name in names)
    return int(tensor.nbytes)


def prepare(device: str, shape: str, way: Way, threads: int) -> dict[str, float]:
    """Builds and compiles. Returns seconds until the first token, and bytes of weights and cache."""
    torch.set_num_threads(threads)
    if way.compiler == "frozen":
        import torch._inductor.config as inductor

        inductor.freezing = True
    from transformers import StaticCache

    model = built(shape, device)
    quantize(model, way.weights, device)
    forward: Callable[..., Any] = model
    if way.compiler:
        backend = "inductor" if way.compiler == "frozen" else way.compiler
        forward = torch.compile(model, backend=backend, dynamic=False)
    config: Any = model.config
    cache = StaticCache(config=config, max_cache_len=CACHE)
    width = config.hidden_size // config.num_attention_heads
    cache.early_initialization(
        1, config.num_key_value_heads, width, torch.bfloat16, torch.device(device)
    )
    given = torch.randint(3, 32000, (1, PROMPT)).to(device)
    _made.update(forward=forward, cache=cache, prompt=given)
    gc.collect()
    start = time.perf_counter()
    _made["token"] = prefill()
    synchronize(device)
    first = time.perf_counter() - start
    decode()
    if device != "cpu":
        torch.accelerator.reset_peak_memory_stats()
    decode()
    synchronize(device)
    weights = {id(one): bytes_of(one) for one in [*model.parameters(), *model.buffers()]}
    read = {id(one.weight): bytes_of(one.weight) for one in model.modules()
            if isinstance(one, torch.nn.Linear)}  # fmt: skip
    if has_experts(shape):
        chosen, of = config.num_experts_per_tok, config.num_local_experts
        read |= {
            id(one): bytes_of(one) * chosen // of for one in model.parameters() if one.dim() == 3
        }
    kept = sum(bytes_of(one) for layer in cache.layers for one in (layer.keys, layer.values))
    found = {"first": first, "weights": sum(weights.values()), "read": sum(read.values()),
             "cache": kept}  # fmt: skip
    if device != "cpu":
        found["peak"] = torch.accelerator.max_memory_allocated()
    return found


def placed(position: int) -> None:
    """The caches hold this many tokens."""
    for layer in _made["cache"].layers:
        layer.cumulative_length.fill_(position)


def logits(tokens: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        found = _made["forward"](tokens, past_key_values=_made["cache"], logits_to_keep=1)
    return found.logits[:, -1]


def prefill() -> torch.Tensor:
    """The first token after the prompt."""
    placed(0)
    return logits(_made["prompt"]).argmax(-1, keepdim=True)


def decode() -> torch.Tensor:
    """The last of some tokens after the prompt."""
    placed(PROMPT)
    token = _made["token"]
    for _ in range(TOKENS):
        token = logits(token).argmax(-1, keepdim=True)
    return token


def sample(device: str, what: str) -> float:
    """Seconds of a prefill, or of a decoded token."""
    if what == "prefill":
        return seconds_per_call(device, prefill, 1)
    return seconds_per_call(device, decode, 1) / TOKENS


def plain_read(device: str, count: int) -> float:
    """Seconds in which the CPU's sum reads this many bytes, the least of three."""
    del device
    source = torch.ones(count // 8, dtype=torch.int64)
    return min(seconds_per_call("cpu", source.sum, 1) for _ in range(3))

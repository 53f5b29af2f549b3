"""Language models of today's shapes with random weights, small enough for tests."""

from __future__ import annotations

import copy
from typing import Any

import torch

SIZES: dict[str, Any] = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 300, "max_position_embeddings": 256,
    "bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0,
}  # fmt: skip
WINDOW = 8


def build(shape: str) -> Any:
    """A causal model on the CPU: grouped heads (llama), a window (mistral), norms of queries and
    keys (qwen3), or experts (mixtral)."""
    import transformers as library

    more: dict[str, Any] = {
        "llama": {},
        "qwen3": {"head_dim": 16},
        "mistral": {"sliding_window": WINDOW},
        "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2},
    }[shape]
    name = shape.capitalize()
    config = getattr(library, f"{name}Config")(**SIZES, **more)
    torch.manual_seed(0)
    return getattr(library, f"{name}ForCausalLM")(config).eval()


def moved(model: Any, device: str) -> Any:
    return copy.deepcopy(model).to(device)


def prompt(length: int, rows: int = 2) -> torch.Tensor:
    source = torch.Generator().manual_seed(length)
    return torch.randint(2, SIZES["vocab_size"], (rows, length), generator=source)

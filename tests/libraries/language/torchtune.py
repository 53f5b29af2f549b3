"""torchtune: a Llama 3 with LoRA trains for a step."""

import torch
from torchtune.models.llama3 import lora_llama3


def use(device):
    model = lora_llama3(
        ["q_proj", "v_proj"], vocab_size=64, num_layers=2, num_heads=4, num_kv_heads=2, embed_dim=32, max_seq_len=32,
        intermediate_dim=64, lora_rank=4, lora_alpha=8,
    ).to(device)  # fmt: skip
    words = torch.randint(64, (2, 16)).to(device)
    loss = torch.nn.functional.cross_entropy(model(words).flatten(0, 1), words.flatten())
    loss.backward()
    return {
        "loss": loss,
        "gradients": [one.grad for one in model.parameters() if one.grad is not None],
    }

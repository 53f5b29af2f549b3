"""transformers: a Llama generates with its cache, greedily and by beams."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def use(device):
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, bos_token_id=1, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval().to(device)
    words = torch.randint(2, 64, (2, 7)).to(device)
    greedy = model.generate(words, max_new_tokens=8, do_sample=False)
    beams = model.generate(words, max_new_tokens=6, num_beams=3, do_sample=False)
    return {"greedy": greedy, "beams": beams, "logits": model(words).logits}

"""x-transformers: a decoder with rotary positions trains for a step."""

import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper


def use(device):
    layers = Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True, attn_dim_head=8)
    model = AutoregressiveWrapper(
        TransformerWrapper(num_tokens=64, max_seq_len=32, attn_layers=layers)
    ).to(device)
    loss = model(torch.randint(64, (2, 24)).to(device))
    loss.backward()
    return {
        "loss": loss,
        "gradients": [one.grad for one in model.parameters() if one.grad is not None],
    }

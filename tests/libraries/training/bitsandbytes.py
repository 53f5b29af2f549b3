"""bitsandbytes: a linear layer of 4 bits answers."""

import bitsandbytes
import torch


def use(device):
    layer = bitsandbytes.nn.Linear4bit(64, 64, compute_dtype=torch.float32, quant_type="nf4").to(
        device
    )
    answer = layer(torch.randn(4, 64).to(device))
    return {"answer": answer}

"""xformers: memory-efficient attention and a SwiGLU, with gradients."""

import torch
import xformers.ops


def use(device):
    query, key, value = (torch.randn(2, 16, 4, 8).to(device).requires_grad_() for _ in range(3))
    found = xformers.ops.memory_efficient_attention(query, key, value)
    found.square().sum().backward()
    return {"found": found, "gradients": [query.grad, key.grad, value.grad]}

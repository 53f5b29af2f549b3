"""hqq: a layer's weights become 4 bits wide, and it answers."""

import torch
from hqq.core.quantize import BaseQuantizeConfig, HQQLinear


def use(device):
    config = BaseQuantizeConfig(nbits=4, group_size=64)
    layer = HQQLinear(torch.nn.Linear(64, 64), config, compute_dtype=torch.float32, device=device)
    return {"answer": layer(torch.randn(4, 64).to(device))}

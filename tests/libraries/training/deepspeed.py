"""deepspeed: the gate of a mixture of experts, with gradients, without ranks."""

import torch
from deepspeed.moe.sharded_moe import top1gating


def use(device):
    logits = torch.randn(8, 4).to(device).requires_grad_()
    loss, weights, mask, counts = top1gating(logits, 1.0, 2, use_rts=False)
    loss.backward()
    return [loss, weights, mask, counts, logits.grad]

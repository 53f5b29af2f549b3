"""open-clip-torch: CLIP trains for a step on images and texts."""

import open_clip
import torch


def use(device):
    model = open_clip.model.CLIP(
        32, open_clip.CLIPVisionCfg(layers=2, width=64, head_width=32, patch_size=16, image_size=32),
        open_clip.CLIPTextCfg(context_length=12, vocab_size=64, width=32, heads=2, layers=2),
    ).to(device)  # fmt: skip
    images, texts = torch.randn(4, 3, 32, 32).to(device), torch.randint(1, 64, (4, 12)).to(device)
    one, other, scale = model(images, texts)
    loss = open_clip.ClipLoss()(one, other, scale)
    loss.backward()
    return {
        "loss": loss,
        "images": one,
        "gradients": [p.grad for p in model.parameters() if p.grad is not None],
    }

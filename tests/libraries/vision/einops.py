"""einops: rearranging, reducing and repeating, by functions and by layers, with gradients."""

import torch
from einops import einsum, pack, rearrange, reduce, repeat
from einops.layers.torch import EinMix, Rearrange


def use(device):
    image = torch.randn(2, 3, 8, 8).to(device).requires_grad_()
    patches = rearrange(image, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4)
    mixed = EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=48, d=6).to(device)(
        patches
    )
    whole, _ = pack([mixed, repeat(mixed.mean(1), "b d -> b r d", r=2)], "b * d")
    likeness = einsum(whole, whole, "b i d, b j d -> b i j")
    pooled = reduce(image, "b c (h 2) (w 2) -> b c h w", "max")
    turned = torch.nn.Sequential(Rearrange("b c h w -> b (c h w)"))(pooled)
    (likeness.sum() + turned.square().sum()).backward()
    return [likeness, pooled, turned, image.grad]

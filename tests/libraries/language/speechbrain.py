"""speechbrain: filter banks of a wave, an ECAPA-TDNN over them, and gradients."""

import torch
from speechbrain.lobes.features import Fbank
from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN


def use(device):
    banks = Fbank(n_mels=40).to(device)
    model = ECAPA_TDNN(
        40, device=device, lin_neurons=16, channels=[32] * 4 + [96], attention_channels=16
    ).to(device)
    torch.manual_seed(1)
    with torch.no_grad():
        for one in model.parameters():
            one.copy_(torch.randn(one.shape) * 0.1)
    features = banks(torch.randn(2, 8000).to(device))
    found = model(features)
    found.square().mean().backward()
    return {
        "features": features,
        "found": found,
        "gradients": [one.grad for one in model.parameters()],
    }

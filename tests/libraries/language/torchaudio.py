"""torchaudio: a mel spectrogram, resampling, and a Conformer that trains for a step."""

import torch
import torchaudio


def use(device):
    wave = torch.randn(2, 8000).to(device)
    mel = torchaudio.transforms.MelSpectrogram(16000, n_mels=40).to(device)(wave)
    slower = torchaudio.transforms.Resample(16000, 8000).to(device)(wave)
    model = torchaudio.models.Conformer(40, 4, 64, 2, 5, dropout=0.0).to(device)
    found, lengths = model(mel.transpose(1, 2), torch.tensor([41, 30]).to(device))
    found.square().mean().backward()
    return {"mel": mel, "slower": slower, "found": found, "lengths": lengths,
            "gradients": [one.grad for one in model.parameters() if one.grad is not None]}  # fmt: skip

"""safetensors: a model's weights are written from the device and read onto it."""

import tempfile

import torch
from safetensors.torch import load_file, load_model, save_model

from torch_graft import integrations

integrations.enable("safetensors")


def use(device):
    path = f"{tempfile.mkdtemp()}/weights.safetensors"
    model, other = torch.nn.Linear(6, 3).to(device), torch.nn.Linear(6, 3).to(device)
    save_model(model, path)
    load_model(other, path, device=device)
    found = load_file(path, device=device)
    assert found["weight"].device.type == device
    return {"read": found, "answer": other(torch.ones(2, 6, device=device))}

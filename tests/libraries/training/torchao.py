"""torchao: weights become int8, and answer; a step of its 8-bit AdamW."""

import torch
from torchao.optim import AdamW8bit
from torchao.quantization import Int8WeightOnlyConfig, quantize_


def use(device):
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 64)
    ).to(device)
    x = torch.randn(4, 64).to(device)
    steps = AdamW8bit(model.parameters(), lr=1e-3)
    model(x).square().mean().backward()
    steps.step()
    weights = {name: one.clone() for name, one in model.state_dict().items()}
    quantize_(model, Int8WeightOnlyConfig())
    with torch.no_grad():
        return {"weights": weights, "answer": model(x)}

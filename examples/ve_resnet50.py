"""ResNet-50 on torch.device("ve"), as NEC's users write it; compared with the CPU."""

from __future__ import annotations

import torch

import torch_graft
from resnet50 import ResNet50

model = ResNet50()
input = torch.rand(1, 3, 224, 224)
model.eval()
with torch.no_grad():
    output_cpu = model(input)
model.train()

optimized = torch_graft.optimize(model, input)
optimized.ve()
input_ve = input.ve()
with torch.no_grad():
    optimized.eval()
    output_ve = optimized(input_ve)

torch.testing.assert_close(output_ve.cpu(), output_cpu, rtol=1e-3, atol=1e-4)
print(f"{torch.ve.get_device_name()}: the output equals the CPU's")

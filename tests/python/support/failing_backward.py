"""Memory runs out inside a backward; prints what was raised, kept and changed."""

import json
import os
import time

import torch

D = os.environ["DEVICE"]


class Greedy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        held = [torch.ones(8 * 2**20, device=D) for _ in range(40)]
        return gradient if held else None


model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Linear(256, 8)).to(D)
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)


def step(greedy):
    optimizer.zero_grad()
    hidden = model(torch.ones(64, 256, device=D))
    (Greedy.apply(hidden) if greedy else hidden).square().mean().backward()
    optimizer.step()


step(False)
optimizer.zero_grad()
torch.accelerator.synchronize()
before = torch.accelerator.memory_allocated()
weights = [p.detach().clone() for p in model.parameters()]
kept = torch.accelerator.memory_allocated() - before
try:
    step(True)
    raised = False
except torch.OutOfMemoryError:
    raised = True
optimizer.zero_grad()
for _ in range(500):  # autograd's thread lets go of the graph after the error has reached us
    given_back = torch.accelerator.memory_allocated() - before - kept
    if given_back == 0:
        break
    time.sleep(0.01)
same = all(torch.equal(a, b) for a, b in zip(weights, model.parameters(), strict=True))
step(False)
moved = not torch.equal(weights[0], model[0].weight)
print(json.dumps([raised, given_back, same, moved]))

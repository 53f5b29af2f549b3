"""Counts the calls of malloc in eager and in compiled calls; prints them as JSON."""

import ctypes
import gc
import json
import os

import torch
from torch import nn

import torch_graft

D = os.environ["DEVICE"]

heap = ctypes.PyDLL(None)
heap.heap_count.restype = ctypes.c_long
gc.disable()


def taken(call):
    for _ in range(100):  # as far ahead of the device as those below may get
        call()
    torch.accelerator.synchronize()
    heap.heap_watch(1)
    for _ in range(100):
        call()
    heap.heap_watch(0)
    return heap.heap_count()


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.wide, self.narrow = nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        y = x + self.narrow(nn.functional.gelu(self.wide(self.norm(x))))
        return y.softmax(-1), y


class Convolutions(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.SiLU()
        )


class Layers(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
        )


def found(model, inputs, results):
    with torch.no_grad():
        made = torch_graft.optimize(model, *inputs)
        return {
            "nothing": taken(lambda: None),
            "planted": taken(lambda: heap.malloc(8)),
            "a result": taken(lambda: torch.empty(2, 2, device=D)),
            "eager": taken(lambda: model(*inputs)),
            "compiled": taken(lambda: made(*inputs)),
            "results": results,
        }


torch.manual_seed(0)
SHAPES = {"Norms": (4, 6, 32), "Convolutions": (2, 3, 12, 12), "Layers": (8, 32)}
all_found = {}
for name, shape in SHAPES.items():
    model, x = globals()[name]().to(D).eval(), torch.randn(shape, device=D)
    all_found[name] = found(model, (x,), 2 if name == "Norms" else 1)
for name in json.loads(os.environ["NAMES"]):
    from networks import NETWORKS

    make_model, make_inputs = NETWORKS[name]
    model = make_model().to(D).eval()
    all_found[name] = found(model, [one.to(D) for one in make_inputs()], 1)
print(json.dumps(all_found))

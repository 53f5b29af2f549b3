"""The cases of the OpenCL driver, beside torch's CPU on the same processor (PoCL)."""

from __future__ import annotations

import torch

import cases
import digits
import models
from cases import Case, Work, family, on_square, resnet

GEMM = 1 / 0.75  # three quarters of the CPU's GFLOP/s


def digits_training(device: str) -> Work:
    """All epochs that bring the network of the digits to 97 %."""
    images, labels, _, _ = digits.load()
    torch.manual_seed(0)
    model = digits.Net().to(device)
    return lambda: digits.steps(model, device, images, labels, digits.EPOCHS, 0, False)


OPENCL: dict[str, Case] = {
    case.name: case
    for case in [
        *(Case(f"gemm {n}", GEMM, on_square(torch.mm, n)) for n in (512, 1024, 2048)),
        *family("1024²", 1.1, cases.POINTWISE, cases.SIDE),
        *family("1024²", 1.5, cases.REDUCTIONS, cases.SIDE),
        Case("MLP inference b128", 2.0, models.mlp(False)),
        Case("MLP training b128", 2.0, models.mlp(True)),
        Case("digits to 97 %", 2.5, digits_training, pairs=5),
        Case("ResNet-50 inference b1", 2.0, resnet(False, 1), pairs=7),
        Case("ResNet-50 inference b8", 1.8, resnet(False, 8), pairs=5),
        Case("ResNet-50 training b8", 2.0, resnet(True, 8), pairs=5),
        Case("GPT-2 inference b4 s128", 1.7, models.gpt2(False, 4), pairs=5),
        Case("GPT-2 training b2 s128", 1.7, models.gpt2(True, 2), pairs=5),
    ]
}

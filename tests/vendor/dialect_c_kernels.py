# tests/vendor/dialect_c_kernels.py: asks for kernels of all kinds, which GRAFT_DUMP_KERNELS writes.
"""Prints a product's operands and its bits, which the test computes again by the kernel alone."""

import json
import os

import torch
import torch.nn.functional as F

D = os.environ["DEVICE"]
torch.manual_seed(0)
x = torch.randn(37, 64, device=D)
images = torch.randn(2, 3, 12, 12, device=D)
whole = torch.arange(1, 65, device=D)

for one in (x, x.half(), x.bfloat16(), x.double()):
    (one * 2).relu().sum(1)
    one.softmax(-1)
    one @ one.t()
for name in [
    "exp",
    "log1p",
    "tanh",
    "sin",
    "lgamma",
    "erfinv",
    "digamma",
    "sqrt",
    "trunc",
    "round",
    "atan",
    "expm1",
]:
    getattr(torch, name)(x.abs())
    getattr(torch, name)(x.double().abs())
torch.hypot(x, x)
torch.fmod(x, 0.7)
torch.pow(x.abs(), 1.3)
torch.special.zeta(x.abs() + 1.5, 2.0)
whole // 7, whole % 7, whole << 2, torch.gcd(whole, whole * 3)
x.to(torch.complex64).exp()
x.sort(1), x.topk(3), x.cumsum(0), x.median(1), x.var(0)
x[whole[:30] % 37], x.gather(1, (x > 0).long()), x.index_add(0, whole[:5], x[:5])
F.conv2d(images, torch.randn(4, 3, 3, 3, device=D), padding=1)
F.max_pool2d(images, 2), F.interpolate(images, scale_factor=2.0, mode="bicubic")
F.layer_norm(x, (64,)), F.dropout(x, 0.3), F.embedding(whole[:4], x)
q = torch.randn(1, 2, 16, 8, device=D)
F.scaled_dot_product_attention(q, q, q)
torch.fft.fft(x), torch.linalg.cholesky(torch.eye(5, device=D)), torch.rand(9, device=D)

a, b = torch.arange(1000, dtype=torch.float32) / 8, torch.arange(1000, dtype=torch.float32) - 500
product = a.to(D) * b.to(D)
print(json.dumps([a.tolist(), b.tolist(), product.tolist()]))

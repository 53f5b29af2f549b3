"""The kernel table: one row per operator, shape and dtype, grouped by family."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F

from cases import Case, Work
from weight_cases import WEIGHTS

Call = Callable[..., Any]
# A shape asks for normal (or, for integers, small) numbers; a function makes what it likes.
Input = tuple[int, ...] | Callable[[torch.Generator], torch.Tensor]

F32, F16, BF16, I64 = torch.float32, torch.float16, torch.bfloat16, torch.int64
HALVES = (F32, BF16)
FLOATS = (F32, BF16, F16)
SMALL, SQUARE = (64, 64), (1024, 1024)
COMMON, COPIES = 1.1, 0.5


@dataclass(frozen=True)
class Kernel:
    """A call on inputs of one shape; the first input's shape and dtype stand in the row's name."""

    family: str
    op: str
    call: Call
    inputs: tuple[Input, ...]
    dtypes: tuple[torch.dtype, ...] = (F32,)
    goal: float = COMMON

    def cases(self) -> Iterator[Case]:
        shape = "x".join(map(str, self.inputs[0])) if isinstance(self.inputs[0], tuple) else ""
        for dtype in self.dtypes:
            name = f"{self.family}: {self.op} {shape} {str(dtype).removeprefix('torch.')}"
            yield Case(name, self.goal, self._make(dtype))

    def _make(self, dtype: torch.dtype) -> Callable[[str], Work]:
        def make(device: str) -> Work:
            source = torch.Generator().manual_seed(1)
            tensors = [
                (item(source) if callable(item) else numbers(item, dtype, source)).to(device)
                for item in self.inputs
            ]
            return lambda: self.call(*tensors)

        return make


def numbers(shape: tuple[int, ...], dtype: torch.dtype, source: torch.Generator) -> torch.Tensor:
    if dtype.is_floating_point:
        return torch.randn(shape, generator=source).to(dtype)
    return torch.randint(-100, 100, shape, generator=source, dtype=dtype)


def indices(upper: int, *shape: int) -> Input:
    return lambda source: torch.randint(upper, shape, generator=source)


def positive(*shape: int) -> Input:
    return lambda source: torch.rand(shape, generator=source) + 0.5


def each(family: str, calls: dict[str, Call], *inputs: Input, dtypes: tuple[torch.dtype, ...] = (F32,),
         goal: float = COMMON) -> list[Kernel]:  # fmt: skip
    return [Kernel(family, op, call, inputs, dtypes, goal) for op, call in calls.items()]


def with_gradient(call: Call) -> Call:
    """The call and its backward, of the first input."""

    def both(x: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        leaf = x.detach().requires_grad_()
        call(leaf, *rest).sum().backward()
        assert leaf.grad is not None
        return leaf.grad

    return both


UNARY: dict[str, Call] = {
    "relu": torch.relu, "exp": torch.exp, "log1p of abs": lambda x: x.abs().log1p(),
    "tanh": torch.tanh, "gelu": F.gelu, "silu": F.silu, "sigmoid": torch.sigmoid,
    "sin": torch.sin, "erf": torch.erf, "neg": torch.neg, "abs": torch.abs,
    "clamp": lambda x: x.clamp(-1, 1), "pow 2": lambda x: x**2, "pow 3.5": lambda x: x.abs() ** 3.5,
}  # fmt: skip
BINARY: dict[str, Call] = {
    "add": torch.add, "mul": torch.mul, "div": torch.div, "maximum": torch.maximum,
    "lt": torch.lt, "addcmul": lambda x, y: torch.addcmul(x, x, y),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
}  # fmt: skip
INTEGER: dict[str, Call] = {
    "add": torch.add, "mul": torch.mul, "bitwise_and": torch.bitwise_and, "eq": torch.eq,
    "to float32": lambda x, y: x.float(), "floor_divide": lambda x, y: x // 7,
}  # fmt: skip
REDUCE: dict[str, Call] = {
    "sum": torch.sum, "sum dim 0": lambda x: x.sum(0), "sum dim 1": lambda x: x.sum(1),
    "mean": torch.mean, "var dim 1": lambda x: x.var(1), "amax dim 0": lambda x: x.amax(0),
    "max dim 1": lambda x: x.max(1), "argmax dim 1": lambda x: x.argmax(1),
    "norm": lambda x: x.norm(), "logsumexp dim 1": lambda x: x.logsumexp(1),
    "any": lambda x: (x > 9).any(), "prod dim 1": lambda x: x.prod(1),
}  # fmt: skip
COPY: dict[str, Call] = {
    "transposed": lambda x: x.t().contiguous(), "every second column": lambda x: x[:, ::2].contiguous(),
}  # fmt: skip
MOVE: dict[str, Call] = {
    "clone": torch.clone, "flip": lambda x: x.flip(1), "roll": lambda x: x.roll(3, 1),
    "pad reflect": lambda x: F.pad(x[None], (2, 2), mode="reflect"), "tril": torch.tril,
    "repeat_interleave": lambda x: x.repeat_interleave(2, 0),
}  # fmt: skip

POINTWISE_ROWS = [
    *each("pointwise", UNARY, SQUARE, dtypes=HALVES),
    *each("pointwise", BINARY, SQUARE, SQUARE, dtypes=HALVES),
    *each("pointwise", INTEGER, SQUARE, SQUARE, dtypes=(I64,)),
    *each("pointwise", {"add": torch.add, "exp of sum": lambda x, y: (x + y).exp()}, SMALL, SMALL),
    *each("pointwise", {"add row": lambda x, y: x + y, "mul row": torch.mul}, SQUARE, (1024,), dtypes=FLOATS),
    Kernel("pointwise", "where", lambda c, x, y: torch.where(c, x, y),
           (lambda s: torch.rand(SQUARE, generator=s) > 0.5, SQUARE, SQUARE), goal=COPIES),
    *each("pointwise", {"to float16": torch.Tensor.half, "to bfloat16": torch.Tensor.bfloat16,
                        "to float64": torch.Tensor.double, "to int64": torch.Tensor.long}, SQUARE),
]  # fmt: skip

ROW_ROWS = [
    *each("reduction", REDUCE, SQUARE, dtypes=HALVES),
    *each("reduction", {"sum": torch.sum, "sum dim 1": lambda x: x.sum(1)}, SQUARE, dtypes=(I64,)),
    *each("reduction", {"sum": torch.sum, "sum dim 1": lambda x: x.sum(1)}, SMALL),
    *each("softmax", {"softmax": lambda x: x.softmax(1), "log_softmax": lambda x: x.log_softmax(1),
                      "softmax dim 0": lambda x: x.softmax(0),
                      "softmax + backward": with_gradient(lambda x: x.softmax(1))}, SQUARE, dtypes=HALVES),
    *each("norm", {"layer_norm": lambda x: F.layer_norm(x, (1024,)), "rms_norm": lambda x: F.rms_norm(x, (1024,)),
                   "layer_norm + backward": with_gradient(lambda x: F.layer_norm(x, (1024,)))}, SQUARE, dtypes=HALVES),
    *each("norm", {"batch_norm training": lambda x: F.batch_norm(x, None, None, training=True),
                   "group_norm": lambda x: F.group_norm(x, 8), "instance_norm": F.instance_norm,
                   "batch_norm + backward": with_gradient(lambda x: F.batch_norm(x, None, None, training=True))},
          (8, 64, 32, 32)),
    *each("scan", {"cumsum dim 1": lambda x: x.cumsum(1), "cumsum dim 0": lambda x: x.cumsum(0),
                   "cummax dim 1": lambda x: x.cummax(1), "logcumsumexp": lambda x: x.logcumsumexp(1)}, SQUARE),
    Kernel("sort", "sort", lambda x: x.sort(1), (SQUARE,), (F32, I64), COPIES),
    *each("sort", {"topk 10": lambda x: x.topk(10, 1), "argsort dim 0": lambda x: x.argsort(0),
                   "median dim 1": lambda x: x.median(1), "unique": lambda x: x.round().unique()}, SQUARE),
]  # fmt: skip

INDEX_ROWS = [
    *each("copy", COPY, SQUARE, dtypes=FLOATS, goal=COPIES),
    *each("copy", {"NCHW to NHWC": lambda x: x.contiguous(memory_format=torch.channels_last),
                   "permuted": lambda x: x.permute(2, 0, 3, 1).contiguous()}, (8, 64, 32, 32), goal=COPIES),
    *each("copy", MOVE, SQUARE),
    *each("cat", {"cat dim 0": lambda x, y: torch.cat([x, y]), "cat dim 1": lambda x, y: torch.cat([x, y], 1),
                  "stack": lambda x, y: torch.stack([x, y])}, SQUARE, SQUARE, dtypes=HALVES),
    Kernel("cat", "cat of 32", lambda x: torch.cat([x] * 32, 1), ((64, 32),)),
    *each("gather", {"gather dim 1": lambda x, i: x.gather(1, i), "scatter_add": lambda x, i: x.scatter_add(1, i, x)},
          SQUARE, indices(1024, 1024, 1024)),
    *each("gather", {"index_select": lambda x, i: x.index_select(0, i), "index": lambda x, i: x[i],
                     "index_add": lambda x, i: x.index_add(0, i, x),
                     "index_put": lambda x, i: x.index_put((i,), x)}, SQUARE, indices(1024, 1024)),
    Kernel("gather", "masked_fill", lambda x, m: x.masked_fill(m, 0.0),
           (SQUARE, lambda s: torch.rand(SQUARE, generator=s) > 0.5)),
    Kernel("gather", "nonzero", lambda x: (x > 0).nonzero(), (SQUARE,)),
    *each("embedding", {"embedding": lambda w, i: F.embedding(i, w),
                        "embedding + backward": with_gradient(lambda w, i: F.embedding(i, w))},
          (10000, 256), indices(10000, 4096), dtypes=HALVES),
    Kernel("embedding", "embedding_bag", lambda w, i: F.embedding_bag(i, w), ((10000, 256), indices(10000, 512, 16))),
]  # fmt: skip

CONV: dict[str, tuple[Call, tuple[int, ...], tuple[int, ...]]] = {
    "conv2d 3x3": (lambda x, w: F.conv2d(x, w, padding=1), (8, 64, 32, 32), (64, 64, 3, 3)),
    "conv2d 1x1": (F.conv2d, (8, 128, 28, 28), (128, 128, 1, 1)),
    "conv2d 7x7 stride 2": (lambda x, w: F.conv2d(x, w, stride=2, padding=3), (4, 3, 128, 128), (64, 3, 7, 7)),
    "conv2d depthwise": (lambda x, w: F.conv2d(x, w, padding=1, groups=64), (8, 64, 32, 32), (64, 1, 3, 3)),
    "conv1d": (lambda x, w: F.conv1d(x, w, padding=1), (8, 128, 256), (128, 128, 3)),
    "conv3d": (lambda x, w: F.conv3d(x, w, padding=1), (2, 16, 16, 16, 16), (32, 16, 3, 3, 3)),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w, stride=2), (4, 64, 16, 16), (64, 32, 2, 2)),
}  # fmt: skip
SPATIAL: dict[str, Call] = {
    "max_pool2d": lambda x: F.max_pool2d(x, 2), "max_pool2d 3x3": lambda x: F.max_pool2d(x, 3, 2, 1),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2), "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 1),
    "max_pool2d + backward": with_gradient(lambda x: F.max_pool2d(x, 2)),
    "avg_pool2d + backward": with_gradient(lambda x: F.avg_pool2d(x, 2)),
}  # fmt: skip
RESAMPLE: dict[str, Call] = {
    "nearest": lambda x: F.interpolate(x, scale_factor=2.0),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
    "bicubic": lambda x: F.interpolate(x, scale_factor=2.0, mode="bicubic"),
}  # fmt: skip


def attention(x: torch.Tensor, causal: bool = False) -> torch.Tensor:
    return F.scaled_dot_product_attention(x, x, x, is_causal=causal)


MODEL_ROWS = [
    *(Kernel("matmul", "mm", torch.mm, ((n, n), (n, n)), dtypes) for n, dtypes in
      ((64, (F32,)), (512, HALVES), (1024, HALVES))),
    *each("matmul", {"mv": torch.mv}, SQUARE, (1024,)),
    *each("matmul", {"linear": F.linear}, (128, 1024), SQUARE, (1024,), dtypes=HALVES),
    *each("matmul", {"bmm": torch.bmm}, (32, 128, 64), (32, 64, 128), dtypes=HALVES),
    *each("matmul", {"mm of int64": torch.mm}, (256, 256), (256, 256), dtypes=(I64,)),
    *(Kernel("convolution", op, call, (x, w)) for op, (call, x, w) in CONV.items()),
    Kernel("convolution", "conv2d 3x3 + backward", with_gradient(CONV["conv2d 3x3"][0]), CONV["conv2d 3x3"][1:]),
    *each("pooling", SPATIAL, (8, 64, 32, 32), dtypes=HALVES),
    *each("upsampling", RESAMPLE, (4, 32, 32, 32)),
    *each("attention", {"sdpa": attention, "sdpa causal": lambda x: attention(x, True),
                        "sdpa + backward": with_gradient(attention)}, (4, 8, 256, 64), dtypes=HALVES),
    *each("random", {"dropout": lambda x: F.dropout(x, 0.5), "randn": torch.randn_like, "rand": torch.rand_like,
                     "bernoulli": lambda x: torch.empty_like(x).bernoulli_(0.3)}, SQUARE, goal=COPIES),
    Kernel("random", "randperm", lambda x: torch.randperm(100000, device=x.device), ((1,),)),
    Kernel("loss", "cross_entropy + backward", with_gradient(F.cross_entropy), (SQUARE, indices(1024, 1024))),
    *each("loss", {"mse_loss": F.mse_loss, "mse_loss + backward": with_gradient(F.mse_loss)}, SQUARE, SQUARE),
    Kernel("linear algebra", "cholesky", lambda x: torch.linalg.cholesky(x @ x.mT + 64 * torch.eye(64, device=x.device)),
           ((32, 64, 64),)),
    *each("linear algebra", {"inv": torch.linalg.inv, "qr": torch.linalg.qr, "det": torch.linalg.det}, (32, 32, 32)),
    Kernel("linear algebra", "cdist", torch.cdist, ((512, 64), (512, 64))),
]  # fmt: skip

KERNELS: dict[str, Case] = {
    case.name: case
    for kernel in [*POINTWISE_ROWS, *ROW_ROWS, *INDEX_ROWS, *MODEL_ROWS]
    for case in kernel.cases()
} | WEIGHTS

"""Runs each operator of a training step on data that was copied in; prints which came out right.

Outputs are poisoned: before every call the allocator's cache is filled with copied-in junk, so an
operator that does not run leaves junk. With GRAFT_HOST_FAULTS=launch:drop all must come out wrong.
"""

import json
import os
import sys

import torch

aten = torch.ops.aten
DEVICE = os.environ["DEVICE"]
source = torch.Generator().manual_seed(3)


def rand(*shape):
    return torch.randn(shape, generator=source) + 0.1


X, Y, IMAGE = rand(6, 8), rand(6, 8), rand(2, 4, 8, 8)
WEIGHT, CHANNEL, ROW = rand(5, 4, 3, 3), rand(4).abs() + 0.5, rand(8)
LABELS = torch.tensor([1, 4, 0, 7, 2, 2])
CONV = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
POOL = ([2, 2], [2, 2], [0, 0], [1, 1], False)
LOG, SUM = X.log_softmax(1), torch.tensor(6.0)
POOLED, INDICES = aten.max_pool2d_with_indices(IMAGE, *POOL)
NORMED, MEAN, INVERSE = aten.native_batch_norm(IMAGE, CHANNEL, CHANNEL, None, None, True, 0.1, 1e-5)
LINE, LINE_MEAN, LINE_INVERSE = aten.native_layer_norm(X, [8], ROW, ROW, 1e-5)
COLUMN = rand(6, 5, 1)
FRAMES, SPELLING, LENGTHS = (
    rand(6, 2, 5).log_softmax(2),
    torch.tensor([[1, 3], [2, 4]]),
    ([6, 6], [2, 2]),
)

# name -> (function, inputs); every output must depend on the inputs and differ from them.
STEP = {
    "add": (torch.add, X, Y), "mul_": (lambda x, y: x.mul_(y), X, Y), "div": (torch.div, X, Y),
    "add_ alpha": (lambda x, y: x.add_(y, alpha=-0.3), X, Y), "exp": (torch.exp, X),
    "where": (lambda x, y: torch.where(x > 0, y, x), X, Y), "relu": (torch.relu, X),
    "gt": (torch.gt, X, Y), "sqrt": (torch.sqrt, CHANNEL),
    "sigmoid": (torch.sigmoid, X),
    "tanh": (torch.tanh, X), "gelu": (aten.gelu, X), "gelu backward": (aten.gelu_backward, X, Y),
    "threshold_backward": (lambda g, x: aten.threshold_backward(g, x, 0), X, Y),
    "cast": (lambda x: x.double() + 0, X), "strided copy": (lambda x: x.t().contiguous(), X),
    "sum": (torch.sum, X), "sum dim": (lambda x: x.sum(0), X), "mean": (torch.mean, X),
    "amax": (lambda x: x.amax(1), X), "argmax": (lambda x: x.argmax(1), X),
    "softmax": (lambda x: x.softmax(1), X), "log_softmax": (lambda x: x.log_softmax(1), X),
    "log_softmax backward": (
        lambda g, o: aten._log_softmax_backward_data(g, o, 1, torch.float32), Y, LOG),
    "nll_loss": (lambda x, t: aten.nll_loss_forward(x, t, None, 1, -100)[0], LOG, LABELS),
    "nll_loss backward": (lambda g, x, t, w: aten.nll_loss_backward(g, x, t, None, 1, -100, w),
                          torch.tensor(1.0), LOG, LABELS, SUM),
    "mm": (torch.mm, X, Y.t().contiguous()),
    "addmm": (torch.addmm, rand(6), X, Y.t().contiguous()),
    "bmm": (torch.bmm, rand(6, 3, 5), COLUMN),
    "conv2d": (lambda x, w: aten.convolution(x, w, None, *CONV), IMAGE, WEIGHT),
    "conv2d backward": (
        lambda g, x, w: aten.convolution_backward(g, x, w, [5], *CONV, [True, True, True]),
        rand(2, 5, 8, 8), IMAGE, WEIGHT),
    "batch_norm": (lambda x, w, b: aten.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5),
                   IMAGE, CHANNEL, CHANNEL),
    "batch_norm backward": (
        lambda g, x, w, m, i: aten.native_batch_norm_backward(
            g, x, w, None, None, m, i, True, 1e-5, [True, True, True]),
        rand(2, 4, 8, 8), IMAGE, CHANNEL, MEAN, INVERSE),
    "layer_norm": (lambda x, w, b: aten.native_layer_norm(x, [8], w, b, 1e-5), X, ROW, ROW),
    "layer_norm backward": (
        lambda g, x, m, i, w, b: aten.native_layer_norm_backward(
            g, x, [8], m, i, w, b, [True, True, True]),
        Y, X, LINE_MEAN, LINE_INVERSE, ROW, ROW),
    "max_pool2d": (lambda x: aten.max_pool2d_with_indices(x, *POOL), IMAGE),
    "max_pool2d backward": (
        lambda g, x, i: aten.max_pool2d_with_indices_backward(g, x, *POOL, i),
        rand(*POOLED.shape), IMAGE, INDICES),
    "avg_pool2d": (lambda x: aten.avg_pool2d(x, [2, 2]), IMAGE),
    "avg_pool2d backward": (
        lambda g, x: aten.avg_pool2d_backward(g, x, [2, 2], [2, 2], [0, 0], False, True, None),
        rand(*POOLED.shape), IMAGE),
    "adaptive_avg_pool2d": (lambda x: aten._adaptive_avg_pool2d(x, [3, 2]), IMAGE),
    "adaptive_avg_pool2d backward": (aten._adaptive_avg_pool2d_backward, rand(2, 4, 3, 2), IMAGE),
    "mean of an image": (lambda x: x.mean((-1, -2), True), IMAGE),
    "embedding": (aten.embedding, X, torch.tensor([3, 0, 3])),
    "embedding backward": (
        lambda g, i: aten.embedding_dense_backward(g, i, 4, -1, False), X, LABELS.remainder(4)),
    "dropout backward": (
        lambda g, m: aten.native_dropout_backward(g, m, 2.0), X, Y > 0),
    "gamma gradient": (aten._standard_gamma_grad, CHANNEL, rand(4).abs() + 0.1),
    "dirichlet gradient": (aten._dirichlet_grad, CHANNEL / 9, CHANNEL, CHANNEL + 1),
    "ctc_loss": (lambda x, t: aten._ctc_loss(x, t, *LENGTHS)[0], FRAMES, SPELLING),
    "ctc_loss backward": (
        lambda x, t, n, a: aten._ctc_loss_backward(x[0, :, 0].exp(), x, t, *LENGTHS, n, a, 0),
        FRAMES, SPELLING, *aten._ctc_loss(FRAMES, SPELLING, *LENGTHS)),
    "_foreach_mul_": (lambda *t: torch._foreach_mul_(t, 0.9) or t, X, ROW),
    "_foreach_add_": (lambda x, y: torch._foreach_add_([x], [y], alpha=-0.1) or x, X, Y),
}  # fmt: skip
# name -> (function on a tensor of junk, whether its values are of the distribution)
JUNK = 77.0
RANDOM = {
    "uniform_": (lambda x: x.uniform_(), lambda x: bool(((x >= 0) & (x < 1)).all())),
    "normal_": (lambda x: x.normal_(), lambda x: bool((x.abs() < 9).all() and x.std() > 0.5)),
    "dropout": (lambda x: aten.native_dropout(x, 0.5, True)[0],
                lambda x: bool(((x == 0) | (x == 2 * JUNK)).all() and x.max() > x.min())),
    "bernoulli_": (lambda x: x.bernoulli_(0.5), lambda x: bool(((x == 0) | (x == 1)).all())),
}  # fmt: skip


def poison():
    """Leaves freed blocks of many sizes full of junk."""
    held = [torch.full((2**k,), JUNK).to(DEVICE) for k in range(2, 14) for _ in range(3)]
    del held


def outputs(found):
    found = found if isinstance(found, (tuple, list)) else [found]
    return [t.cpu() for t in found if t is not None and t.numel()]


def close(ours, theirs):
    return ours.shape == theirs.shape and torch.allclose(
        ours.double(), theirs.double(), rtol=1e-4, atol=1e-5
    )


def verdict(right):
    """ "right" when every output is, "wrong" when none is, else "mixed"."""
    return "right" if all(right) else "mixed" if any(right) else "wrong"


results = {}
for name, (call, *inputs) in STEP.items():
    expected = outputs(call(*[t.clone() for t in inputs]))
    there = [t.to(DEVICE, copy=True) for t in inputs]
    poison()
    try:
        found = outputs(call(*there))
        results[name] = verdict([close(a, b) for a, b in zip(found, expected, strict=True)])
    except Exception as error:  # reported by name; the rest still runs
        results[name] = f"{type(error).__name__}: {error}"
for name, (call, good) in RANDOM.items():
    poison()
    results[name] = verdict([good(call(torch.full((4096,), JUNK).to(DEVICE)).cpu())])
json.dump(results, sys.stdout)

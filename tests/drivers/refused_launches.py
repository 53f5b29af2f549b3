"""Runs a group of operators with the first n kernels allowed, for each n; prints what came out wrong."""

import ctypes
import json
import os
import warnings
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_optimizers import optim_db
from torch.utils._pytree import tree_leaves, tree_map

D = os.environ["DEVICE"]

warnings.simplefilter("ignore")
allow = ctypes.CDLL(os.environ["GRAFT_DRIVER_PATH"]).graft_limited_allow
fallback = torch.graft.fallback
SAMPLES, MOST = 4, 16
failed, counted = {}, {"calls": 0, "late": 0}


def moved(value, device):
    return tree_map(
        lambda x: x.detach().clone().to(device) if isinstance(x, torch.Tensor) else x, value
    )


# What call leaves in its arguments on device, where the first so many kernels may run.
def written(call, given, device, kernels=-1):
    given = moved(given, device)
    torch.manual_seed(0)
    allow(kernels)
    try:
        with torch.no_grad():
            call(*given)
    finally:
        allow(-1)
    return [x.to("cpu") for x in tree_leaves(given) if isinstance(x, torch.Tensor)]


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4, equal_nan=True)


def compare(name, call, *given):
    try:
        expected = written(call, given, "cpu")
        close(written(call, given, D), expected)
    except Exception:
        return  # other tests say why
    counted["calls"] += 1
    for kernels in range(MOST):
        fallback.reset()
        try:
            close(written(call, given, D, kernels), expected)
        except Exception as error:
            failed[f"{name} after {kernels} kernels"] = str(error)[:300]
        if not any(count.reason for count in fallback.counts().values()):
            break  # so many are enough
        counted["late"] += kernels > 0


def operators():
    for info in op_db:
        call = info.inplace_variant
        if call is None:
            continue
        for s in list(info.sample_inputs("cpu", torch.float32))[:SAMPLES]:
            compare(info.name, partial(call, **s.kwargs), s.input, *s.args)


def step(make, parameters, gradients):
    parameters = [nn.Parameter(p) for p in parameters]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    make(parameters).step(lambda: torch.zeros(()))


def steps():
    shapes = ((4, 5), (7,))
    for info in optim_db:
        for case in info.optim_inputs_func(device="cpu"):
            for way in ({}, {"foreach": True}, {"fused": True}):
                make = partial(info.optim_cls, **case.kwargs, **way)
                compare(
                    f"{info.optim_cls.__name__} {case.kwargs} {way}",
                    partial(step, make),
                    [torch.randn(s) for s in shapes],
                    [torch.randn(s) for s in shapes],
                )


def statistics():
    vectors = [torch.rand(3) + 0.5 for _ in range(4)]

    def norm(x, mean, var, weight, bias):
        F.batch_norm(x, mean, var, weight, bias, training=True, momentum=0.3)

    def compiled(*given):
        torch._dynamo.reset()
        torch.compile(norm, backend="graft" if given[0].device.type == D else "eager")(*given)

    def instances(x, mean, var, weight, bias):
        F.instance_norm(x, mean, var, weight, bias, use_input_stats=True, momentum=0.3)

    def gathered(x, mean, var, weight, bias):
        if x.device.type == "cpu":  # which has no such step
            norm(x, mean, var, weight, bias)
            return
        m, s = torch.batch_norm_stats(x, 1e-5)
        count = torch.tensor([x.numel() / 3], device=x.device)
        torch.batch_norm_gather_stats_with_counts(x, m[None], s[None], mean, var, 0.3, 1e-5, count)

    for x in (
        torch.randn(4, 3, 5, 5),
        torch.randn(6, 3),
        torch.randn(2, 3, 700),
        torch.randn(4, 3, 5, 5).to(memory_format=torch.channels_last),
    ):
        for call in (
            (norm, compiled, gathered) if x.dim() == 2 else (norm, compiled, gathered, instances)
        ):
            compare(f"{call.__name__} {tuple(x.shape)}", call, x, *vectors)


def others():
    def observed(x, low, high, scale, zero):
        on = torch.ones(1, dtype=torch.int64, device=x.device)
        torch.fused_moving_avg_obs_fake_quant(x, on, on, low, high, scale, zero, 0.1, 0, 255, 0)

    compare(
        "observed",
        observed,
        torch.randn(4, 5),
        torch.tensor([-1.0]),
        torch.tensor([1.0]),
        torch.ones(1),
        torch.zeros(1, dtype=torch.int32),
    )
    compare(
        "unscale",
        lambda *a: torch._amp_foreach_non_finite_check_and_unscale_(list(a[:2]), *a[2:]),
        torch.randn(5),
        torch.randn(3, 3),
        torch.zeros(1),
        torch.tensor(0.5),
    )
    compare(
        "update scale",
        lambda *a: torch._amp_update_scale_(*a, 2.0, 0.5, 1),
        torch.tensor(4.0),
        torch.zeros((), dtype=torch.int32),
        torch.zeros(1),
    )
    compare(
        "renorm",
        lambda w, i: torch.embedding_renorm_(w, i, 0.5, 2.0),
        torch.randn(6, 4),
        torch.tensor([0, 2, 2, 5]),
    )
    compare(
        "accumulated",
        lambda x, i, v: x.index_put_((i,), v, accumulate=True),
        torch.randn(6, 4),
        torch.tensor([0, 2, 2, 5]),
        torch.randn(4, 4),
    )


globals()[os.environ["GROUP"]]()
print(json.dumps([failed, counted]))

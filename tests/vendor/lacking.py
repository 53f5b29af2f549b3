"""Computes in place on a chip that lacks one of its operators, for each; prints what came out wrong.

Plans are kept by layout, so each case has a size of its own."""

import itertools
import json
import os
import warnings

import torch
from torch import nn
from torch.nn import functional as F

D = os.environ["DEVICE"]
OPERATORS = os.environ["OPERATORS"].split()
warnings.simplefilter("ignore")
fallback = torch.get_device_module(D).fallback
sizes = itertools.count(2)
failed, counted = {}, {"cases": 0, "lacking": 0}


def numbers(*size):
    return torch.rand(size) + 0.5


def steps(make):
    def run(parameter, other, gradient, rest):
        parameters = [nn.Parameter(parameter), nn.Parameter(other)]
        parameters[0].grad, parameters[1].grad = gradient, rest
        optimizer = make(parameters)
        for _ in range(2):
            optimizer.step()

    return lambda n: (run, [numbers(n, 3), numbers(n), numbers(n, 3), numbers(n)])


def batch_norm(n):
    def run(x, mean, variance, weight, bias, kept):
        kept.add_(F.batch_norm(x, mean, variance, weight, bias, training=True))

    return run, [numbers(2, n, 2, 2), *(numbers(n) for _ in range(4)), numbers(2, n, 2, 2)]


def lists(n):
    def run(a, b, c, d):
        torch._foreach_add_([a, b], [c, d], alpha=2)
        torch._foreach_mul_([a, b], 3)
        torch._foreach_addcdiv_([a, b], [c, d], [c, d], 0.5)
        torch._foreach_sqrt_([a, b])
        torch._foreach_lerp_([a, b], [c, d], 0.25)

    return run, [numbers(n), numbers(2, n), numbers(n), numbers(2, n)]


def products(n):
    def run(x, a, b, row):
        x.addmm_(a, b, alpha=2)
        x.addr_(row, row)
        x.mul_(a).add_(b)

    return run, [numbers(n, n), numbers(n, n), numbers(n, n), numbers(n)]


def pointwise(n):
    def run(x, a, b):
        x.add_(0.5).mul_(a).addcmul_(a, b, value=0.5).addcdiv_(a, b)
        x.lerp_(a, 0.5).sub_(b, alpha=2).div_(a).clamp_(0.1).sqrt_().tanh_()

    return run, [numbers(n, 2), numbers(n, 2), numbers(n, 2)]


def moves(n):
    def run(x, rows, at):
        x.copy_(x.flip(0))
        x.index_add_(0, at, rows).index_copy_(0, at, rows)
        x.index_put_((at,), rows, accumulate=True)
        x.cumsum_(1).fill_diagonal_(0.5).masked_fill_(x > 2, 1)

    return run, [numbers(n, 3), numbers(2, 3), torch.tensor([0, 1])]


CASES = {
    "SGD": steps(lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.1)),
    "SGD of lists": steps(lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, foreach=True)),
    "fused SGD": steps(lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, fused=True)),
    "Adam": steps(lambda p: torch.optim.Adam(p, 0.1, amsgrad=True, foreach=False)),
    "AdamW of lists": steps(lambda p: torch.optim.AdamW(p, 0.1, foreach=True)),
    "fused AdamW": steps(lambda p: torch.optim.AdamW(p, 0.1, fused=True)),
    "RMSprop": steps(lambda p: torch.optim.RMSprop(p, 0.1, momentum=0.5, centered=True)),
    "batch norm": batch_norm,
    "lists": lists,
    "products": products,
    "pointwise": pointwise,
    "moves": moves,
}


def written(run, given, device):
    given = [x.clone().to(device) for x in given]
    with torch.no_grad():
        run(*given)
    return [x.cpu() for x in given]


def fallbacks():
    return sum(count.calls for count in fallback.counts().values())


for name, case in CASES.items():
    run, given = case(next(sizes))
    fallback.reset()
    written(run, given, D)
    usual = fallbacks()
    for operator in OPERATORS:
        run, given = case(next(sizes))
        fallback.reset()
        os.environ["FIXED_FUNCTION_LACKS"] = operator
        try:
            found = written(run, given, D)
            torch.testing.assert_close(found, written(run, given, "cpu"), rtol=1e-4, atol=1e-4)
        except Exception as error:
            failed[f"{name} without {operator}"] = str(error)[:300]
        counted["cases"] += 1
        counted["lacking"] += fallbacks() > usual
print(json.dumps([failed, counted]))

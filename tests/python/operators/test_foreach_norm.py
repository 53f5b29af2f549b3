"""Reductions over lists of tensors: as on the CPU, in a launch or two for 16 tensors."""

import math

import pytest
import torch
from torch.testing import assert_close

LIST = 16  # tensors that one launch takes


def drawn(shapes, dtype, seed):
    source = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=source).mul(0.6).to(dtype) for shape in shapes]


def launches(module, function, *given):
    before = module.statistics()["launches"]
    result = function(*given)
    return result, module.statistics()["launches"] - before


def on(device, list_):
    return [t.to(device) for t in list_]


@pytest.mark.parametrize("order", [1, 2.0, math.inf, 0.7, 0, -1], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_norms_are_those_of_the_cpu(device, order, dtype):
    list_ = drawn([(3,), (70, 300), (), (2, 3), *[(k * 5000,) for k in range(1, 20)]], dtype, 1)
    list_[5][7] = math.nan
    list_[6][9] = -math.inf
    for operator in (torch._foreach_norm, torch._foreach_powsum):
        for result in (None, torch.float64):
            try:
                expected = operator(list_, order, dtype=result)
            except RuntimeError:
                with pytest.raises(RuntimeError):
                    operator(on(device, list_), order, dtype=result)
                continue
            found = on("cpu", operator(on(device, list_), order, dtype=result))
            loose = 2e-2 if found[0].dtype == torch.bfloat16 else 1e-4
            assert_close(found, expected, rtol=loose, atol=loose, equal_nan=True)


@pytest.mark.parametrize(
    "operator", [torch._foreach_norm, torch._foreach_powsum, torch._foreach_max]
)
def test_reductions_are_two_launches_for_a_group_of_long_tensors(device, module, native, operator):
    list_ = on(device, [*drawn([(20001,), (3,), (5, 7)], torch.float32, 1)] * 20)
    found, count = launches(module, operator, list_)
    assert count == 2 * math.ceil(len(list_) / LIST)
    assert_close(on("cpu", found), operator(on("cpu", list_)), rtol=1e-5, atol=1e-5)
    if operator is torch._foreach_max:
        list_[4][0] = math.nan
        assert operator(list_)[4].isnan()


def test_reductions_of_empty_tensors(device):
    list_ = [torch.ones(3), torch.ones(0)]
    for order in (1, 2):
        assert_close(on("cpu", torch._foreach_norm(on(device, list_), order)),
                     torch._foreach_norm(list_, order))  # fmt: skip
    for call in (torch._foreach_max, lambda given: torch._foreach_norm(given, math.inf)):
        with pytest.raises((RuntimeError, IndexError)):
            call(on(device, list_))


def test_clipping_gradients_takes_a_few_launches_a_group(device, module, native):
    parameters = [torch.ones(3, 2, device=device, requires_grad=True) for _ in range(100)]
    for k, parameter in enumerate(parameters):
        parameter.grad = torch.full_like(parameter, k * 0.1)
    expected = [p.detach().cpu().requires_grad_() for p in parameters]
    for ours, theirs in zip(parameters, expected, strict=True):
        theirs.grad = ours.grad.cpu()
    norm, count = launches(module, torch.nn.utils.clip_grad_norm_, parameters, 1.0)
    assert count <= 2 * math.ceil(100 / LIST) + 20
    assert_close(norm.cpu(), torch.nn.utils.clip_grad_norm_(expected, 1.0))
    assert_close([p.grad.cpu() for p in parameters], [p.grad for p in expected])

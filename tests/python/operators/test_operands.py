"""Operands of several places, of no elements, and checks of whole tensors."""

import itertools

import pytest
import torch


def test_numbers_of_the_cpu_join_in(device):
    condition = torch.tensor([True, False], device=device)
    ones = torch.ones(2, device=device)
    assert torch.where(condition, torch.tensor(1.5), ones).tolist() == [1.5, 1.0]
    assert torch.where(torch.tensor(True), ones, ones * 0).tolist() == [1.0, 1.0]
    assert torch.where(condition, 3, 7.0).tolist() == [3.0, 7.0]


def test_products_of_two_places_are_refused(device):
    host = torch.rand(4, 4)
    ours = host.to(device)
    for a, b, c in itertools.product((host, ours), repeat=3):
        if a.device == b.device == c.device:
            continue
        with pytest.raises(RuntimeError, match="all tensors to be on the same device"):
            torch.addmm(a, b, c)


def test_python_functions_over_elements_need_the_cpu(device):
    x = torch.ones(3, device=device)
    for call in (lambda: x.map_(x, lambda a, b: a), lambda: x.apply_(lambda a: a)):
        with pytest.raises(TypeError, match="only implemented on CPU tensors"):
            call()


def test_checks_of_whole_tensors_raise(device):
    with pytest.raises(RuntimeError, match="not all"):
        torch._check_tensor_all(torch.tensor([True, False], device=device), lambda: "not all")
    torch._check_tensor_all(torch.ones(3, dtype=torch.bool, device=device))


def test_shapes_without_elements(device):
    def shapes(where):
        x = torch.empty(0, 1, 2, 0, device=where)
        return [
            y.shape for y in (
                x.softmax(2), x.cumsum(2), x.cummax(0)[0], x.roll(1, 3), x.sort(2)[0],
                x.topk(1, 2)[0], x.renorm(1, 2, 5), torch.nn.functional.glu(x, 2), x.flip(0),
                x.logcumsumexp(2), torch.diagflat(torch.empty(0, device=where), 1),
                x.take(torch.empty(0, dtype=torch.int64, device=where)),
            )
        ]  # fmt: skip

    assert shapes(device) == shapes("cpu")

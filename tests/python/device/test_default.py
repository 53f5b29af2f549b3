"""torch.set_default_device and `with torch.device`: factories make tensors on the device."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close
from torch.utils.data import DataLoader

pytestmark = pytest.mark.any_driver


@pytest.fixture
def chosen(device):
    torch.set_default_device(device)
    yield device
    torch.set_default_device(None)


FACTORIES = {
    "empty": lambda: torch.empty(2), "zeros": lambda: torch.zeros(2), "ones": lambda: torch.ones(2),
    "full": lambda: torch.full((2,), 1.0), "arange": lambda: torch.arange(3),
    "linspace": lambda: torch.linspace(0, 1, 3), "eye": lambda: torch.eye(2),
    "rand": lambda: torch.rand(2), "randn": lambda: torch.randn(2),
    "randint": lambda: torch.randint(3, (2,)), "randperm": lambda: torch.randperm(3),
    "tensor": lambda: torch.tensor([1.0]), "as_tensor": lambda: torch.as_tensor([1.0]),
    "scalar_tensor": lambda: torch.scalar_tensor(1.0), "tril": lambda: torch.tril_indices(2, 2),
    "hann_window": lambda: torch.hann_window(4), "fftfreq": lambda: torch.fft.fftfreq(4),
    "complex": lambda: torch.complex(torch.ones(1), torch.ones(1)),
    "empty_strided": lambda: torch.empty_strided((2,), (1,)),
    "sparse": lambda: torch.sparse_coo_tensor([[0]], [1.0], (2,)),
    "parameter": lambda: nn.Parameter(torch.ones(2)), "module": lambda: nn.Linear(2, 1).weight,
    "vander": lambda: torch.vander(torch.arange(3)),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTORIES)
def test_factories(chosen, name):
    made = FACTORIES[name]()
    assert made.device == torch.empty(0, device=chosen).device
    assert torch.get_default_device() == made.device


def test_what_stays_where_it_was_asked_for(chosen, second):
    assert torch.ones(1, device="cpu").device.type == "cpu"
    assert torch.ones(1, device=second).device == torch.empty(0, device=second).device
    host = torch.ones(1, device="cpu")
    for made in (torch.zeros_like(host), host.new_ones(2), torch.from_numpy(np.ones(2))):
        assert made.device.type == "cpu"
    generator = torch.Generator("cpu").manual_seed(0)
    assert torch.rand(1, generator=generator, device="cpu").device.type == "cpu"


def test_the_index_is_kept(device, second):
    with torch.device(second):
        assert torch.ones(1).device == torch.device(second)
        assert nn.Linear(2, 1).weight.device == torch.device(second)
        with torch.device("cpu"):
            assert torch.ones(1).device.type == "cpu"
    assert torch.ones(1).device.type == "cpu"
    try:
        torch.set_default_device(second)
        assert torch.ones(1).device == torch.get_default_device() == torch.device(second)
    finally:
        torch.set_default_device(None)


def test_without_an_index_it_follows_the_current_device(chosen, second, module):
    with module.device(torch.device(second).index):
        assert torch.ones(1).device == torch.device(second)


def test_a_model_trains_without_naming_the_device(chosen):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    x, losses = torch.randn(16, 4), []
    for _ in range(20):
        optimizer.zero_grad()
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    assert losses[0].device.type == chosen
    assert losses[-1] < losses[0] / 2


def test_loaders_under_a_default_device(chosen):
    """As for torch.cuda: batches are made on the device, and shuffling needs its generator."""
    assert [b.device.type for b in DataLoader(list(range(4)), 2)] == [chosen] * 2
    with pytest.raises(RuntimeError, match="generator"):
        list(DataLoader(list(range(4)), 2, shuffle=True))
    generator = torch.Generator(chosen).manual_seed(1)
    batches = list(DataLoader(list(range(4)), 2, shuffle=True, generator=generator))
    assert sorted(torch.cat(batches).tolist()) == [0, 1, 2, 3]


def test_the_default_dtype_holds_on_the_device(device):
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.ones(1, device=device).dtype == torch.float64
        assert_close(torch.arange(2, device=device) / 2, torch.tensor([0, 0.5], device=device))
    finally:
        torch.set_default_dtype(torch.float32)


def test_types_are_named_after_the_device(device):
    x = torch.ones(1).type(f"torch.{device}.HalfTensor")
    assert (x.device.type, x.dtype, x.type()) == (device, torch.half, f"torch.{device}.HalfTensor")

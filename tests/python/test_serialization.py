"""Save, load, map_location, pickle, deepcopy, state dicts, safetensors, DLPack."""

import copy
import io
import pickle

import pytest
import torch
from torch.testing import assert_close


def saved(thing):
    buffer = io.BytesIO()
    torch.save(thing, buffer)
    buffer.seek(0)
    return buffer


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool], ids=str)
def test_round_trip(device, dtype):
    base = torch.arange(24).to(dtype).to(device).reshape(4, 6)
    shared = {"base": base, "view": base[1:, ::2], "t": base.t(), "none": base[:0]}
    back = torch.load(saved(shared), weights_only=True)
    for name, tensor in shared.items():
        assert back[name].device == tensor.device
        assert back[name].stride() == tensor.stride()
        assert_close(back[name].cpu(), tensor.cpu())
    back["base"].zero_()
    assert not back["view"].any().item()


def test_map_location(device, second):
    x = torch.arange(5.0)
    places = {device: device, second: second, "cpu": "cpu"}
    for source in places:
        for target, expected in places.items():
            for where in (target, torch.device(target), {f"{device}:0": target, device: target}):
                if isinstance(where, dict) and torch.device(source).type == "cpu":
                    continue
                if isinstance(where, dict) and source == second:
                    continue
                back = torch.load(saved(x.to(source)), map_location=where, weights_only=True)
                assert back.device.type == torch.device(expected).type
                assert_close(back.cpu(), x)
    back = torch.load(saved(x.to(device)), map_location=lambda s, _: s, weights_only=True)
    assert_close(back.cpu(), x)


def test_pickle_and_deepcopy(device):
    x = torch.randn(3, 4, device=device, requires_grad=True)
    back = pickle.loads(pickle.dumps(x))
    assert (back.device, back.requires_grad) == (x.device, True)
    assert_close(back, x)
    twin = copy.deepcopy(x)
    assert twin.data_ptr() != x.data_ptr()
    assert_close(twin, x)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).to(device)
    again = copy.deepcopy(model)
    assert_close(list(again.state_dict().values()), list(model.state_dict().values()))
    assert next(again.parameters()).device == next(model.parameters()).device


def test_checkpoint_of_a_training(device):
    def fresh():
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 2).to(device)
        return model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

    def step(model, optimizer):
        optimizer.zero_grad()
        model(torch.ones(3, 4, device=device)).square().sum().backward()
        optimizer.step()

    model, optimizer = fresh()
    step(model, optimizer)
    file = saved({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    step(model, optimizer)
    other, its = fresh()
    state = torch.load(file, map_location="cpu", weights_only=True)
    other.load_state_dict(state["model"])
    its.load_state_dict(state["optimizer"])
    step(other, its)
    assert_close(other.weight, model.weight, rtol=0, atol=0)


def test_dlpack_capsule(device):
    x = torch.arange(6.0, device=device).reshape(2, 3)
    back = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    back.add_(1)
    assert back.device == x.device
    assert x.tolist() == [[1, 2, 3], [4, 5, 6]]

"""Tensors, storages and modules through torch.save, pickle and deepcopy; docs/use/serialization.md."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn
from torch.testing import assert_close
from torch.utils.serialization import config

pytestmark = [pytest.mark.any_driver, pytest.mark.two_drivers]


def saved(thing):
    buffer = io.BytesIO()
    torch.save(thing, buffer)
    buffer.seek(0)
    return buffer


DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.bool, torch.uint8,
          torch.int16, torch.int64, torch.uint16, torch.complex64, torch.complex128,
          torch.float8_e4m3fn, torch.float8_e5m2]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_round_trip(device, dtype):
    base = torch.arange(24).to(dtype).to(device).reshape(4, 6)
    shared = {"base": base, "view": base[1:, ::2], "t": base.t(), "none": base[:0]}
    back = torch.load(saved(shared), weights_only=True)
    for name, tensor in shared.items():
        assert back[name].device == tensor.device
        assert back[name].stride() == tensor.stride()
        assert_close(back[name].cpu(), tensor.cpu())
    back["base"].zero_()
    assert not back["view"].to(torch.complex64).any().item()


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


def loaded(thing, **options):
    return torch.load(saved(thing), **{"weights_only": True, **options})


def test_tensors_of_every_form(device):
    z = torch.tensor([1 + 2j, 3 - 1j], device=device)
    forms = {"conjugate": z.conj(), "negative": torch._neg_view(z), "number": z[0], "empty": z[:0],
             "expanded": z[:1].expand(5), "sparse": z.real.diag().to_sparse(),
             "rows": z.real.diag().to_sparse_csr()}  # fmt: skip
    back = loaded(forms)
    for name, tensor in forms.items():
        one = back[name]
        assert (one.device, one.layout, one.shape) == (tensor.device, tensor.layout, tensor.shape)
        assert (one.is_conj(), one.is_neg()) == (tensor.is_conj(), tensor.is_neg())
        assert_close(one.to_dense().cpu(), tensor.to_dense().cpu())
    assert back["expanded"].stride() == (0,)


class Tagged(torch.Tensor):
    """A subclass whose instances have an attribute."""


def test_subclasses_parameters_and_attributes(second):
    x = torch.ones(3, device=second).as_subclass(Tagged)
    x.tag = "kept"
    for back in (loaded(x, weights_only=False), pickle.loads(pickle.dumps(x))):
        assert (type(back), back.tag, back.device) == (Tagged, "kept", x.device)
    parameter = loaded(nn.Parameter(torch.ones(2, device=second), requires_grad=False))
    assert isinstance(parameter, nn.Parameter)
    assert (parameter.requires_grad, parameter.device) == (False, x.device)
    ragged = torch.nested.nested_tensor([x[:1], x], layout=torch.jagged)
    assert_close(loaded(ragged, weights_only=False).values(), ragged.values())
    packed = nn.utils.rnn.pack_sequence([x.unsqueeze(1), x[:2].unsqueeze(1)])
    back = loaded(packed, weights_only=False)
    assert_close((back.data, back.batch_sizes), (packed.data, packed.batch_sizes))


def test_a_whole_module(device, second):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(3, 4)).to(second)
    model[2].weight = model[0].weight
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        loaded(model)
    for back, where in (
        (loaded(model, weights_only=False), second),
        (loaded(model, weights_only=False, map_location=f"{device}:0"), f"{device}:0"),
        (copy.deepcopy(model), second),
    ):
        assert {str(t.device) for t in back.state_dict().values()} == {where}
        for name, tensor in back.state_dict().items():
            assert_close(tensor.cpu(), model.state_dict()[name].cpu())
        assert back[2].weight is back[0].weight


def test_state_dicts_across_devices(device, second):
    source = nn.Linear(3, 2)
    places = ("cpu", f"{device}:0", second)
    for origin in places:
        for where in places:
            state = copy.deepcopy(source).to(origin).state_dict()
            model = nn.Linear(3, 2).to(where)
            weight = model.weight
            model.load_state_dict(state)
            assert model.weight is weight
            assert (str(weight.device), weight.tolist()) == (where, source.weight.tolist())
            model.load_state_dict(state, assign=True)
            assert str(model.weight.device) == origin
    with torch.device("meta"):
        model = nn.Linear(3, 2)
    model.load_state_dict(loaded(source.to(second).state_dict()), assign=True)
    assert str(model.weight.device) == second


def test_storages(device, second):
    x = torch.arange(6.0, device=second)
    storage = x.untyped_storage()
    there, here = torch.device(second), torch.device(device, 0)
    raw = list(x.cpu().numpy().tobytes())
    assert (storage.device, storage.nbytes(), storage.data_ptr()) == (there, 24, x.data_ptr())
    assert getattr(storage, f"is_{device}")
    assert storage.tolist() == storage.cpu().tolist() == raw
    move = getattr(torch.UntypedStorage, device)
    for one, where in ((storage.clone(), there), (copy.deepcopy(storage), there),
                       (move(storage, 0), here), (storage.to(device=device), here),
                       (move(storage.cpu(), 1), there), (loaded(storage), there),
                       (torch.UntypedStorage(24, device=device).copy_(storage), here),
                       (torch.UntypedStorage(raw, device=device), here)):  # fmt: skip
        assert (one.device, one.tolist()) == (where, raw)
        one.fill_(1)
        one[2] = 5
        one.resize_(4)
        assert (one.tolist(), one.nbytes()) == ([1, 1, 5, 1], 4)
    assert storage.tolist() == raw
    assert torch.empty(0, device=second).set_(storage).equal(x)
    with pytest.raises(RuntimeError, match="the devices must match"):
        torch.empty(0, device=device).set_(storage)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_typed_storages(second):
    typed = torch.arange(4.0, device=second).storage()
    for back in (typed, loaded(typed), pickle.loads(pickle.dumps(typed)), copy.deepcopy(typed)):
        assert (back.dtype, str(back.device), back[3]) == (torch.float32, second, 3)
        assert back.tolist() == [0, 1, 2, 3]
    assert typed.cpu().device.type == "cpu"


def test_settings_of_torch_save(device, tmp_path):
    x = torch.arange(1000.0, device=device)
    with config.patch("save.use_pinned_memory_for_d2h", True):
        assert loaded(x).equal(x)
    with torch.serialization.skip_data():
        hollow = saved(x)
    assert torch.load(hollow, weights_only=True).shape == x.shape
    file = saved(x)
    with torch._subclasses.FakeTensorMode():
        fake = torch.load(file, weights_only=True)
    assert (fake.device, fake.shape) == (x.device, x.shape)
    with (tmp_path / "raw").open("wb") as file:
        x.untyped_storage()._write_file(file, False, False, 4)
    assert (tmp_path / "raw").read_bytes() == x.cpu().numpy().tobytes()

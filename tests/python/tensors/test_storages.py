"""Storages: read, written, moved and shared; the tensors and types made of them."""

import copy

import pytest
import torch
from torch.testing import assert_close

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")


def test_storages_are_read_and_written_by_index(device):
    x = torch.arange(15.0, device=device).reshape(3, 5)
    typed, raw = x.storage(), x.untyped_storage()
    assert [typed[i] for i in (0, 14)] == [0.0, 14.0]
    assert raw[4:8].tolist() == torch.tensor([1.0]).untyped_storage().tolist()
    typed = torch.TypedStorage(10, dtype=torch.float32, device=device)
    typed[:] = 0
    typed[3], typed[5:7] = 4, 1
    assert typed.tolist() == [0, 0, 0, 4, 0, 1, 1, 0, 0, 0]
    assert torch.UntypedStorage([1, 2, 3], device=device).tolist() == [1, 2, 3]


def test_tensors_take_storages(device):
    x = torch.arange(6.0, device=device)
    for storage in (x.storage(), x.untyped_storage()):
        assert torch.tensor([], device=device).set_(storage).tolist() == x.tolist()
        assert torch.tensor(storage, device=device, dtype=torch.float32).tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="Expected a Storage of type Float"):
        torch.tensor(x.long().storage(), device=device, dtype=torch.float32)
    same = torch.tensor([], device=device).set_(x)
    assert same.is_set_to(x)
    assert not x.clone().is_set_to(x)


def test_storages_of_two_devices_do_not_mix(device, second):
    x, y = torch.ones(2, 3, device=device), torch.ones(2, 3, device=second)
    for source in ((y.storage(),), (y.storage(), 0, y.size(), y.stride()), (y,), (torch.ones(2),)):
        with pytest.raises(RuntimeError, match="different device"):
            x.set_(*source)


def test_storages_move_and_convert(device, second):
    storage = torch.randn(4, 4, device=second).storage()
    for made in (storage.clone(), *(getattr(storage, t)() for t in ("half", "double", "int"))):
        assert made.device == torch.device(second)
    assert storage.cpu().device.type == "cpu"
    assert getattr(torch.ones(2).storage(), device)().device == torch.device(device, 0)
    raw = torch.arange(4.0, device=device).untyped_storage()
    assert (raw.cpu().nbytes(), raw.to(device=second).device) == (16, torch.device(second))
    assert getattr(raw, f"is_{device}")
    with pytest.raises(RuntimeError, match="only available on CPU"):
        raw._share_fd_cpu_()


def test_deepcopy_keeps_sharing_and_attributes(device):
    x = torch.randn(5, 5, device=device)
    x.note = 3
    both = copy.deepcopy([x, x.view(25), x.untyped_storage()])
    both[0].add_(1)
    assert_close(both[1], (x + 1).view(25), rtol=0, atol=0)
    assert both[2].data_ptr() == both[0].untyped_storage().data_ptr()
    assert both[0].note == 3


def test_types_are_named_after_the_device(device):
    x = torch.ones(2).to(device)
    assert x.type() == f"torch.{device}.FloatTensor"
    assert x.type(torch.float64).type() == f"torch.{device}.DoubleTensor"
    assert torch.ones(1).type(f"torch.{device}.DoubleTensor").device.type == device
    assert x.type("torch.FloatTensor").device.type == "cpu"


def test_new_tensors_follow_their_tensor_or_the_current_device(device, second, module):
    x = torch.randn(3, device=device)
    with module.device(1):
        assert torch.ones(1, device=device).get_device() == 1
        assert (x + x).get_device() == 0
        assert [x.new([1, 2]).get_device(), x.new_zeros(2, device=second).get_device()] == [0, 1]
        assert getattr(x, device)().get_device() == 1
    assert getattr(x, device)() is x
    assert torch.ones(2, device=1).device == torch.device(second)

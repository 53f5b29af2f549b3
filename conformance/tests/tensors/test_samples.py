# conformance/tests/tensors/test_samples.py: samples arrive on the device with the layout that was asked for.
from __future__ import annotations

import pytest
import torch

from torch_conformance.cells import cases
from torch_conformance.suites import modules
from torch_conformance.tensors import samples
from torch_conformance.tensors.samples import Carrier
from vendor_file import DEVICES

SOURCES = {
    "contiguous": torch.arange(12.0).reshape(3, 4),
    "transposed": torch.arange(12.0).reshape(3, 4).t(),
    "expanded": torch.arange(3.0).expand(4, 3),
    "stepped": torch.arange(24.0).reshape(4, 6)[::2, 1::2],
    "sliced": torch.arange(12.0)[3:7],
    "empty": torch.ones(0, 3).t(),
    "scalar": torch.tensor(3.0),
    "conjugate": torch.complex(torch.ones(3), torch.arange(3.0)).conj(),
    "negative": torch.complex(torch.ones(3), torch.arange(3.0)).conj().imag,
    "sparse": torch.eye(3).to_sparse(),
}


@pytest.fixture(params=["cpu", "own"])
def place(request):
    return torch.device("cpu" if request.param == "cpu" else DEVICES[-1])


@pytest.mark.parametrize("name", [n for n in SOURCES if n != "sparse"])
def test_a_carried_tensor_keeps_values_and_strides(name, place):
    source = SOURCES[name]
    copy = samples.carried(source, place)
    assert copy.device.type == place.type
    assert copy.stride() == source.stride()
    assert copy.storage_offset() == source.storage_offset()
    assert copy.untyped_storage().nbytes() >= source.untyped_storage().nbytes()
    assert (copy.is_conj(), copy.is_neg()) == (source.is_conj(), source.is_neg())
    assert copy.cpu().equal(source)
    if source.numel():
        assert copy.data_ptr() != source.data_ptr()


def test_gradients_are_asked_for_at_leaves(place):
    source = torch.ones(3, 2, requires_grad=True)
    copy = samples.carried(source.t(), place)
    assert copy.requires_grad
    assert copy.is_leaf


def test_a_sparse_tensor_is_copied():
    copy = samples.carried(SOURCES["sparse"], torch.device("cpu"))
    assert copy.is_sparse
    assert copy.to_dense().equal(torch.eye(3))


@pytest.mark.parametrize("name", ["contiguous", "transposed", "empty", "scalar"])
def test_a_shifted_tensor_begins_inside_its_storage(name, place):
    copy = samples.shifted(SOURCES[name], place)
    assert copy.storage_offset() == samples.OFFSET
    assert copy.cpu().equal(SOURCES[name])


def test_layouts():
    image = torch.rand(2, 3, 4, 5)
    assert samples.channels_last(image).is_contiguous(memory_format=torch.channels_last)
    assert not samples.noncontiguous(image).is_contiguous()
    assert samples.noncontiguous(image).equal(image)


def test_one_tensor_given_twice_stays_one(place):
    x = torch.ones(3)
    a, (b, c) = Carrier(place)((x, [x, torch.ones(3)]))
    assert a is b
    assert a is not c


def test_places_are_named_anew():
    there = torch.device("meta")
    given = {"device": "cpu", "x": (torch.device("cpu"), "cpu"), "dtype": torch.float32}
    assert Carrier(there)(given) == {
        "device": there, "x": (there, "meta"), "dtype": torch.float32,
    }  # fmt: skip


def test_upcast_takes_floating_tensors_and_dtypes():
    wide = samples.upcast((torch.ones(1), torch.ones(1).int(), {"dtype": torch.float32}))
    assert wide[0].dtype == torch.float64
    assert wide[1].dtype == torch.int32
    assert wide[2] == {"dtype": torch.float64}


def test_shared_memory_is_seen():
    x = torch.ones(4)
    assert samples.shares((x.view(2, 2), x.clone()), [x]) == [True, False]


@pytest.mark.parametrize(
    ("dtype", "wide"), [(torch.float16, torch.float64), (torch.complex32, torch.complex128)]
)
def test_a_module_is_computed_once_more_in_double_precision(dtype, wide):
    info = cases.entries("module")["nn.Conv1d"]
    given = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=False,
                                    training=True)[0]  # fmt: skip
    example = modules.Example(info, given, dtype, training=True)
    home = Carrier(torch.device("cpu"))
    weights = modules.used(example, home, True, lambda module, inputs: list(module.parameters()))
    assert {w.dtype for w in weights} == {wide}

"""DLPack, NumPy and buffers: what crosses to other libraries, with and without a copy."""

import array
import ctypes

import numpy as np
import pytest
import torch
from torch.utils.dlpack import DLDeviceType, from_dlpack, to_dlpack

pytestmark = [pytest.mark.both_modes, pytest.mark.any_driver]

CPU = (DLDeviceType.kDLCPU, 0)
VERSION = (1, 0)


@pytest.fixture
def x(device):
    return torch.arange(6.0, device=f"{device}:0").reshape(2, 3)


class Foreign:
    """An array of another library that lies on the device: all that DLPack asks of it."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **keywords):
        return self.tensor.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return DLDeviceType.kDLExtDev, self.tensor.device.index


class Header(ctypes.Structure):
    """The start of a DLTensor."""

    _fields_ = [("data", ctypes.c_void_p), ("type", ctypes.c_int), ("index", ctypes.c_int),
                ("dimensions", ctypes.c_int), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16)]  # fmt: skip


def header(capsule):
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Header.from_address(pointer(capsule, b"dltensor"))


@pytest.mark.parametrize(
    "export",
    [to_dlpack, torch.Tensor.__dlpack__, lambda t: t.__dlpack__(max_version=VERSION),
     lambda t: t.__dlpack__(stream=None), lambda t: t.__dlpack__(stream=1)],
    ids=["to_dlpack", "__dlpack__", "versioned", "no stream", "a stream"],
)  # fmt: skip
@pytest.mark.parametrize("take", [from_dlpack, torch.from_dlpack, torch.asarray])
def test_a_capsule_shares_the_memory(x, second, export, take):
    for tensor in (x, x.t(), x[:, 1:], x[:0], x[1, 1], x.to(second)):
        back = take(export(tensor))
        assert (back.device, back.dtype) == (tensor.device, tensor.dtype)
        assert back.shape == tensor.shape
        assert back.tolist() == tensor.tolist()
        back.add_(1)
        assert back.tolist() == tensor.tolist()


@pytest.mark.parametrize(
    "dtype",
    [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
     torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128, torch.uint16,
     torch.float8_e4m3fn, torch.float8_e5m2],
    ids=str,
)  # fmt: skip
def test_dtypes(device, dtype):
    x = torch.tensor([0.0, 1.0, 2.0]).to(dtype).to(device)
    back = from_dlpack(x.__dlpack__(max_version=VERSION))
    assert back.dtype == dtype
    assert back.cpu().view(torch.uint8).equal(x.cpu().view(torch.uint8))


def test_what_a_library_reads_in_a_capsule(x, second):
    for tensor in (x, x.long().to(second)):
        capsule = tensor.__dlpack__()
        found = header(capsule)
        assert (found.type, found.index) == (DLDeviceType.kDLExtDev, tensor.device.index)
        assert (found.data, found.dimensions) == (tensor.data_ptr(), 2)
        assert (found.code, found.bits) == ((2, 32) if tensor.is_floating_point() else (0, 64))


def test_memory_lives_as_long_as_the_capsule_or_what_came_of_it(device, allocated):
    before = allocated()
    capsule = torch.ones(1000, device=device).__dlpack__()
    assert allocated() > before
    back = from_dlpack(capsule)
    del capsule
    assert allocated() > before
    assert back.sum().item() == 1000
    del back
    assert allocated() == before
    torch.ones(1000, device=device).__dlpack__()
    assert allocated() == before, "a capsule that nobody took"


def test_a_capsule_is_taken_once(x):
    capsule = x.__dlpack__()
    from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="consumed only once"):
        from_dlpack(capsule)


def test_arrays_of_other_libraries(x, second):
    """torch.from_dlpack takes an object that names the device; its own tensors it cannot ask."""
    for tensor in (x, x.to(second)):
        back = torch.from_dlpack(Foreign(tensor))
        assert (back.device, back.data_ptr()) == (tensor.device, tensor.data_ptr())
    for where in ("cpu", second):
        back = torch.from_dlpack(Foreign(x), device=where)
        assert (str(back.device), back.tolist()) == (where, x.tolist())
    with pytest.raises(ValueError, match=r"Unknown device type .* for Dlpack"):
        x.__dlpack_device__()
    with pytest.raises(ValueError, match=r"Unknown device type .* for Dlpack"):
        torch.from_dlpack(x)


def test_arrays_of_the_cpu_go_to_the_device(device, second):
    for where in (f"{device}:0", second):
        for source in (np.arange(3.0), torch.arange(3.0)):
            back = torch.from_dlpack(source, device=where)
            assert (str(back.device), back.tolist()) == (where, [0, 1, 2])
    with pytest.raises(ValueError, match="without copying"):
        torch.from_dlpack(torch.ones(2), device=device, copy=False)


def test_another_device_means_a_copy(x, second):
    index = torch.device(second).index
    for target, where in ((CPU, "cpu"), ((DLDeviceType.kDLExtDev, index), second)):
        for options in ({}, {"copy": True}):
            for version in (VERSION, None):
                capsule = x.__dlpack__(dl_device=target, max_version=version, **options)
                back = from_dlpack(capsule)
                assert (str(back.device), back.tolist()) == (where, x.tolist())
        with pytest.raises(ValueError, match="without copying"):
            x.__dlpack__(dl_device=target, max_version=VERSION, copy=False)
    own = (DLDeviceType.kDLExtDev, 0)
    assert from_dlpack(x.__dlpack__(dl_device=own)).data_ptr() == x.data_ptr()
    assert from_dlpack(x.__dlpack__(copy=True)).data_ptr() != x.data_ptr()


def test_numpy_takes_a_copy_on_the_cpu(x):
    for source in (x, Foreign(x)):
        for options in ({}, {"copy": True}):
            array = np.from_dlpack(source, device="cpu", **options)
            assert array.tolist() == x.tolist()
        with pytest.raises(ValueError, match="without copying"):
            np.from_dlpack(source, device="cpu", copy=False)
        with pytest.raises(RuntimeError, match="Unsupported device in DLTensor"):
            np.from_dlpack(source)


def test_what_a_capsule_cannot_carry(device, x):
    z = torch.ones(2, dtype=torch.complex64, device=device)
    for tensor, text in (
        (x.clone().requires_grad_(), "require gradient, use tensor.detach"),
        (z.conj(), "conjugate bit set"),
        (torch.eye(2, device=device).to_sparse(), "layout other than torch.strided"),
    ):
        with pytest.raises(BufferError, match=text):
            tensor.__dlpack__()
    with pytest.raises(TypeError, match="stream must be ``int`` or ``none``"):
        x.__dlpack__(stream="a stream")


NUMPY = {
    "numpy": lambda x: x.numpy(), "array": np.array, "asarray": np.asarray,
    "__array__": lambda x: x.__array__(), "__array__ of a dtype": lambda x: x.__array__(np.float64),
    "function": np.sin, "list": lambda x: np.array([x[0, 0], x[0, 1]]),
    "copyto": lambda x: np.copyto(np.zeros((2, 3)), x), "scalar": lambda x: np.float32(x[0, 1]),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMPY)
def test_numpy_is_told_to_copy_first(x, name):
    """torch.cuda's words, with this device's name."""
    text = (f"can't convert {x.device} device type tensor to numpy. Use Tensor.cpu() to copy the "
            "tensor to host memory first.")  # fmt: skip
    with pytest.raises(TypeError) as error:
        NUMPY[name](x)
    assert str(error.value) == text


def test_numpy_by_force(x):
    array = x.clone().requires_grad_().numpy(force=True)
    assert array.tolist() == x.tolist()
    array[0, 0] = 9
    assert x[0, 0].item() == 0


def test_there_is_no_view_of_device_memory_for_the_host(x):
    storage = x.untyped_storage()
    for call in (memoryview, ctypes.c_float.from_buffer, bytes, bytearray):
        with pytest.raises(TypeError):
            call(x)
    for call in (memoryview, np.frombuffer):
        with pytest.raises(TypeError, match="bytes-like object is required"):
            call(storage)
    with pytest.raises(AttributeError, match="non-CUDA tensor type"):
        _ = x.__cuda_array_interface__


def test_buffers_are_copied_to_the_device(device, second):
    raw = bytearray(np.arange(3, dtype=np.float32).tobytes())
    for where in (f"{device}:0", second):
        for source in (
            raw,
            memoryview(raw),
            array.array("f", [0, 1, 2]),
            np.arange(3.0),
            [0, 1, 2],
        ):
            for make in (torch.asarray, torch.as_tensor, torch.tensor):
                if isinstance(source, bytearray | memoryview) and make is not torch.asarray:
                    continue  # PyTorch reads numbers of one byte there
                back = make(source, device=where, dtype=torch.float32)
                assert (str(back.device), back.tolist()) == (where, [0, 1, 2])
        fresh = bytearray(raw)
        back = torch.frombuffer(fresh, dtype=torch.float32).to(where)
        fresh[:] = bytes(len(fresh))  # at once: the copy has read it
        assert back.tolist() == [0, 1, 2]
        back.fill_(7)
        assert not any(fresh)
    with pytest.raises(ValueError, match="can't alias tensor from device 'cpu' to"):
        torch.asarray(np.arange(3.0), device=device, copy=False)
    x = torch.ones(2, device=device)
    assert torch.asarray(x).data_ptr() == x.data_ptr()
    assert torch.asarray(x, copy=True).data_ptr() != x.data_ptr()


def test_python_reads_single_numbers(x):
    assert float(x[0, 1]) == x[0, 1].item() == 1.0
    assert [10, 20, 30][x.long()[0, 1]] == 20
    assert f"{x[0, 2]:.2f}" == "2.00"
    assert [row.tolist() for row in x] == x.tolist() == [[0, 1, 2], [3, 4, 5]]
    host = np.zeros(2)
    host[1] = x[0, 2]
    assert host.tolist() == [0, 2]

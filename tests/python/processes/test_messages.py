"""Tensors of the device in messages to other processes: by a handle, or through host memory."""

import pickle
import time
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import other_process as tasks
from other_process import OtherProcess

pytestmark = pytest.mark.both_modes


@pytest.fixture(scope="module")
def other():
    with OtherProcess() as process:
        yield process


@pytest.fixture(autouse=True)
def clean(request):
    """What a test sent is free again soon after its end, however it ended."""
    yield
    if "other" in request.fixturenames:
        request.getfixturevalue("other").ask(tasks.let_go)
    deadline = time.monotonic() + 20
    while tasks.shared_blocks() != 0:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def round_trip(value):
    return pickle.loads(ForkingPickler.dumps(value))


def test_a_tensor_goes_to_another_process_and_back_without_a_copy(device, other):
    x = torch.arange(5000.0, device=device)
    before = tasks.copied_bytes(device), other.ask(tasks.copied_bytes, device)
    other.ask(tasks.scaled_in_place, x, 2)
    y = other.ask(tasks.same, x)
    assert (tasks.copied_bytes(device), other.ask(tasks.copied_bytes, device)) == before
    assert y.device == x.device
    assert y.data_ptr() == x.data_ptr()
    y.add_(1)
    assert_close(x.cpu(), torch.arange(5000.0) * 2 + 1)


def test_a_tensor_of_another_process_is_shared(device, other):
    x = other.ask(tasks.made, device, 3000)
    assert_close(x.cpu(), torch.arange(3000.0))
    other.ask(tasks.hold, x)
    x.mul_(3)
    torch.accelerator.synchronize()
    assert other.ask(tasks.held_values) == [(torch.arange(3000.0) * 3).tolist()]
    other.ask(tasks.let_go)
    assert other.ask(tasks.shared_blocks) == 1
    del x
    assert other.ask(tasks.shared_blocks) == 0


def test_views_share_their_storage_in_the_other_process(device, other):
    x = torch.zeros(4, 3, device=device)
    assert other.ask(tasks.write_through_views, x[1:3], x.t()[:, 2:])
    wanted = torch.zeros(4, 3)
    wanted[1:3] = 1
    wanted[2:] += 1
    assert_close(x.cpu(), wanted)
    other.ask(tasks.hold, x[0])
    shared = other.ask(tasks.same, x[1], x)
    assert shared[0].untyped_storage()._cdata == shared[1].untyped_storage()._cdata
    other.ask(tasks.let_go)


def test_a_sender_may_drop_its_tensor(device, module, other, allocated):
    before = allocated()
    x = torch.full((2000,), 7.0, device=device)
    other.ask(tasks.hold, x)
    del x
    rest = [torch.zeros(2000, device=device) for _ in range(20)]
    assert other.ask(tasks.held_values) == [[7.0] * 2000]
    del rest
    assert allocated() > before
    other.ask(tasks.let_go)
    module.ipc_collect()
    assert allocated() == before


def allocate_all(device):
    held = []
    while True:
        held.append(torch.ones(1 << 18, device=device))


def test_memory_that_others_left_comes_back_before_memory_runs_out(device, module, other):
    module.empty_cache()
    x = torch.ones(1 << 20, device=device)
    other.ask(tasks.hold, x)
    del x
    other.ask(tasks.let_go)
    assert tasks.shared_blocks(collect=False) == 1
    limit = (module.memory_reserved() + (8 << 20)) / module.mem_get_info()[1]
    module.set_per_process_memory_fraction(limit)
    try:
        with pytest.raises(torch.OutOfMemoryError):
            allocate_all(device)
        assert tasks.shared_blocks(collect=False) == 0
    finally:
        module.set_per_process_memory_fraction(1.0)
        module.empty_cache()


def test_leaves_and_parameters(device, other):
    leaf = torch.ones(3, device=device, requires_grad=True)
    leaf.sum().backward()
    assert other.ask(tasks.facts, leaf) == ("Tensor", True, True, True)
    fixed = nn.Parameter(torch.arange(3, device=device), requires_grad=False)
    assert other.ask(tasks.facts, fixed) == ("Parameter", False, True, True)
    layer = other.ask(tasks.same, nn.Linear(2, 2, device=device))
    assert all(p.requires_grad and p.device.type == device for p in layer.parameters())
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        ForkingPickler.dumps(leaf * 2)


def wild(x):
    return torch.view_as_complex(x.reshape(3, 2, 2))


CASES = {
    "bool": lambda x: x > 0,
    "bfloat16": lambda x: x.bfloat16(),
    "int64": lambda x: (x * 9).long(),
    "transposed": lambda x: x.t(),
    "expanded": lambda x: x[:, :1].expand(3, 7),
    "part": lambda x: x[1:, ::2],
    "channels last": lambda x: x.reshape(1, 3, 2, 2).to(memory_format=torch.channels_last),
    "scalar": lambda x: x[1, 1],
    "empty": lambda x: x.new_empty(0, 3),
    "conjugate": lambda x: wild(x).conj(),
    "negative": lambda x: wild(x).conj().imag,
    "coo": lambda x: (x * (x > 0)).to_sparse(),
    "csr": lambda x: (x * (x > 0)).to_sparse_csr(),
}


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_tensor(device, name):
    numbers = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    cpu, x = CASES[name](numbers), CASES[name](numbers.to(device))
    y = round_trip(x)
    assert (y.device, y.dtype, y.layout, y.shape) == (x.device, x.dtype, x.layout, x.shape)
    assert (y.is_conj(), y.is_neg()) == (x.is_conj(), x.is_neg())
    if x.layout == torch.strided:
        assert y.stride() == x.stride()
        assert y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert_close(y.cpu(), cpu)


def test_storages(device):
    x = torch.arange(6.0, device=device)
    typed, untyped = round_trip((x._typed_storage(), x.untyped_storage()))
    assert typed.dtype == torch.float32
    assert typed._untyped_storage.data_ptr() == untyped.data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="cannot be resized"):
        untyped.resize_(100)


def test_moving_to_shared_memory_does_nothing(device):
    x = torch.ones(3, device=device)
    assert x.share_memory_() is x
    assert x.is_shared()
    assert x.untyped_storage().share_memory_().data_ptr() == x.data_ptr()


def test_tensors_of_the_cpu_go_as_before(other):
    x = torch.zeros(4)
    other.ask(tasks.scaled_in_place, x, 2)
    assert x.is_shared()
    other.ask(tasks.hold, x)
    x.fill_(5)
    assert other.ask(tasks.held_values) == [[5.0] * 4]
    other.ask(tasks.let_go)


def test_a_message_that_was_read_twice_is_told(device):
    message = bytes(ForkingPickler.dumps(torch.ones(3, device=device)))
    assert pickle.loads(message).tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="is gone: its message was read before"):
        pickle.loads(message)


def test_what_cannot_be_sent_is_refused(device, module):
    x = torch.ones(3, device=device)
    graph = module.Graph()
    with pytest.raises(RuntimeError, match="another process"), module.graph(graph):
        ForkingPickler.dumps(x)
    quantized = torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
    with pytest.raises(RuntimeError, match="Quantized tensors cannot be sent"):
        ForkingPickler.dumps(quantized)


def test_a_killed_process_leaks_nothing_and_what_it_sent_stays(device, module, allocated):
    before = allocated()
    x = torch.arange(1000.0, device=device)
    with OtherProcess(x) as process:
        assert process.ask(tasks.held_values) == [list(range(1000))]
        y = process.ask(tasks.made, device, 500)
        process.inbox.put((tasks.made, (device, 10)))
        while process.outbox.empty():
            time.sleep(0.01)
        del x
        module.ipc_collect()
        assert tasks.shared_blocks() == 1
        process.kill()
        assert tasks.shared_blocks() == 0
        assert allocated() == before
        assert y.add(1).tolist() == list(range(1, 501))
        del y
        with pytest.raises(RuntimeError, match="has ended before a tensor that it sent"):
            process.answer()
    assert torch.ones(3, device=device).add(1).tolist() == [2, 2, 2]


STAGED = """
    import torch.multiprocessing as mp
    import other_process as tasks
    if __name__ == "__main__":
        x = torch.arange(1000.0, device=D)
        with tasks.OtherProcess() as other:
            before = tasks.copied_bytes(D)
            y = other.ask(tasks.same, x[10:20])
            copied = tasks.copied_bytes(D) - before
            shared = other.ask(tasks.write_through_views, x[:5], x[3:8])
        apart = y.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
        print(json.dumps([copied, y.tolist(), str(y.device), apart, shared, x[:8].tolist()]))
"""


def test_a_driver_without_handles_sends_through_host_memory(device, python):
    copied, values, where, apart, shared, rest = python(
        STAGED, GRAFT_HOST_SHARE="0", PYTHONPATH=str(Path(tasks.__file__).parent)
    ).value()
    assert copied == 8000  # there and back
    assert values == list(range(10, 20))
    assert where == f"{device}:0"
    assert apart
    assert shared  # the views of one message
    assert rest == list(range(8))  # what the other process writes stays there

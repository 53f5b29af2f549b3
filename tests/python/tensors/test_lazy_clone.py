"""torch._lazy_clone: storages that share memory until one of them is written."""

import io
import weakref

import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close

pytestmark = pytest.mark.both_modes

is_lazy = torch._C._is_cow_tensor
address = torch._C._data_address


def shared(device, values=None):
    """A tensor and its lazy clone."""
    x = (torch.arange(6.0) if values is None else values).to(device)
    y = torch._lazy_clone(x)
    assert is_lazy(x)
    assert is_lazy(y)
    assert address(x) == address(y)
    return x, y


# What writes to its argument.
WRITES = {
    "add_": lambda t: t.add_(1), "fill_": lambda t: t.fill_(3), "copy_": lambda t: t.copy_(-t),
    "zero_": lambda t: t.zero_(), "index": lambda t: t.__setitem__(2, 9.0),
    "view": lambda t: t.view(2, 3)[1].mul_(2), "masked": lambda t: t.masked_fill_(t > 2, 0),
    "index_put": lambda t: t.index_put_((torch.tensor([1, 1]),), t.new_ones(2), True),
    "scatter": lambda t: t.scatter_(0, torch.tensor([3]).to(t.device), -1.0),
    "random": lambda t: t.uniform_(), "sort out": lambda t: torch.sort(-t, out=(t, t.long())),
    "out": lambda t: torch.exp(t.clone(), out=t), "foreach": lambda t: torch._foreach_add_([t[:3], t[3:]], 1),
    "matmul out": lambda t: torch.mm(t.view(2, 3).clone(), t.view(3, 2).clone(), out=t[:4].view(2, 2)),
    "cumsum": lambda t: t.cumsum_(0), "triu": lambda t: t.view(2, 3).triu_(),
    "fallback": lambda t: torch.linalg.ldl_solve(
        2 * torch.eye(2, device=t.device), torch.tensor([1, 2], dtype=torch.int32, device=t.device),
        t[:4].clone().view(2, 2), out=t[:4].view(2, 2)),
    "conj": lambda t: t.neg_(), "resize": lambda t: t.resize_(12)[6:].zero_(),
    "set data": lambda t: t.data.add_(1), "clamp": lambda t: t.clamp_(1, 2),
    "renorm": lambda t: t.view(2, 3).renorm_(2, 0, 1.0),
    "optimizer": lambda t: torch._fused_sgd_([t], [t.clone()], [], weight_decay=0.0, momentum=0.0,
        lr=0.1, dampening=0.0, nesterov=False, maximize=False, is_first_step=True),
    "statistics": lambda t: functional.batch_norm(
        torch.arange(36.0, device=t.device).view(2, 6, 3), t, t.clone().abs(), training=True),
    "legacy statistics": lambda t: torch.native_batch_norm(
        torch.arange(36.0, device=t.device).view(2, 6, 3), None, None, t, t.clone().abs(), True, 0.1, 1e-5),
}  # fmt: skip


@pytest.mark.parametrize("which", [0, 1], ids=["original", "clone"])
@pytest.mark.parametrize("name", WRITES)
def test_a_write_reaches_one_of_them(device, name, which):
    pair = shared(device)
    before = torch.arange(6.0)
    WRITES[name](pair[which])
    assert pair[1 - which].tolist() == before.tolist()
    assert address(pair[0]) != address(pair[1])
    if name != "random":
        expected = before.clone()
        WRITES[name](expected)
        assert_close(pair[which].cpu(), expected)


def test_reads_leave_them_shared(device):
    x, y = shared(device)
    for read in (lambda t: t + 1, lambda t: t.sum(), lambda t: t.view(2, 3) @ t.view(3, 2),
                 lambda t: t.cpu(), lambda t: t.tolist(), lambda t: t[t > 2], lambda t: t.sort(),
                 lambda t: functional.softmax(t, 0), lambda t: t.clone(), str,
                 lambda t: torch.linalg.svdvals(t.view(2, 3)),
                 lambda t: torch.cat([t, t]), lambda t: t.half(), lambda t: torch.equal(x, t)):  # fmt: skip
        read(y)
        assert is_lazy(x)
        assert is_lazy(y)
    assert address(x) == address(y)


def test_a_mutable_address_ends_it(device):
    x, y = shared(device)
    assert y.data_ptr() != address(x)
    assert not is_lazy(y)
    assert is_lazy(x)
    kept = address(x)
    assert x.data_ptr() == kept, "the last one takes the memory"
    assert not is_lazy(x)
    x.fill_(1)
    assert y.tolist() == list(range(6))


def test_clones_of_clones_and_of_views(device):
    x, y = shared(device)
    z = torch._lazy_clone(y.view(2, 3).t()[1:])
    assert (z.stride(), z.storage_offset(), address(z)) == ((1, 3), 1, address(x))
    y.zero_()
    assert z.tolist() == [[1, 4], [2, 5]]
    z.add_(1)
    assert (x.tolist(), y.tolist()) == ([0, 1, 2, 3, 4, 5], [0] * 6)
    assert z.tolist() == [[2, 5], [3, 6]]
    again = torch._lazy_clone(x)
    x.fill_(2)
    assert again.tolist() == list(range(6))


def test_dtypes_bits_and_empty_tensors(device):
    for x in (torch.ones(2, 3, dtype=torch.complex64).conj() * 1j, torch.zeros(0, 3),
              torch.tensor(5), torch.tensor([True, False]), torch.ones(2, dtype=torch.bfloat16),
              torch.tensor([1 + 2j, 3j]).conj()):  # fmt: skip
        there = x.to(device)
        clone = torch._lazy_clone(there)
        assert is_lazy(clone)
        assert clone.is_conj() == there.is_conj()
        assert clone.tolist() == x.tolist()
        clone.zero_()
        assert there.tolist() == x.tolist()


def test_the_memory_is_given_back(device, allocated):
    before = allocated()
    x, y = shared(device, torch.zeros(4096))
    one = allocated() - before
    del x
    assert allocated() - before == one
    y.add_(1)
    assert allocated() - before == one, "the last one copies nothing"
    z = torch._lazy_clone(y)
    z.add_(1)
    assert allocated() - before == 2 * one
    assert (y.sum().item(), z.sum().item()) == (4096, 8192)
    del y, z
    assert allocated() == before


def test_other_devices_and_streams(second):
    x, y = shared(second)
    y.data_ptr()
    assert y.device == x.device
    assert y.tolist() == x.tolist()
    x, y = shared(second, torch.zeros(1 << 16))
    side = torch.Stream(second)
    side.wait_stream(torch.accelerator.current_stream(torch.device(second)))
    with side:
        y.add_(1)
    x.add_(2)
    torch.accelerator.current_stream(torch.device(second)).wait_stream(side)
    assert (x.unique().tolist(), y.unique().tolist()) == ([2], [1])


def test_gradients_and_modules(device):
    weight = torch.ones(3, device=device, requires_grad=True)
    clone = torch._lazy_clone(weight)
    (clone * torch.arange(3.0, device=device)).sum().backward()
    assert weight.grad.tolist() == [0, 1, 2]
    layer = torch.nn.Linear(3, 2).to(device)
    before = {name: torch._lazy_clone(p.detach()) for name, p in layer.named_parameters()}
    layer(torch.ones(4, 3, device=device)).sum().backward()
    torch.optim.SGD(layer.parameters(), lr=1.0).step()
    for name, p in layer.named_parameters():
        assert_close(before[name], p + p.grad)


def test_files_and_compiled_graphs(device):
    x, y = shared(device)
    file = io.BytesIO()
    torch.save([x, y], file)
    file.seek(0)
    assert [t.tolist() for t in torch.load(file)] == [list(range(6))] * 2

    @torch.compile(dynamic=False)
    def step(t):
        t.mul_(2)
        return t + 1

    x, y = shared(device)
    assert step(y).tolist() == [1, 3, 5, 7, 9, 11]
    assert (x.tolist(), y.tolist()) == ([0, 1, 2, 3, 4, 5], [0, 2, 4, 6, 8, 10])


def test_memory_of_others_is_copied(device):
    made = torch.arange(4.0, device=device)
    alias = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(made))
    clone = torch._lazy_clone(alias)
    alias.zero_()
    assert clone.tolist() == [0, 1, 2, 3]
    gone = weakref.ref(made)
    del made, alias
    assert gone() is None
    assert clone.tolist() == [0, 1, 2, 3]

"""Creation, copies of every dtype and layout between every pair of devices, views, indexing."""

import pytest
import torch
from torch.testing import assert_close

REAL = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
        torch.float16, torch.bfloat16, torch.float32, torch.float64]  # fmt: skip
DTYPES = [*REAL, torch.complex64, torch.complex128]

LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, -1),
    "stepped": lambda x: x[:, ::2],
    "offset": lambda x: x[1:, 1:],
    "expanded": lambda x: x[:1].expand(5, *x.shape[1:]),
    "permuted": lambda x: x.permute(2, 0, 1),
    "column": lambda x: x[..., 1],
    "scalar": lambda x: x[0, 0, 0],
    "empty": lambda x: x[:, :0],
    "inserted": lambda x: x[:, None],
    "diagonal": lambda x: x.diagonal(),
}

CREATIONS = {
    "zeros": lambda **o: torch.zeros(2, 3, **o),
    "ones": lambda **o: torch.ones(2, 3, **o),
    "full": lambda **o: torch.full((2, 3), 1, **o),
    "tensor": lambda **o: torch.tensor([[0, 1], [1, 0]], **o),
    "eye": lambda **o: torch.eye(3, 4, **o),
    "zero elements": lambda **o: torch.ones(0, 3, **o),
    "scalar": lambda **o: torch.tensor(1, **o),
    "new_full": lambda **o: torch.zeros(1, **o).new_full((2,), 1),
    "like": lambda **o: torch.ones_like(torch.zeros(2, 2, **o)),
    "strided": lambda **o: torch.empty_strided((2, 3), (1, 2), **o).fill_(1),
}


def numbers(dtype, *shape):
    """0, 1, 2, ... of a dtype (bool: 0 and 1 in turn)."""
    count = torch.Size(shape).numel()
    return (torch.arange(count) % (2 if dtype == torch.bool else 100)).reshape(shape).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", CREATIONS)
def test_creation(device, name, dtype):
    made = CREATIONS[name](dtype=dtype, device=device)
    expected = CREATIONS[name](dtype=dtype)
    assert made.device.type == torch.device(device).type
    assert (made.dtype, made.stride()) == (dtype, expected.stride())
    assert_close(made.cpu(), expected, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [d for d in REAL if d != torch.bool], ids=str)
def test_ranges(device, dtype):
    for make in (lambda **o: torch.arange(2, 9, 2, **o), lambda **o: torch.linspace(0, 8, 5, **o)):
        assert_close(make(dtype=dtype, device=device).cpu(), make(dtype=dtype))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copies_of_layouts(device, second, dtype, layout):
    base = numbers(dtype, 4, 6, 4)
    view = LAYOUTS[layout]
    expected = view(base).clone()
    there = view(base).to(device)
    assert_close(there.cpu(), expected, rtol=0, atol=0)
    remote = view(base.to(device))
    assert_close(remote.cpu(), expected, rtol=0, atol=0)
    assert_close(remote.contiguous().cpu(), expected, rtol=0, atol=0)
    assert_close(remote.to(second).cpu(), expected, rtol=0, atol=0)
    if layout == "expanded":
        return
    for source in (expected, there, there.to(second)):
        target = torch.zeros(4, 6, 4, dtype=dtype, device=device)
        view(target).copy_(source)
        host = torch.zeros(4, 6, 4, dtype=dtype)
        view(host).copy_(expected)
        assert_close(target.cpu(), host, rtol=0, atol=0)
        back = torch.zeros(4, 6, 4, dtype=dtype)
        view(back).copy_(view(target))
        assert_close(back, host, rtol=0, atol=0)


@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_casts(device, dtype):
    source = numbers(dtype, 7, 5)
    remote = source.to(device)
    for other in DTYPES:
        assert_close(remote.to(other).cpu(), source.to(other), rtol=0, atol=0)
        target = torch.empty(5, 7, dtype=other, device=device).t()
        assert_close(target.copy_(source).cpu(), source.to(other), rtol=0, atol=0)
        broadcast = torch.empty(3, 7, 5, dtype=other, device=device).copy_(remote)
        assert_close(broadcast.cpu(), source.to(other).expand(3, 7, 5), rtol=0, atol=0)


def test_casts_of_special_values(device):
    source = torch.tensor(
        [float("nan"), float("inf"), -float("inf"), -0.0, 65519.0, 1e-40, 3.39e38]
    )
    for other in (torch.float16, torch.bfloat16, torch.float64, torch.bool):
        assert_close(source.to(device).to(other).cpu(), source.to(other), equal_nan=True)


def test_conjugate_and_negative_views(device):
    z = torch.randn(3, 4, dtype=torch.complex64)
    for lazy in (torch.conj, lambda x: x.conj().imag, lambda x: x.conj().t()):
        assert_close(lazy(z.to(device)).cpu(), lazy(z).resolve_conj().resolve_neg())
        assert_close(lazy(z.to(device)).clone().cpu(), lazy(z).clone())
        assert_close(lazy(z).to(device).cpu(), lazy(z).resolve_conj().resolve_neg())


def test_pinned_copies(device):
    source = torch.randn(257, 33)
    pinned = source.pin_memory() if device != "cpu" else source
    assert device == "cpu" or (pinned.is_pinned() and not source.is_pinned())
    remote = pinned.to(device, non_blocking=True)
    back = torch.empty_like(pinned, pin_memory=device != "cpu")
    back.copy_(remote, non_blocking=True)
    torch.accelerator.synchronize() if device != "cpu" else None
    assert_close(back, source, rtol=0, atol=0)
    # Pageable memory may be reused at once.
    scratch = source.clone()
    remote = scratch.to(device, non_blocking=True, copy=True)
    scratch.zero_()
    assert_close(remote.cpu(), source, rtol=0, atol=0)


def test_views_share_memory(device):
    x = torch.zeros(4, 6, device=device)
    host = torch.zeros(4, 6)
    for i, view in enumerate([
        lambda t: t.view(6, 4), lambda t: t.t()[1:], lambda t: t[::2, 1::2], lambda t: t.flatten(),
        lambda t: t.unfold(1, 2, 3), lambda t: t.as_strided((3,), (7,)), lambda t: t.chunk(3, 1)[1],
        lambda t: t.unsqueeze(0).squeeze(), lambda t: t.narrow(0, 1, 2), lambda t: t.detach(),
        lambda t: t.view(torch.int32).view(torch.float32), lambda t: t.movedim(0, 1)[2],
    ]):  # fmt: skip
        view(x).add_(i + 1)
        view(host).add_(i + 1)
        assert view(x).untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        assert_close(x.cpu(), host)
    z = torch.zeros(3, dtype=torch.complex64, device=device)
    z.imag.fill_(2)
    torch.view_as_real(z)[:, 0].fill_(1)
    assert z.cpu().tolist() == [1 + 2j] * 3


def test_storage(device):
    x = torch.arange(6.0, device=device)
    assert x.untyped_storage().nbytes() == 24
    assert x.data_ptr() != 0
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    assert x.resize_(8).cpu()[:6].tolist() == [0, 1, 2, 3, 4, 5]
    y = torch.empty(0, device=device).set_(x.untyped_storage(), 1, (2, 2), (1, 2))
    assert y.tolist() == [[1, 3], [2, 4]]
    x.untyped_storage().resize_(0)
    assert x.untyped_storage().nbytes() == 0
    image = torch.ones(2, 3, 4, 5, device=device).to(memory_format=torch.channels_last)
    assert image.stride() == (60, 1, 15, 3)
    assert torch.empty_like(image).stride() == image.stride()


INDEXINGS = {
    "row": lambda x, i, m: x[1], "negative": lambda x, i, m: x[-1, -2],
    "range": lambda x, i, m: x[1:4, ::3], "ellipsis": lambda x, i, m: x[..., 0],
    "new axis": lambda x, i, m: x[:, None, 2], "list": lambda x, i, m: x[[3, 0, 3]],
    "index": lambda x, i, m: x[i], "columns": lambda x, i, m: x[:, i],
    "both": lambda x, i, m: x[i, i], "outer": lambda x, i, m: x[i[:, None], i],
    "mask": lambda x, i, m: x[m], "row mask": lambda x, i, m: x[m[:, 0]],
    "nonzero": lambda x, i, m: m.nonzero(), "take": lambda x, i, m: x.take(i),
    "select": lambda x, i, m: x.index_select(1, i), "gather": lambda x, i, m: x.gather(0, i[None]),
    "masked_select": lambda x, i, m: x.masked_select(m),
    "masked_select out": lambda x, i, m: torch.masked_select(x, m, out=x.new_empty(20)[::2]),
}  # fmt: skip
ASSIGNMENTS = {
    "row": lambda x, i, m: x.__setitem__(1, 7.0), "range": lambda x, i, m: x[1:3].fill_(2.0),
    "mask": lambda x, i, m: x.__setitem__(m, -1.0), "index": lambda x, i, m: x.__setitem__(i, 5.0),
    "tensor": lambda x, i, m: x.__setitem__((slice(None), 2), x[:, 0] * 2),
    "accumulate": lambda x, i, m: x.index_put_((i,), x[0].clone(), accumulate=True),
    "index_add": lambda x, i, m: x.index_add_(0, i, x[: len(i)].clone()),
    "index_copy": lambda x, i, m: x.index_copy_(0, i[:2], x[:2] + 1),
    "masked_fill": lambda x, i, m: x.masked_fill_(m, 9.0),
    "scatter": lambda x, i, m: x.scatter_(0, i[None], 3.0),
    "index_fill": lambda x, i, m: x.index_fill_(1, i, 4.0),
}  # fmt: skip


def index_inputs(device):
    x = torch.arange(30.0).reshape(5, 6)
    return [t.to(device) for t in (x, torch.tensor([3, 0, 3, 1]), x.remainder(3) == 0)]


@pytest.mark.parametrize("name", INDEXINGS)
def test_indexing(device, name):
    assert_close(
        INDEXINGS[name](*index_inputs(device)).cpu(), INDEXINGS[name](*index_inputs("cpu"))
    )


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_assignment(device, name):
    ours, theirs = index_inputs(device), index_inputs("cpu")
    ASSIGNMENTS[name](*ours)
    ASSIGNMENTS[name](*theirs)
    assert_close(ours[0].cpu(), theirs[0])


def test_index_past_the_end_names_it(device):
    x = torch.zeros(3, device=device)
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        x[5]
    with pytest.raises((IndexError, RuntimeError), match=r"index 7"):
        x[torch.tensor([7], device=device)].cpu()
    assert (x + 1).tolist() == [1, 1, 1]


def test_reading_values(device):
    x = torch.tensor([[1.5, -2.0]], device=device)
    assert x.tolist() == [[1.5, -2.0]]
    assert (x[0, 0].item(), float(x[0, 1]), bool(x[0, 0] > 1), len(x)) == (1.5, -2.0, True, 1)
    assert torch.tensor(2**53 + 1, device=device).item() == 2**53 + 1
    if device != "cpu":
        with pytest.raises(TypeError, match=r"convert .*tensor to numpy"):
            x.numpy()


@pytest.mark.parametrize(
    "make", [lambda: torch.arange(5), lambda: torch.randn(3, 2), lambda: torch.tensor(1.5),
             lambda: torch.tensor([True]), lambda: torch.ones(0, 2), lambda: torch.ones(2000),
             lambda: torch.tensor([1e-9, 1e9, float("nan")])],
)  # fmt: skip
def test_printing(device, make):
    host = make()
    expected, found = repr(host), repr(host.to(device))
    assert device == "cpu" or f"device='{device}:0'" in found
    strip = str.maketrans("", "", " \n")
    plain = found.replace(f", device='{device}:0'", "").replace(
        f",\n       device='{device}:0'", ""
    )
    assert plain.translate(strip) == expected.translate(strip)


def test_devices_do_not_mix(device, second):
    if device == "cpu":
        return
    x = torch.ones(3, device=device)
    with pytest.raises(RuntimeError, match="same device"):
        x + torch.ones(3)
    with pytest.raises(RuntimeError, match="same device"):
        torch.mm(torch.ones(2, 2, device=second), torch.ones(2, 2, device=device))
    assert (x + torch.tensor(1.0)).tolist() == [2, 2, 2]
    assert (torch.tensor(1.0) - x).tolist() == [0, 0, 0]
    assert x.get_device() == 0
    assert getattr(x, f"is_{device}")
    assert not getattr(torch.ones(1), f"is_{device}")
    assert getattr(torch.ones(2), device)().device == x.device
    assert getattr(torch.nn.Linear(2, 2), device)().weight.device == x.device

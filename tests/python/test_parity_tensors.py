"""Storages, overlaps, memory formats and corners of operators: the device-generic part of test_torch.py."""

import copy
import itertools
import warnings

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


def expanded(device):
    return torch.rand(1, device=device).expand(6)


def parts(device):
    """Numbers in one buffer, indices, a mask."""
    index = torch.tensor([2, 1, 0], device=device)
    mask = torch.tensor([True, False, True, True, False, False], device=device)
    return torch.rand(18, device=device), index, mask


OVERLAPS = {
    "addcmul": lambda d, y, i, m: expanded(d).addcmul_(y[:6], y[:6]),
    "copy": lambda d, y, i, m: expanded(d).copy_(y[:6]),
    "out": lambda d, y, i, m: torch.exp(y[0:9], out=y[1:10]),
    "ternary out": lambda d, y, i, m: torch.lerp(y[0:9], y[9:18], 0.5, out=y[1:10]),
    "bernoulli": lambda d, y, i, m: expanded(d).bernoulli_(),
    "bernoulli of a number": lambda d, y, i, m: expanded(d).bernoulli_(0.1),
    "uniform": lambda d, y, i, m: expanded(d).uniform_(),
    "random": lambda d, y, i, m: expanded(d).random_(),
    "cauchy": lambda d, y, i, m: expanded(d).cauchy_(),
    "log_normal": lambda d, y, i, m: expanded(d).log_normal_(),
    "exponential": lambda d, y, i, m: expanded(d).exponential_(),
    "geometric": lambda d, y, i, m: expanded(d).geometric_(0.5),
    "index_add": lambda d, y, i, m: expanded(d).index_add_(0, i, y[:3]),
    "index_add of itself": lambda d, y, i, m: y[:6].index_add_(0, i, y[:3]),
    "index_copy": lambda d, y, i, m: expanded(d).index_copy_(0, i, y[:3]),
    "index_copy by itself": lambda d, y, i, m: i.index_copy_(0, i, i.clone()),
    "index_fill by itself": lambda d, y, i, m: i.index_fill_(0, i, 0),
    "index_put of itself": lambda d, y, i, m: y[:6].index_put_((i,), y[:3]),
    "put": lambda d, y, i, m: expanded(d).put_(i, y[:3]),
    "put by itself": lambda d, y, i, m: i.put_(i, i.clone()),
    "masked_fill": lambda d, y, i, m: m[1:].masked_fill_(m[:-1], False),
    "masked_scatter": lambda d, y, i, m: expanded(d).masked_scatter_(m, y[:6]),
    "scatter": lambda d, y, i, m: expanded(d).scatter_(0, i, y[:3]),
    "scatter of itself": lambda d, y, i, m: y[:3].scatter_(0, i, y[:3]),
    "shift": lambda d, y, i, m: i[:-1].__ilshift__(i[1:]),
}


@pytest.mark.parametrize("name", OVERLAPS)
def test_writing_what_overlaps_is_refused(device, name):
    with pytest.raises(RuntimeError, match=r"unsupported operation|single memory location"):
        OVERLAPS[name](device, *parts(device))


@pytest.mark.parametrize("name", ["index_fill_", "index_put_", "masked_fill_"])
def test_expanded_targets_warn(device, name):
    y, index, mask = parts(device)
    arguments = {"index_fill_": (0, index, 1.0), "index_put_": ((index,), y[:3]),
                 "masked_fill_": (mask, 0.0)}  # fmt: skip
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="expanded tensors"):
            getattr(expanded(device), name)(*arguments[name])
    finally:
        torch.set_warn_always(always)


def strided(device):
    """Dense, sliced, and sliced with sizes of one."""
    return (torch.randn(2, 3, 4, device=device), torch.randn(2, 3, 8, device=device)[:, :, ::2],
            torch.randn(1, 1, 4, 12, device=device)[:, :, :, ::2])  # fmt: skip


def test_results_have_the_strides_of_the_cpu(device):
    for ours, theirs in zip(strided(device), strided("cpu"), strict=True):
        for order in itertools.permutations(range(ours.dim())):
            found = []
            for x in (ours.permute(order), theirs.permute(order)):
                row = torch.randn(x.size(-1), device=x.device)
                found.append([
                    *[f(a, b).stride() for f in (torch.add, torch.eq)
                      for a, b in ((x, x), (x, row), (row, x))],
                    torch.exp(x).stride(),
                    torch.add(x, x, out=torch.empty(0, device=x.device)).stride(),
                ])  # fmt: skip
            assert found[0] == found[1], order


CHANNELS = [(torch.channels_last, (2, 3, 5, 5)), (torch.channels_last_3d, (2, 3, 5, 5, 5))]


@pytest.mark.parametrize(("order", "shape"), CHANNELS, ids=["2d", "3d"])
def test_the_memory_format_is_kept(device, second, order, shape):
    x = torch.rand(shape, device=device).contiguous(memory_format=order)
    kept = [
        *[f(x) for f in (torch.zeros_like, torch.ones_like, torch.rand_like, torch.randn_like)],
        torch.empty_like(x), torch.full_like(x, 7), torch.randint_like(x, 10), x.clone(),
        x.double(), x.half(), x.bool(), x.to(second), x.cpu(), x.cpu().to(device),
        x + 1, x * x, x.exp(), x.clamp(0, 1), x.lerp(x, 0.5), torch.addcmul(x, x, x), x.round(),
        x[:, :2] + x[:, 1:],
    ]  # fmt: skip
    assert [y.is_contiguous(memory_format=order) for y in kept] == [True] * len(kept)
    plain = [x.clone(memory_format=torch.contiguous_format), x.contiguous(),
             x.to(torch.float64, memory_format=torch.contiguous_format)]  # fmt: skip
    assert [y.is_contiguous() for y in plain] == [True] * len(plain)


def test_the_format_of_two_operands(device):
    def both(where):
        plain = torch.rand(2, 3, 5, 5, device=where)
        last = plain.contiguous(memory_format=torch.channels_last)
        unclear = torch.rand(2, 3, 1, 1, device=where).contiguous(memory_format=torch.channels_last)
        row = torch.rand(3, 1, 1, device=where)
        pairs = itertools.permutations((plain, last, unclear, row), 2)
        return [(a + b).stride() for a, b in pairs]

    assert both(device) == both("cpu")


def test_half_sums_are_exact_where_float32_is(device):
    x = torch.ones(65504, dtype=torch.float16, device=device)
    assert (x.sum().item(), x.mean().item()) == (65504, 1)
    y = torch.ones(65536, dtype=torch.float16, device=device)
    assert (y.sum(dtype=torch.float32).item(), y.mean().item()) == (65536, 1)
    assert y.norm(p=0, dtype=torch.float32).item() == 65536
    torch.manual_seed(0)
    few = torch.zeros(1_203_611).bernoulli_(0.0005)
    assert few.to(device, torch.float16).sum().item() == few.sum().item()
    tiny = torch.arange(25, device=device).float() / 1e8
    assert tiny.half().norm().item() > 0


def test_sampling_never_takes_what_has_no_weight(device):
    torch.manual_seed(0)
    pairs = torch.zeros(3421, 2, device=device)
    pairs[:, 1] = 1
    assert torch.multinomial(pairs, 1).min().item() == 1
    weights = torch.randn(100_000, device=device).clamp(min=0) * 3e-5
    assert weights[weights.multinomial(100_000, replacement=True)].min().item() > 0
    for replacement in (True, False):
        empty = torch.multinomial(torch.ones(0, 3, device=device), 2, replacement)
        assert (empty.shape, empty.dtype) == ((0, 2), torch.int64)


@pytest.mark.parametrize("bad", [-1.0, float("inf"), -float("inf"), float("nan")])
def test_weights_that_are_none_are_refused_and_the_device_lives(device, bad):
    weights = torch.tensor([1.0, bad, 1.0], device=device)
    with pytest.raises(RuntimeError, match="invalid multinomial distribution"):
        torch.multinomial(weights, 2, replacement=True)
    assert (weights[:1] + 1).item() == 2


def test_samples_go_to_their_own_device(device, second):
    with pytest.raises(RuntimeError, match="same device"):
        torch.multinomial(torch.ones(3), 2, out=torch.empty(2, dtype=torch.int64, device=device))
    out = torch.empty(2, dtype=torch.int64, device=second)
    with pytest.raises(RuntimeError, match="same device"):
        torch.multinomial(torch.ones(3, device=device), 2, out=out)


def test_consecutive_draws_share_no_states(device):
    generator = torch.Generator(device).manual_seed(0)
    drawn = [torch.randint(0, 6_000_000_000, (200_000,), device=device, generator=generator)
             for _ in range(2)]  # fmt: skip
    assert torch.cat(drawn).cpu().unique().numel() > 399_900
    drawn = [torch.rand(200_000, dtype=torch.float64, device=device, generator=generator)
             for _ in range(2)]  # fmt: skip
    assert torch.cat(drawn).cpu().unique().numel() == 400_000


def test_large_draws_are_even_to_the_end(device):
    torch.manual_seed(0)
    drawn = torch.randint(0, 256, (2**22 + 5,), dtype=torch.uint8, device=device)
    parts = drawn.cpu().float().tensor_split(8)
    for part in parts:
        assert part.mean().item() == pytest.approx(127.5, abs=1)
        assert part.unique().numel() == 256
    assert not any(a[:1000].equal(b[:1000]) for a, b in itertools.pairwise(parts))


def test_distributions_at_their_limits(device):
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.float16):
        assert (torch.empty(500_000, dtype=dtype, device=device).exponential_() > 0).all().item()
    one = torch.empty(1, device=device)
    assert one.exponential_(float("inf")).item() == 0
    assert one.cauchy_(float("inf"), 0.5).item() == float("inf")
    assert not torch.empty(500_000, device=device).cauchy_().isinf().any().item()
    assert not torch.zeros(300_000, device=device).bernoulli().any().item()
    assert torch.ones(300_000, device=device).bernoulli().all().item()
    for call in (lambda: one.exponential_(-0.5), lambda: one.cauchy_(0.0, 0.0)):
        with pytest.raises(RuntimeError, match="expects"):
            call()


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


def test_complex_half_is_stored(device):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex32, device=device)
        assert x.dtype == torch.complex32
        assert x.cpu().to(torch.complex64).tolist() == [1 + 2j, 3 - 1j]
        assert x.conj_physical_().cpu().to(torch.complex64).tolist() == [1 - 2j, 3 + 1j]


def test_counts_products_and_extrema_of_awkward_sizes(device):
    draw = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 1000, (20_000,), generator=draw)
    weights = torch.rand(20_000, dtype=torch.float64, generator=draw)
    for options in ({}, {"weights": weights}, {"minlength": 5000}):
        there = {k: v.to(device) if k == "weights" else v for k, v in options.items()}
        torch.testing.assert_close(
            torch.bincount(labels.to(device), **there).cpu(), torch.bincount(labels, **options)
        )
    for dtype in (torch.float32, torch.complex64, torch.int64):
        assert torch.ones(240_000, dtype=dtype, device=device).prod().item() == 1
    for only in (-5.0, float("-inf"), float("inf")):
        x = torch.tensor([only], device=device)
        assert [x.max(0)[0].item(), x.min(0)[0].item(), x.max().item()] == [only] * 3
        assert x.max(0)[1].item() == x.argmin().item() == 0
    assert torch.ones(512, 8, device=device).sum(0).tolist() == [512.0] * 8
    flags = torch.tensor([[False, True], [True, True]], device=device)
    places = torch.tensor([[0, 0], [1, 0]], device=device)
    assert torch.gather(flags, 1, places).tolist() == [[False, False], [True, True]]


ROWS, COLUMNS = [True, False, True], [True, False, False, True]
MASKED = {
    "each element": lambda x: x.__setitem__(x > 5, -1.0),
    "rows": lambda x: x.__setitem__((x > 5)[:, :, 0], -1.0),
    "the middle": lambda x: x.__setitem__((slice(None), x.new_tensor(ROWS).bool()), -1.0),
    "the end": lambda x: x.__setitem__((..., x.new_tensor(COLUMNS).bool()), -1.0),
    "a part": lambda x: x[:, ::2].__setitem__(x[:, ::2] > 5, 0.0),
    "turned": lambda x: x.transpose(0, 2).__setitem__(x.transpose(0, 2) > 5, 0.5),
    "a tensor of one": lambda x: x.__setitem__(x > 5, x.new_tensor([7.0])),
    "all or nothing": lambda x: x.__setitem__(x.sum() > 0, 3.0),
    "itself": lambda x: x.gt(5).__setitem__(x > 5, False),
    "added": lambda x: x.index_put_((x > 5,), x.new_tensor(2.0), accumulate=True),
    "two masks": lambda x: x.__setitem__((x[:, 0, 0] > 5, x[0, :, 0] > 5), 4.0),
    "nothing chosen": lambda x: x.__setitem__(x > 99, 4.0),
}


@pytest.mark.parametrize("name", MASKED)
def test_a_number_goes_where_a_mask_says(device, native, name):
    plain = torch.arange(24.0).reshape(2, 3, 4)
    x = plain.to(device)
    if name == "two masks":
        x[1, :2], plain[1, :2] = 9, 9
    for tensor in (plain, x):
        MASKED[name](tensor)
    assert_close(x.cpu(), plain, rtol=0, atol=0)


def test_masks_that_do_not_fit_are_refused(device):
    x = torch.zeros(2, 3, device=device)
    with pytest.raises(IndexError, match="shape of the mask"):
        x[torch.ones(3, dtype=torch.bool, device=device)] = 1.0
    with pytest.raises(RuntimeError, match="dtypes match"):
        x.index_put_((x > 0,), torch.tensor(1, device=device))
    x[(x == 0) & (x == 1)] = 1.0
    assert not x.any().item()

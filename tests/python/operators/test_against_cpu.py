"""Every operator of the first set against the CPU: dtypes, layouts, gradients, errors."""

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from cpu_comparison import FLOATS, INTEGERS, check, values

# (shape of the base, what to see of it): each ends as something like 5 x 7.
LAYOUTS = {
    "contiguous": ((5, 7), lambda x: x),
    "transposed": ((7, 5), lambda x: x.t()),
    "stepped": ((5, 14), lambda x: x[:, ::2]),
    "expanded": ((1, 7), lambda x: x.expand(5, 7)),
    "rank 5": ((2, 3, 2, 3, 2), lambda x: x.permute(4, 1, 3, 0, 2)),
    "scalar": ((), lambda x: x),
    "empty": ((0, 7), lambda x: x),
    "long": ((3, 4097), lambda x: x),
}

# name -> (function, "any" | "positive" | "unit": range of its inputs)
ANY = """abs neg sign square exp exp2 expm1 sin cos atan sinh cosh tanh asinh erf erfc sigmoid relu
    floor ceil round trunc frac isnan isinf isfinite logical_not bitwise_not signbit"""
POSITIVE = "sqrt rsqrt log log2 log10 log1p reciprocal tan lgamma digamma"
ACTIVATIONS = """silu gelu elu selu celu mish softplus leaky_relu hardtanh hardswish hardsigmoid
    relu6 logsigmoid softsign tanhshrink hardshrink softshrink"""
PAIRS = """add sub mul eq ne lt le gt ge maximum minimum atan2 logical_and logical_or logical_xor
    bitwise_and bitwise_or bitwise_xor hypot copysign"""
UNARY = {
    **{n: (getattr(torch, n), "any") for n in ANY.split()},
    **{n: (getattr(torch, n), "positive") for n in POSITIVE.split()},
    **{n: (getattr(torch, n), "unit") for n in ("asin", "acos", "atanh", "erfinv")},
    **{n: (getattr(F, n), "any") for n in ACTIVATIONS.split()},
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh"), "any"),
    "clamp": (lambda x: x.clamp(-0.5, 1), "any"),
    "clamp_min": (lambda x: x.clamp(min=1), "any"),
    "pow 2": (lambda x: x**2, "any"), "pow 3.5": (lambda x: x**3.5, "positive"),
    "2 pow": (lambda x: 2**x, "positive"), "add 2": (lambda x: x + 2, "any"),
    "add 2.5": (lambda x: x + 2.5, "any"), "2 minus": (lambda x: 2 - x, "any"),
    "divide 3": (lambda x: x / 3, "any"), "floor 3": (lambda x: x // 3, "any"),
    "modulo 3": (lambda x: x % 3, "any"), "eq 1": (lambda x: x == 1, "any"),
    "lt 1.5": (lambda x: x < 1.5, "any"), "and 3": (lambda x: x & 3, "any"),
    "shift 1": (lambda x: x << 1, "positive"),
    "threshold": (lambda x: F.threshold(x, 0.1, 20), "any"),
    "prelu": (lambda x: F.prelu(x, x.new_full((1,), 0.2)), "any"),
    "nan_to_num": (lambda x: torch.nan_to_num(x / x.clamp(0)), "any"),
}  # fmt: skip
BINARY = {
    **{n: (getattr(torch, n), "any") for n in PAIRS.split()},
    **{n: (getattr(torch, n), "positive") for n in
       ("div", "floor_divide", "remainder", "fmod", "pow")},
    "sub alpha": (lambda x, y: torch.sub(x, y, alpha=2), "any"),
    "div floor": (lambda x, y: torch.div(x, y, rounding_mode="floor"), "positive"),
    "where": (lambda x, y: torch.where(x > 0, x, y), "any"),
    "where scalar": (lambda x, y: torch.where(x > y, x, 3), "any"),
    "addcmul": (lambda x, y: torch.addcmul(x, x, y, value=2), "any"),
    "addcdiv": (lambda x, y: torch.addcdiv(x, x, y, value=2), "positive"),
    "lerp": (lambda x, y: torch.lerp(x, y, 0.3), "any"),
    "mse_loss": (F.mse_loss, "any"), "smooth_l1_loss": (F.smooth_l1_loss, "any"),
    "in place": (lambda x, y: x.clone().add_(y).mul_(y).sub_(1), "any"),
    "masked_fill": (lambda x, y: x.masked_fill(y > 0, 4), "any"),
    "cat": (lambda x, y: torch.cat([x, y, x]) if x.dim() else x + y, "any"),
    "stack": (lambda x, y: torch.stack([x, y], -1), "any"),
}  # fmt: skip
DIMS = {"all": {}, "0": {"dim": 0}, "-1": {"dim": -1}, "keep": {"dim": 1, "keepdim": True}}
REDUCTIONS = {
    "sum": DIMS, "mean": DIMS, "prod": DIMS, "amax": DIMS, "amin": DIMS, "max": DIMS, "min": DIMS,
    "argmax": DIMS, "argmin": DIMS, "any": DIMS, "all": DIMS, "var": DIMS, "std": DIMS,
    "norm": DIMS, "count_nonzero": {"all": {}, "0": {"dim": 0}},
    "logsumexp": {"1": {"dim": 1}}, "softmax": {"0": {"dim": 0}, "1": {"dim": 1}},
    "log_softmax": {"0": {"dim": 0}, "1": {"dim": 1}}, "cumsum": {"0": {"dim": 0}, "1": {"dim": 1}},
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_unary_layouts(device, name):
    call, domain = UNARY[name]
    dtype = torch.int32 if name in ("bitwise_not", "and 3", "shift 1") else torch.float32
    for shape, view in LAYOUTS.values():
        assert check(device, call, [values(domain, dtype, shape, 1)], [view])


@pytest.mark.parametrize("name", BINARY)
def test_binary_layouts(device, name):
    call, domain = BINARY[name]
    dtype = torch.int32 if "bitwise" in name else torch.float32
    for shape, view in LAYOUTS.values():
        pair = [values(domain, dtype, shape, seed) for seed in (1, 2)]
        assert check(device, call, pair, [view, view])
        plain = values(domain, dtype, view(pair[0]).shape, 3)
        assert check(device, call, [pair[0], plain], [view, lambda x: x])
    if name not in ("cat", "stack", "in place", "mse_loss", "smooth_l1_loss"):
        for shapes in (((5, 7), (7,)), ((5, 1), (1, 7)), ((5, 7), ()), ((2, 1, 3), (4, 1))):
            pair = [values(domain, dtype, shape, 4) for shape in shapes]
            assert check(device, call, pair)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS[1:]], ids=str)
@pytest.mark.parametrize("table", ["unary", "binary"])
def test_dtypes(device, table, dtype):
    names = UNARY if table == "unary" else BINARY
    compared, failed = 0, {}
    for name, (call, domain) in names.items():
        for layout in ("contiguous", "stepped"):
            shape, view = LAYOUTS[layout]
            inputs = [values(domain, dtype, shape, seed) for seed in range(1 + (names is BINARY))]
            try:
                compared += check(device, call, inputs, [view] * len(inputs))
            except Exception as error:  # every failure of the table is listed, not the first
                failed[name, layout] = str(error)[:300]
    assert not failed
    assert compared > 20


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(device, name):
    for kind, options in REDUCTIONS[name].items():
        call = lambda x, o=options: getattr(torch, name)(x, **o)  # noqa: E731
        for dtype in (*FLOATS, torch.int32, torch.int64, torch.bool, torch.uint8):
            shapes = [LAYOUTS[n] for n in ("contiguous", "transposed", "stepped")]
            if dtype == torch.float32:
                shapes += [LAYOUTS["rank 5"], LAYOUTS["expanded"], ((257, 1031), lambda x: x),
                           ((2, 0), lambda x: x), ((0, 2), lambda x: x)]  # fmt: skip
                shapes += [LAYOUTS["scalar"]] if kind in ("all", "0", "-1") else []
            for shape, view in shapes:
                x = values("positive" if name == "prod" else "any", dtype, shape, 5)
                if dtype.is_floating_point and x.numel() < 10_000:  # no ties
                    x = (torch.randperm(x.numel()).double() / 7 - 3).reshape(shape).to(dtype)
                x = x.clamp(0.9, 1.1) if name == "prod" and dtype.is_floating_point else x
                large = x.numel() > 10_000
                tolerance = {"rtol": 1e-4, "atol": 1e-3} if large else None
                check(device, call, [x], [view], tolerance)


def labels(x, count, high):
    return torch.arange(count, device=x.device) * 7 % high


NETWORK = {
    "linear": (F.linear, (4, 5), (3, 5), (3,)), "linear 3d": (F.linear, (2, 4, 5), (3, 5)),
    "mm": (torch.mm, (4, 5), (5, 3)), "mm t": (lambda x, y: x.t() @ y.t(), (5, 4), (3, 5)),
    "mm large": (torch.mm, (129, 65), (65, 130)), "mm empty": (torch.mm, (4, 0), (0, 3)),
    "bmm": (torch.bmm, (2, 4, 5), (2, 5, 3)), "matmul": (torch.matmul, (2, 1, 4, 5), (3, 5, 2)),
    "mv": (torch.mv, (4, 5), (5,)), "dot": (torch.dot, (9,), (9,)),
    "outer": (torch.outer, (3,), (4,)),
    "addmm": (lambda c, x, y: torch.addmm(c, x, y, beta=0.5, alpha=2), (3,), (4, 5), (5, 3)),
    "baddbmm": (torch.baddbmm, (2, 4, 3), (2, 4, 5), (2, 5, 3)),
    "conv1d": (F.conv1d, (2, 3, 11), (4, 3, 3), (4,)),
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, 2, 1), (2, 3, 9, 8), (4, 3, 3, 3), (4,)),
    "conv2d stepped bias": (lambda x, w, b: F.conv2d(x, w, b[::2]),
                            (1, 2, 6, 6), (3, 2, 3, 3), (6,)),
    "conv2d 1x1": (F.conv2d, (2, 8, 5, 5), (6, 8, 1, 1)),
    "conv2d dilated": (lambda x, w: F.conv2d(x, w, None, 1, 2, 2), (1, 2, 9, 9), (3, 2, 3, 3)),
    "conv2d groups": (lambda x, w: F.conv2d(x, w, groups=2), (2, 4, 6, 6), (6, 2, 3, 3)),
    "conv2d depthwise": (lambda x, w: F.conv2d(x, w, groups=4), (2, 4, 6, 6), (4, 1, 3, 3)),
    "conv2d stem": (lambda x, w: F.conv2d(x, w, None, 2, 3), (1, 3, 32, 32), (16, 3, 7, 7)),
    "conv2d stepped": (lambda x, w: F.conv2d(x[:, :, ::2], w), (1, 2, 12, 6), (3, 2, 3, 3)),
    "conv2d channels last": (lambda x, w: F.conv2d(x.to(memory_format=torch.channels_last), w),
                             (2, 3, 8, 8), (4, 3, 3, 3)),
    "conv3d": (F.conv3d, (1, 2, 5, 5, 5), (3, 2, 3, 3, 3)),
    "conv_transpose2d": (lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1),
                         (2, 3, 5, 5), (3, 4, 3, 3), (4,)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), (2, 3, 8, 8)),
    "max_pool2d padded": (lambda x: F.max_pool2d(x, 3, 2, 1), (2, 3, 9, 9)),
    "max_pool2d indices": (lambda x: F.max_pool2d(x, 2, return_indices=True), (2, 3, 8, 8)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1), (2, 3, 9, 9)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (3, 2)), (2, 3, 7, 5)),
    "adaptive_avg_pool2d 1": (lambda x: F.adaptive_avg_pool2d(x, 1), (2, 3, 7, 7)),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
                   (4, 3, 5, 5), (3,), (3,)),
    "batch_norm stepped": (lambda x, w, b: F.batch_norm(x, None, None, w[::2], b[::2], True),
                           (4, 3, 5, 5), (6,), (6,)),
    "batch_norm eval stepped": (
        lambda x, w, b: F.batch_norm(x, w.detach()[::2], b.detach()[::2].abs(), w[::2], b[::2]),
        (4, 3, 5, 5), (6,), (6,)),
    "batch_norm 1d": (lambda x: F.batch_norm(x, None, None, training=True), (6, 3)),
    "batch_norm eval": (lambda x, w, b: F.batch_norm(x, w.detach(), b.detach() ** 2 + 1, w, b),
                        (4, 3, 5, 5), (3,), (3,)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (7,), w, b), (5, 7), (7,), (7,)),
    "layer_norm 2d": (lambda x: F.layer_norm(x, (5, 7)), (3, 5, 7)),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (2, 4, 5), (4,), (4,)),
    "cross_entropy": (lambda x: F.cross_entropy(x, labels(x, 6, 5)), (6, 5)),
    "cross_entropy 2d": (lambda x: F.cross_entropy(x, labels(x, 12, 5).view(2, 6)), (2, 5, 6)),
    "nll_loss": (lambda x, w: F.nll_loss(x, labels(x, 6, 5), w.detach().abs(), ignore_index=2),
                 (6, 5), (5,)),
    "nll_loss none": (lambda x: F.nll_loss(x, labels(x, 6, 5), reduction="none"), (6, 5)),
    "nll_loss sum": (lambda x: F.nll_loss(x, labels(x, 6, 5), reduction="sum"), (6, 5)),
    "bce": (lambda x, y: F.binary_cross_entropy_with_logits(x, y.detach().sigmoid()),
            (4, 5), (4, 5)),
    "logit": (lambda x: torch.logit(x, 0.2), (4, 5)),
    "logit of crossed bounds": (lambda x: torch.logit(x, 0.6), (4, 5)),
    "embedding": (lambda w: F.embedding(labels(w, 9, 6).view(3, 3), w, padding_idx=1), (6, 4)),
    "dropout eval": (lambda x: F.dropout(x, 0.5, False), (4, 5)),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 1), value=3), (2, 3, 4)),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2), (1, 2, 4, 4)),
    "attention": (F.scaled_dot_product_attention, (2, 2, 5, 8), (2, 2, 5, 8), (2, 2, 5, 8)),
    "attention by the CPU's name": (
        lambda q, k, v: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, True)[0],
        (2, 2, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8)),
    "flatten": (lambda x: x.transpose(0, 1).flatten(), (3, 4)), "tril": (torch.tril, (4, 5)),
    "sort": (lambda x: torch.sort(x, -1), (4, 9)), "topk": (lambda x: x.topk(3), (4, 9)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", NETWORK)
def test_network(device, name, dtype):
    call, *shapes = NETWORK[name]
    inputs = [values("any", dtype, shape, i) for i, shape in enumerate(shapes)]
    tolerance = {torch.float32: {"rtol": 2e-5, "atol": 2e-5},
                 torch.float16: {"rtol": 1e-2, "atol": 2e-2},
                 torch.bfloat16: {"rtol": 8e-2, "atol": 1.2e-1}}.get(dtype)  # fmt: skip
    compared = check(device, call, inputs, tolerance=tolerance)
    assert compared or dtype == torch.float16


def test_running_statistics(device):
    sides = []
    for where in ("cpu", device):
        torch.manual_seed(0)
        norm = torch.nn.BatchNorm2d(3)
        x = torch.randn(4, 3, 6, 6)
        norm.to(where)
        for _ in range(3):
            norm(x.to(where))
        sides.append([t.cpu() for t in norm.state_dict().values()])
    assert_close(sides[1], sides[0])


def test_running_statistics_with_strides(device):
    x = torch.randn(4, 3, 6, 6)
    sides = []
    for where in ("cpu", device):
        mean, var = torch.zeros(6, device=where), torch.ones(6, device=where)
        F.batch_norm(x.to(where), mean[::2], var[::2], training=True)
        sides.append([mean.cpu(), var.cpu()])
    assert_close(sides[1], sides[0])


PROMOTION = [torch.bool, torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16,
             torch.float32, torch.float64, torch.complex64]  # fmt: skip


@pytest.mark.parametrize("left", PROMOTION, ids=str)
def test_type_promotion(device, left):
    x = torch.tensor([1, 2, 3]).to(left)
    for right in PROMOTION:
        y = torch.tensor([1, 1, 2]).to(right)
        for call in (torch.add, torch.mul, torch.true_divide, torch.eq):
            for other in (y, y[2]):
                if torch.complex32 in (torch.result_type(x, other), torch.result_type(other, x)):
                    continue  # the CPU cannot divide it
                expected = call(x, other)
                assert_close(call(x.to(device), other.to(device)).cpu(), expected)
                assert_close(call(other.to(device), x.to(device)).cpu(), call(other, x))
        for scalar in (2, 2.5, True):  # a number never widens within its kind
            assert_close((x.to(device) * scalar).cpu(), x * scalar)


@pytest.mark.parametrize("name", UNARY)
def test_special_values(device, name):
    if name in ("bitwise_not", "and 3", "shift 1", "lgamma", "digamma"):
        return
    inf = float("inf")
    x = torch.tensor([inf, -inf, float("nan"), 0.0, -0.0, 1e-42, -1e-42, 88.8, -104.0, 1e30, -1e30])
    # The CPU's float32 gelu of infinity is NaN on processors with AVX-512 and infinity on others.
    wanted = UNARY[name][0](x.double()).float() if name == "gelu" else UNARY[name][0](x)
    assert_close(UNARY[name][0](x.to(device)).cpu(), wanted, equal_nan=True)


def test_reductions_of_special_values(device):
    x = torch.tensor([[1.0, float("nan"), 3.0], [float("inf"), -1.0, 2.0], [-0.0, 0.0, -5.0]])
    for call in (torch.max, torch.min, torch.argmax, torch.argmin):
        for y in (x, x.t(), x[1:]):
            for options in ({}, {"dim": 0}, {"dim": 1}):
                ours, theirs = call(y.to(device), **options), call(y, **options)
                if options and call in (torch.max, torch.min):
                    assert_close([t.cpu() for t in ours], list(theirs), equal_nan=True)
                else:
                    assert_close(ours.cpu(), theirs, equal_nan=True)
    ties = torch.tensor([[2, 7, 7, 1], [3, 3, 3, 3]])
    assert_close(ties.to(device).argmax(1).cpu(), ties.argmax(1))


def test_out_variants(device):
    x, y = torch.randn(2, 4, 5).to(device)
    out = torch.empty(0, device=device)
    assert torch.add(x, y, out=out) is out
    assert_close(out.cpu(), x.cpu() + y.cpu())
    wide = torch.zeros(4, 10, device=device)
    torch.mul(x, y, out=wide[:, ::2])
    assert_close(wide[:, ::2].cpu(), x.cpu() * y.cpu())
    assert wide[:, 1::2].abs().sum().item() == 0
    with pytest.raises(RuntimeError, match="result type Float can't be cast"):
        torch.add(x, y, out=torch.empty(4, 5, dtype=torch.int32, device=device))
    with pytest.raises(RuntimeError, match="single memory location"):
        x[:1].expand(4, 5).add_(1)
    assert_close(
        torch.mm(x, y.t(), out=torch.empty(4, 4, device=device)).cpu(), x.cpu() @ y.cpu().t()
    )


BAD_CALLS = {
    "shapes": lambda d: torch.ones(2, 3, device=d) + torch.ones(4, device=d),
    "mm": lambda d: torch.mm(torch.ones(2, 3, device=d), torch.ones(4, 5, device=d)),
    "dim": lambda d: torch.ones(2, 3, device=d).sum(5),
    "view": lambda d: torch.ones(2, 3, device=d).view(7),
    "cat": lambda d: torch.cat([torch.ones(2, 3, device=d), torch.ones(4, 5, device=d)]),
    "conv": lambda d: F.conv2d(torch.ones(1, 2, 5, 5, device=d), torch.ones(3, 4, 3, 3, device=d)),
    "bitwise": lambda d: ~torch.ones(3, device=d),
    "max of nothing": lambda d: torch.ones(0, device=d).max(),
    "item": lambda d: torch.ones(2, device=d).item(),
    "dtype": lambda d: torch.ones(3, device=d, dtype=torch.int32).exp_(),
    "mean of ints": lambda d: torch.ones(3, device=d, dtype=torch.int32).mean(),
    "mm dtypes": lambda d: torch.ones(2, 2, device=d) @ torch.ones(2, 2, device=d).double(),
    "bool minus": lambda d: torch.ones(2, device=d).bool() - torch.ones(2, device=d).bool(),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_errors_read_as_on_the_cpu(device, name):
    with pytest.raises(Exception) as expected:
        BAD_CALLS[name]("cpu")
    with pytest.raises(expected.type) as found:
        BAD_CALLS[name](device)
    kernels = ("_cpu", f"_{device}"), ('"cpu"', f'"{device}"')
    text = str(found.value).splitlines()[0]
    for theirs, ours in kernels:
        text = text.replace(ours, theirs)
    assert text == str(expected.value).splitlines()[0]

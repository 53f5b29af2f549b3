"""Operators on images, lines and volumes against the CPU: interpolation, padding, windows."""

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from cpu_comparison import check, values

NARROW = {torch.float16: {"rtol": 1e-2, "atol": 1e-2}, torch.bfloat16: {"rtol": 5e-2, "atol": 5e-2}}
FLOATS = [torch.float32, torch.float64, torch.bfloat16]
SIZES = [5, 7, 6]
INTERPOLATIONS = [("nearest", 1), ("nearest", 2), ("nearest", 3), ("nearest-exact", 1),
                  ("nearest-exact", 2), ("nearest-exact", 3), ("linear", 1), ("bilinear", 2),
                  ("bicubic", 2), ("trilinear", 3)]  # fmt: skip
TARGETS = [{"size": [9, 4, 6]}, {"size": [1, 12, 2]}, {"scale_factor": [1.7, 0.6, 2.0]}]


def native(device, call, inputs, **options):
    """Compares, and sees to it that nothing fell back; False where the CPU refuses."""
    torch.graft.fallback.reset()
    with torch.graft.fallback.off():
        compared = check(device, call, inputs, **options)
    assert not torch.graft.fallback.counts()
    return compared


def images(dims, dtype, layout="contiguous"):
    x = values("any", dtype, [2, 3, *SIZES[:dims]], 3)
    if layout == "channels last" and dims > 1:
        formats = {2: torch.channels_last, 3: torch.channels_last_3d}
        return x.contiguous(memory_format=formats[dims])
    return x.mT.contiguous().mT if layout == "transposed" else x


@pytest.mark.parametrize("layout", ["contiguous", "channels last", "transposed"])
@pytest.mark.parametrize(("mode", "dims"), INTERPOLATIONS)
def test_interpolation(device, mode, dims, layout):
    for dtype in FLOATS:
        for target in TARGETS:
            for align in (None,) if "nearest" in mode else (False, True):
                options = {name: v[:dims] for name, v in target.items()} | {"align_corners": align}
                call = lambda x, o=options: F.interpolate(x, mode=mode, **o)  # noqa: E731
                x = images(dims, dtype, layout)
                assert native(device, call, [x], tolerance=NARROW.get(dtype))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiased_interpolation(device, mode):
    for dtype in (torch.float32, torch.float64):
        for size in ([3, 2], [9, 4], [11, 20]):
            for align in (False, True):
                call = lambda x, s=size, a=align: F.interpolate(  # noqa: E731
                    x, s, mode=mode, align_corners=a, antialias=True
                )
                assert native(device, call, [images(2, dtype)])


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_interpolation_of_bytes(device, mode):
    x = torch.randint(0, 256, (2, 3, 5, 7), generator=torch.Generator().manual_seed(1))
    for size in ([9, 4], [3, 12]):
        call = lambda x, s=size: F.interpolate(x, s, mode=mode)  # noqa: E731
        assert native(device, call, [x.to(torch.uint8)])


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular", "constant"])
def test_padding(device, mode, dims):
    for dtype in (torch.float32, torch.float64, torch.complex64, torch.int64):
        for shape in ([2, 3], [3], [0, 3]):
            for padding in ([1, 2], [4, 0], [-1, 2]):
                x = values("any", torch.float64, [*shape, *SIZES[:dims]], 2).to(dtype)
                call = lambda x, p=padding: F.pad(x, p * dims, mode=mode)  # noqa: E731
                assert native(device, call, [x])


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_padding_too_much_reads_as_on_the_cpu(device, mode, dims):
    for amount in (9, -3) if mode == "reflect" else (-3,):
        x = torch.randn([1, 2, *[4] * dims])
        with pytest.raises(RuntimeError) as expected:
            F.pad(x, [amount, amount] * dims, mode=mode)
        with pytest.raises(RuntimeError) as found:
            F.pad(x.to(device), [amount, amount] * dims, mode=mode)
        assert str(found.value).splitlines()[0] == str(expected.value).splitlines()[0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_transposed_convolution_rounds_once(device, dtype):
    """The bias is added to the sums before they become half numbers."""
    x, weight = torch.randn(1, 3, 6, 6).to(dtype), torch.randn(3, 2, 3, 3).to(dtype)
    exact = F.conv_transpose2d(x.double(), weight.double(), stride=2)
    for k in range(8):
        bias = -exact[0, :, k, k].to(dtype)
        expected = exact + bias.double()[:, None, None]
        found = F.conv_transpose2d(*[t.to(device) for t in (x, weight, bias)], stride=2)
        torch.testing.assert_close(found.cpu(), expected.to(dtype), rtol=0.008, atol=2e-6)


def test_reflection_may_take_a_whole_side_away(device):
    """PyTorch asks for one output size above 0, not for all."""
    x = torch.randn(1, 2, 5, 5)
    expected = F.pad(x, (-7, 2, 0, 1), mode="reflect")
    assert F.pad(x.to(device), (-7, 2, 0, 1), mode="reflect").shape == expected.shape


POOLS = {
    "max 3d": lambda x: F.max_pool3d(x, 2, return_indices=True),
    "max 3d padded": lambda x: F.max_pool3d(x, 3, 2, 1, return_indices=True, ceil_mode=True),
    "max 3d dilated": lambda x: F.max_pool3d(x, 2, 1, 1, (1, 2, 2)),
    "avg 3d": lambda x: F.avg_pool3d(x, 2), "avg 3d padded": lambda x: F.avg_pool3d(x, 3, 2, 1),
    "avg 3d ceil": lambda x: F.avg_pool3d(x, 3, 2, 1, True, False),
    "avg 3d divisor": lambda x: F.avg_pool3d(x, 2, 1, divisor_override=5),
    "adaptive avg 3d": lambda x: F.adaptive_avg_pool3d(x, (2, 4, 9)),
    "adaptive max 3d": lambda x: F.adaptive_max_pool3d(x, (2, 4, 9), return_indices=True),
    "adaptive max 2d": lambda x: F.adaptive_max_pool2d(x[0], (3, 4), return_indices=True),
    "adaptive max 1d": lambda x: F.adaptive_max_pool1d(x[0, :, 0], 4),
    "lp 3d": lambda x: F.lp_pool3d(x.abs() + 1, 2, 2),
    "response norm": lambda x: F.local_response_norm(x, 2),
    "fractional 2d": lambda x: F.fractional_max_pool2d(
        x[0], 2, output_size=(3, 4), _random_samples=x.new_full((3, 5, 2), 0.37)),
    "fractional 3d": lambda x: F.fractional_max_pool3d(
        x, 2, output_size=(3, 4, 1), _random_samples=x.new_full((2, 3, 3), 0.61)),
    "unpool 1d": lambda x: F.max_unpool1d(*F.max_pool1d(x[0, :, 0], 2, return_indices=True), 2),
    "unpool 2d": lambda x: F.max_unpool2d(*F.max_pool2d(x[0], 2, return_indices=True), 2),
    "unpool 3d": lambda x: F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2,
                                          output_size=x.shape),
    "unfold": lambda x: F.unfold(x[0], (2, 3), (1, 2), (1, 0), (2, 1)),
    "unfold image": lambda x: F.unfold(x[0, 0][None], 2),
    "fold": lambda x: F.fold(x.reshape(2, 6, -1)[:, :, :24], (5, 6), (2, 3), padding=(0, 1))
        if x.numel() else x,
    "tensor unfold": lambda x: x.unfold(3, 3, 2), "tensor unfold 1": lambda x: x.unfold(2, 2, 1),
    "group norm": lambda x: F.group_norm(x, 3), "group norm 1": lambda x: F.group_norm(x, 1),
    "instance norm": lambda x: F.instance_norm(x),
}  # fmt: skip


@pytest.mark.parametrize("layout", ["contiguous", "channels last", "transposed"])
@pytest.mark.parametrize("name", POOLS)
def test_windows(device, name, layout):
    for dtype in FLOATS:
        x = images(3, dtype, layout)
        compared = native(device, POOLS[name], [x], tolerance=NARROW.get(dtype))
        refused = dtype in NARROW or (name, layout) == ("response norm", "transposed")
        assert compared or refused


def test_windows_of_whole_numbers_and_bool(device):
    x = torch.randint(-50, 50, (2, 3, 6, 5, 7), generator=torch.Generator().manual_seed(1))
    for name in (name for name in POOLS if name.startswith("avg 3d")):
        assert native(device, POOLS[name], [x])
    for name in ("unfold", "unfold image"):
        assert native(device, POOLS[name], [x > 0])


# PyTorch computes them from 2.15 on.
BICUBIC_VOLUMES = torch.__version__ >= (2, 15)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample(device, mode, padding):
    for dims in (2, 3):
        grid = values("unit", torch.float64, [2, *[4, 3, 5][:dims], dims], 7) * 1.7
        if dims == 3 and mode == "bicubic" and not BICUBIC_VOLUMES:
            with pytest.raises(RuntimeError, match="bicubic interpolation only supports 4D"):
                F.grid_sample(images(3, torch.float64).to(device), grid.to(device), mode, padding)
            continue
        for dtype in (torch.float32, torch.float64):
            for align in (False, True):
                call = lambda x, g, a=align: F.grid_sample(x, g, mode, padding, a)  # noqa: E731
                assert native(device, call, [images(dims, dtype), grid.to(dtype)],
                              tolerance={"rtol": 1e-4, "atol": 1e-4})  # fmt: skip


def test_group_norm_of_every_shape(device):
    for shape, groups in (((2, 6), 3), ((0, 6, 4), 2), ((3, 4, 0), 2), ((2, 8, 3, 5), 8)):
        for dtype in FLOATS:
            inputs = [values("any", dtype, s, 1) for s in (shape, shape[1:2], shape[1:2])]
            call = lambda x, w, b, g=groups: F.group_norm(x, g, w, b)  # noqa: E731
            native(device, call, inputs, tolerance=NARROW.get(dtype))


# Positions on each axis that are no numbers, and some that are.
POSITIONS = [float("nan"), float("inf"), -float("inf"), 0.3, 5.0, -5.0]


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(
    ("mode", "dims"),
    [("bilinear", 2), ("nearest", 2), ("bicubic", 2), ("bilinear", 3), ("nearest", 3)],
)
def test_grids_of_no_numbers(device, mode, dims, padding, align):
    for dtype in (torch.float32, torch.float64):
        x = images(dims, dtype)[:1]
        points = torch.cartesian_prod(*[torch.tensor(POSITIONS, dtype=dtype)] * dims)
        grid = points.view(1, *[1] * (dims - 1), -1, dims)
        options = {"mode": mode, "padding_mode": padding, "align_corners": align}
        expected = F.grid_sample(x, grid, **options)
        there = [t.to(device).requires_grad_() for t in (x, grid)]
        found = F.grid_sample(*there, **options)
        assert_close(found.cpu(), expected, equal_nan=True)
        found.backward(torch.ones_like(found))
        slopes = [t.grad.cpu() for t in there]
        assert not slopes[0].isinf().any()
        if padding == "zeros":  # the CPU reads beyond the image elsewhere
            here = [t.clone().requires_grad_() for t in (x, grid)]
            F.grid_sample(*here, **options).sum().backward()
            for one, other in zip(slopes, here, strict=True):
                assert_close(one, other.grad, equal_nan=True)

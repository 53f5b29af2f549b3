"""torchvision's operators on boxes, registered before or without torchvision, against plain formulas.

Where torchvision does not import, its schemas are defined here: the kernels were registered before.
`dispatch/test_torchvision_operators.py` compares with torchvision's own kernels.
"""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch

import region_formulas as formulas
from region_formulas import Bins

pytestmark = pytest.mark.any_driver

POOLED = "float spatial_scale, int pooled_height, int pooled_width"
IMAGES = "int batch_size, int channels, int height, int width"
DEFORMED = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, int stride_h, int stride_w, "
    "int pad_h, int pad_w, int dilation_h, int dilation_w, int groups, int offset_groups, bool use_mask"
)
SCHEMAS = [
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor",
    "_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "SymInt batch_size, SymInt channels, SymInt height, SymInt width, int sampling_ratio, bool aligned) -> Tensor",
    f"ps_roi_align(Tensor input, Tensor rois, {POOLED}, int sampling_ratio) -> (Tensor, Tensor)",
    f"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {POOLED}, int sampling_ratio, {IMAGES}) "
    "-> Tensor",
    f"roi_pool(Tensor input, Tensor rois, {POOLED}) -> (Tensor, Tensor)",
    f"_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, {POOLED}, {IMAGES}) -> Tensor",
    f"ps_roi_pool(Tensor input, Tensor rois, {POOLED}) -> (Tensor, Tensor)",
    f"_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {POOLED}, {IMAGES}) -> Tensor",
    f"deform_conv2d({DEFORMED}) -> Tensor",
    f"_deform_conv2d_backward(Tensor grad, {DEFORMED}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
]
ROIS = torch.tensor(
    [[0.0, 1, 2, 9, 10], [1, -4, -3, 30, 22], [1, 3, 5, 3.5, 6], [0, 9, 7, 9, 7.2], [1, 0, 0.5, 6, 40]],
    dtype=torch.float64,
)  # fmt: skip


@pytest.fixture(scope="module")
def ops():
    if find_spec("torchvision") is not None:
        import torchvision.ops  # noqa: F401

        yield torch.ops.torchvision
        return
    library = torch.library.Library("torchvision", "DEF")
    for schema in SCHEMAS:
        library.define(schema)
    yield torch.ops.torchvision
    library._destroy()


@pytest.fixture(autouse=True)
def natively(module):
    """Nothing that a test does on the device may be left to the CPU."""
    with module.fallback.forbid():
        yield


def images(channels, dtype=torch.float64):
    return torch.randn(2, channels, 7, 9, generator=torch.Generator().manual_seed(3), dtype=dtype)


def compare(found, expected, dtype):
    exact = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 4e-3}[dtype]
    torch.testing.assert_close(found.cpu().double(), expected.detach(), rtol=exact, atol=exact)


def gradients(run, formula, given, device, dtype):
    """The device's result and gradient, made by run, against those of the formula."""
    given = given.to(dtype).double().requires_grad_()
    expected = formula(given)
    slopes = torch.linspace(-1, 1, expected.numel(), dtype=torch.float64).view(expected.shape)
    slopes = slopes.to(dtype).double()
    expected.backward(slopes)
    found, grad = run(given.detach().to(device, dtype), slopes.to(device, dtype))
    compare(found, expected, dtype)
    compare(grad, given.grad, dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [-1, 2])
def test_roi_align(ops, device, dtype, aligned, ratio):
    rois, bins = ROIS.to(device, dtype), Bins(0.5, 2, 3)

    def run(pictures, slopes):
        pictures = pictures.contiguous(memory_format=torch.channels_last)
        out = ops.roi_align(pictures, rois, 0.5, 2, 3, ratio, aligned)
        slopes = slopes.transpose(2, 3).contiguous().transpose(2, 3)
        return out, ops._roi_align_backward(
            slopes, rois, 0.5, 2, 3, *pictures.shape, ratio, aligned
        )

    gradients(
        run, lambda x: formulas.align(x, ROIS, bins, ratio, aligned), images(3), device, dtype
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_ps_roi_align(ops, device, dtype):
    rois, bins = ROIS.to(device, dtype), Bins(0.5, 2, 2, positional=True)

    def run(pictures, slopes):
        out, mapping = ops.ps_roi_align(pictures, rois, 0.5, 2, 2, 2)
        assert mapping.dtype == torch.int32
        assert (
            mapping.cpu().tolist() == torch.arange(8).view(1, 2, 2, 2).expand(5, 2, 2, 2).tolist()
        )
        return out, ops._ps_roi_align_backward(slopes, rois, mapping, 0.5, 2, 2, 2, *pictures.shape)

    gradients(run, lambda x: formulas.align(x, ROIS, bins, 2, True), images(8), device, dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_roi_pool(ops, device, dtype):
    rois, bins = ROIS.to(device, dtype), Bins(0.5, 3, 2)

    def run(pictures, slopes):
        out, argmax = ops.roi_pool(pictures, rois, 0.5, 3, 2)
        assert argmax.dtype == torch.int32
        return out, ops._roi_pool_backward(slopes, rois, argmax, 0.5, 3, 2, *pictures.shape)

    gradients(run, lambda x: formulas.pooled(x, ROIS, bins, largest=True), images(3), device, dtype)


def test_ps_roi_pool(ops, device):
    rois, bins = ROIS.float().to(device), Bins(0.5, 2, 2, positional=True)
    pictures = images(8, torch.float32)
    out, mapping = ops.ps_roi_pool(pictures.to(device), rois, 0.5, 2, 2)
    compare(out, formulas.pooled(pictures.double(), ROIS, bins, largest=False), torch.float32)
    # Only its gradient has the last row and column: the mean's weights add up to 1 in each bin.
    grad = ops._ps_roi_pool_backward(
        torch.ones_like(out), rois, mapping, 0.5, 2, 2, *pictures.shape
    )
    empty = formulas.pooled(torch.ones(2, 8, 8, 10, dtype=torch.float64), ROIS, bins, largest=False)
    assert grad.sum().item() == pytest.approx(empty.sum().item(), rel=1e-5)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_deform_conv2d(ops, device, dtype, masked):
    draw = lambda *sizes: torch.randn(*sizes, dtype=torch.float64).to(dtype).double()  # noqa: E731
    torch.manual_seed(4)
    given = [draw(2, 4, 7, 8), draw(6, 2, 3, 2), draw(2, 24, 3, 4), draw(2, 12, 3, 4), draw(6)]
    leaves = [one.clone().requires_grad_() for one in given]
    image, weight, offset, mask, bias = leaves
    expected = formulas.deformable(
        image, weight, offset, mask if masked else None, bias, 2, 1, 2, 2, 2
    )
    slopes = draw(*expected.shape)
    expected.backward(slopes)
    there = [one.to(device, dtype) for one in given]
    there[0] = there[0].contiguous(memory_format=torch.channels_last)
    numbers = (2, 2, 1, 1, 2, 2, 2, 2, masked)
    found = [ops.deform_conv2d(*there, *numbers)]
    found += ops._deform_conv2d_backward(slopes.to(device, dtype), *there, *numbers)
    wanted = [expected, image.grad, weight.grad, offset.grad, mask.grad, bias.grad]
    for i, (mine, theirs) in enumerate(zip(found, wanted, strict=True)):
        if theirs is None:
            assert mine.count_nonzero() == 0
        else:
            limit = {torch.float64: 1e-11, torch.float32: 1e-4, torch.float16: 0.15}[dtype]
            torch.testing.assert_close(
                mine.cpu().double(), theirs.detach(), rtol=limit, atol=limit, msg=str(i)
            )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.7, 1.0])
def test_nms(ops, device, dtype, threshold):
    torch.manual_seed(5)
    corners = (torch.rand(200, 2, dtype=dtype) * 30).round(decimals=1)
    boxes = torch.cat([corners, corners + (torch.rand(200, 2, dtype=dtype) * 15).round()], 1)
    scores = torch.rand(200, dtype=dtype).round(decimals=1)  # many are equal
    scores[3] = float("nan")
    kept = ops.nms(boxes.to(device), scores.to(device), threshold)
    assert kept.dtype == torch.int64
    assert kept.tolist() == formulas.kept_boxes(boxes, scores, threshold)


def test_nothing_gives_nothing(ops, device):
    none, pictures = torch.zeros(0, 5, device=device), images(4, torch.float32).to(device)
    assert ops.nms(none[:, :4], none[:, 0], 0.5).shape == (0,)
    assert ops.roi_align(pictures, none, 1.0, 2, 2, 2, True).shape == (0, 4, 2, 2)
    assert [one.shape for one in ops.ps_roi_pool(pictures, none, 1.0, 2, 2)] == [(0, 1, 2, 2)] * 2
    grad = torch.zeros(0, 4, 2, 2, device=device)
    sizes = (2, 4, 7, 9)
    for found in (
        ops._roi_align_backward(grad, none, 1.0, 2, 2, *sizes, 2, True),
        ops._roi_pool_backward(grad, none, grad.int(), 1.0, 2, 2, *sizes),
    ):
        assert found.shape == sizes
        assert found.count_nonzero() == 0


def test_what_does_not_fit_is_refused(ops, device):
    boxes, pictures = torch.ones(3, 4, device=device), torch.ones(1, 4, 5, 5, device=device)
    rois = torch.ones(3, 5, device=device)
    grad = torch.ones(3, 4, 2, 2, device=device)
    wrong = [
        lambda: ops.nms(boxes, boxes[:2, 0], 0.5),
        lambda: ops.nms(boxes[:, :3], boxes[:, 0], 0.5),
        lambda: ops.nms(boxes, boxes[:, 0].double(), 0.5),
        lambda: ops.roi_align(pictures, boxes, 1.0, 2, 2, 2, True),
        lambda: ops.roi_align(pictures, rois.double(), 1.0, 2, 2, 2, True),
        lambda: ops.roi_align(pictures[0], rois, 1.0, 2, 2, 2, True),
        lambda: ops.roi_align(pictures, rois, 1.0, 0, 2, 2, True),
        lambda: ops.ps_roi_align(pictures, rois, 1.0, 3, 1, 2),
        lambda: ops._roi_align_backward(grad, rois, 1.0, 2, 2, 1, 5, 5, 5, 2, True),
        lambda: ops._roi_pool_backward(grad, rois, grad.int()[:2], 1.0, 2, 2, 1, 4, 5, 5),
        lambda: ops._roi_pool_backward(grad, rois, grad, 1.0, 2, 2, 1, 4, 5, 5),
    ]
    for call in wrong:
        with pytest.raises((RuntimeError, IndexError)):
            call()


def test_a_region_of_no_image_is_reported(ops, device):
    pictures, rois = torch.ones(2, 1, 5, 5, device=device), torch.zeros(1, 5, device=device)
    for image in (2.0, -1.0, float("nan")):
        rois[0, 0] = image
        with pytest.raises((RuntimeError, IndexError), match="out of"):
            ops.roi_align(pictures, rois, 1.0, 1, 1, 1, False).cpu()
    rois[0] = torch.tensor([-0.5, 0, 0, 4, 4])  # is cut to 0, as on the CPU
    assert ops.roi_align(pictures, rois, 1.0, 1, 1, 1, False).item() == 1


def test_autocast_computes_in_float32(ops, device):
    pictures, rois = images(3, torch.float32).to(device), ROIS.float().to(device)
    plain = ops.roi_align(pictures.half().float(), rois, 0.5, 2, 2, 2, True)
    with torch.autocast(torch.device(device).type, dtype=torch.float16):
        half = ops.roi_align(pictures.half(), rois, 0.5, 2, 2, 2, True)
        kept = ops.nms(rois[:, 1:].half(), rois[:, 1], 0.5)
    assert half.dtype == torch.float16
    assert kept.dtype == torch.int64
    torch.testing.assert_close(half, plain.half())

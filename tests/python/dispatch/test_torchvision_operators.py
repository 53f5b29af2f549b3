"""torchvision's C++ operators on the device: its kernels compute them, with gradients, as on the CPU.

`images/test_detection_operators.py` compares them with plain formulas, also where torchvision does not import.
"""

import pytest
import torch

pytestmark = pytest.mark.any_driver

BOXES = torch.tensor([[1.0, 1, 20, 22], [2, 1, 21, 22], [8, 9, 30, 31], [0, 0, 5, 6]])


@pytest.fixture(autouse=True)
def natively(module):
    """No operator of torchvision may be left to the CPU."""
    module.fallback.reset()
    yield
    left = {name for name in module.fallback.counts() if name.startswith("torchvision::")}
    assert left == set()


@pytest.fixture(scope="module")
def ops():
    import torchvision.ops

    return torchvision.ops


def leaves(tensors, device):
    """The same numbers on the device, each a leaf that takes gradients."""
    return [t.detach().to(device).requires_grad_(t.is_floating_point()) for t in tensors]


def both(function, tensors, device):
    """Output and gradients on the CPU and on the device."""
    sides = []
    for place in ("cpu", device):
        inputs = leaves(tensors, place)
        out = function(*inputs)
        weight = torch.linspace(-1, 1, out.numel()).reshape(out.shape).to(place)
        (out * weight).sum().backward()
        sides.append([out.detach().cpu(), *(t.grad.cpu() for t in inputs if t.grad is not None)])
    return sides


def test_nms_keeps_the_cpus_boxes(ops, device):
    scores = torch.tensor([0.6, 0.9, 0.5, 0.4])
    kept = ops.nms(BOXES.to(device), scores.to(device), 0.5)
    assert kept.device.type == torch.device(device).type
    assert kept.tolist() == ops.nms(BOXES, scores, 0.5).tolist() == [1, 2, 3]
    several = ops.batched_nms(
        BOXES.to(device), scores.to(device), torch.tensor([0, 1, 0, 1]).to(device), 0.5
    )
    assert several.tolist() == [1, 0, 2, 3]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nms_of_many_boxes(ops, device, dtype):
    generator = torch.Generator().manual_seed(7)
    draw = lambda *sizes: torch.rand(*sizes, generator=generator, dtype=dtype)  # noqa: E731
    corners = draw(3000, 2) * 200
    boxes, scores = torch.cat([corners, corners + draw(3000, 2) * 60], 1), draw(3000)
    for threshold in (0.1, 0.3, 0.7):
        kept = ops.nms(boxes.to(device), scores.to(device), threshold)
        assert kept.tolist() == ops.nms(boxes, scores, threshold).tolist()


@pytest.mark.parametrize("name", ["roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool"])
def test_regions(ops, device, name):
    generator = torch.Generator().manual_seed(3)
    channels = 8 if name.startswith("ps_") else 3
    images = torch.randn(2, channels, 16, 18, generator=generator)
    rois = torch.cat([torch.tensor([[0.0], [1], [0], [1]]), BOXES / 2], 1)

    def regions(pictures):
        return getattr(ops, name)(pictures, rois.to(pictures.device), 2, spatial_scale=1.0)

    expected, found = both(regions, [images], device)
    torch.testing.assert_close(found, expected)
    assert len(found) == 2


@pytest.mark.parametrize(
    ("dtype", "ratio", "aligned"),
    [
        *(
            (dtype, -1, aligned)
            for dtype in (torch.float32, torch.float64)
            for aligned in (False, True)
        ),
        *((dtype, 3, True) for dtype in (torch.float32, torch.float64, torch.float16)),
        (torch.float16, 2, False),
    ],
)
def test_regions_of_many_sizes(ops, device, dtype, ratio, aligned):
    generator = torch.Generator().manual_seed(5)
    images = torch.randn(2, 6, 13, 17, generator=generator).to(dtype)
    corners = (torch.rand(40, 2, generator=generator) * 160 - 30).round(decimals=2)
    sizes = (torch.rand(40, 2, generator=generator) * 90 - 8).round(decimals=2)  # some are negative
    which = torch.arange(40).view(-1, 1) % 2
    rois = torch.cat([which, corners, corners + sizes], 1)
    if dtype == torch.float16:
        rois[:, 1:] = rois[:, 1:].round().clamp(0, 100)  # numbers that float16 has

    def regions(pictures):
        there = rois.to(pictures.device, pictures.dtype)
        return ops.roi_align(pictures, there, (3, 4), 1 / 8, sampling_ratio=ratio, aligned=aligned)

    expected, found = both(regions, [images], device)
    if dtype == torch.float16:
        # The CPU rounds each step to it; the device rounds what the CPU computes in float32.
        expected = both(regions, [images.float()], "cpu")[0]
        found = [one.float() for one in found]
        torch.testing.assert_close(found, expected, rtol=2e-3, atol=2e-3)
    else:
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", ["roi_pool", "ps_roi_pool", "ps_roi_align"])
def test_pools_of_many_sizes(ops, device, name):
    generator = torch.Generator().manual_seed(6)
    images = torch.randn(2, 12, 13, 17, generator=generator)
    corners = torch.rand(60, 2, generator=generator) * 170 - 30
    sizes = torch.rand(60, 2, generator=generator) * 90 - 8
    rois = torch.cat([torch.arange(60).view(-1, 1) % 2, corners, corners + sizes], 1)

    def regions(pictures):
        return getattr(ops, name)(pictures, rois.to(pictures.device), (2, 3), 0.13)

    expected, found = both(regions, [images], device)
    torch.testing.assert_close(found, expected, equal_nan=True)


@pytest.mark.parametrize("masked", [False, True])
def test_deformable_convolution(ops, device, masked):
    generator = torch.Generator().manual_seed(4)
    draw = lambda *sizes: torch.randn(*sizes, generator=generator)  # noqa: E731
    tensors = [draw(2, 4, 7, 8), draw(2, 18, 5, 6), draw(6, 4, 3, 3), draw(6)]
    tensors += [draw(2, 9, 5, 6).sigmoid()] if masked else []

    def convolution(images, offsets, weight, bias, mask=None):
        return ops.deform_conv2d(images, offsets, weight, bias, mask=mask)

    expected, found = both(convolution, tensors, device)
    assert len(found) == len(tensors) + 1
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


TARGETS = BOXES * 2 + torch.tensor([0.0, 0, 9, 9])
# All boxes count for the losses: a sample of them would be drawn otherwise on each device.
WHOLE = {"box_batch_size_per_image": 10**6, "rpn_batch_size_per_image": 10**6}
SMALL = {"min_size": 96, "max_size": 96, "num_classes": 3, "rpn_post_nms_top_n_train": 20}


def faster_rcnn():
    from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

    return fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, **SMALL, **WHOLE
    )


def mask_rcnn():
    from torchvision.models.detection import MaskRCNN
    from torchvision.models.detection.anchor_utils import AnchorGenerator
    from torchvision.models.detection.backbone_utils import mobilenet_backbone

    backbone = mobilenet_backbone(
        backbone_name="mobilenet_v3_large", weights=None, fpn=True, trainable_layers=6
    )
    anchors = AnchorGenerator(((32, 64, 128),) * 3, ((0.5, 1.0, 2.0),) * 3)
    return MaskRCNN(backbone, rpn_anchor_generator=anchors, **SMALL, **WHOLE)


def batch(place, dtype):
    generator = torch.Generator().manual_seed(1)
    draw = lambda *sizes: torch.rand(*sizes, generator=generator).to(place, dtype)  # noqa: E731
    images = [draw(3, 80, 96), draw(3, 96, 64)]
    targets = []
    for image in images:
        masks = (draw(4, *image.shape[1:]) > 0.5).to(torch.uint8)
        labels = torch.tensor([1, 2, 1, 2], device=place)
        targets.append({"boxes": TARGETS.to(place, dtype), "labels": labels, "masks": masks})
    return images, targets


@pytest.mark.parametrize("make", [faster_rcnn, mask_rcnn])
def test_a_training_step_has_the_cpus_numbers(device, module, make):
    """In float64, in which nothing is so close that another order of a sum would decide it."""
    torch.manual_seed(0)
    model = make().double().train()
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    found = {}
    for place in ("cpu", device):
        model.load_state_dict(state)
        model.to(place).zero_grad()
        images, targets = batch(place, torch.float64)
        module.fallback.reset()
        losses = model(images, targets)
        sum(losses.values()).backward()
        grads = {
            name: p.grad.cpu().clone() for name, p in model.named_parameters() if p.grad is not None
        }
        found[place] = ({name: loss.detach().cpu() for name, loss in losses.items()}, grads)
    assert module.fallback.counts() == {}
    assert len(found["cpu"][0]) == (5 if make is mask_rcnn else 4)
    assert len(found["cpu"][1]) > 50
    torch.testing.assert_close(found[device][0], found["cpu"][0])
    torch.testing.assert_close(found[device][1], found["cpu"][1])


def test_a_model_detects_what_the_cpu_does(device):
    torch.manual_seed(0)
    model = faster_rcnn().double().eval()
    images = batch("cpu", torch.float64)[0]
    with torch.no_grad():
        expected = model(images)
        found = model.to(device)([image.to(device) for image in images])
    for one, other in zip(found, expected, strict=True):
        assert len(other["boxes"]) > 0
        torch.testing.assert_close({key: value.cpu() for key, value in one.items()}, other)


def test_a_faster_rcnn_trains_as_on_the_cpu(device):
    torch.manual_seed(0)
    model = faster_rcnn().train()
    images = [torch.rand(3, 80, 96), torch.rand(3, 96, 64)]
    targets = [{"boxes": TARGETS, "labels": torch.tensor([1, 2, 1, 2])}] * 2
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    steps = {}
    for place in ("cpu", device):
        model.load_state_dict(state)
        model.to(place)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        there = [{key: value.to(place) for key, value in target.items()} for target in targets]
        steps[place] = []
        for _ in range(2):
            losses = model([image.to(place) for image in images], there)
            optimizer.zero_grad()
            sum(losses.values()).backward()
            optimizer.step()
            steps[place].append({name: loss.item() for name, loss in losses.items()})
    assert set(steps[device][0]) == {
        "loss_classifier", "loss_box_reg", "loss_objectness", "loss_rpn_box_reg"
    }  # fmt: skip
    for expected, found in zip(steps["cpu"], steps[device], strict=True):
        assert found == pytest.approx(expected, rel=2e-3)
    assert steps[device][0] != steps[device][1]


def test_autocast_casts_as_on_the_cpu(ops, device):
    images = torch.randn(1, 4, 9, 9)
    rois = torch.cat([torch.zeros(4, 1), BOXES / 3], 1)
    found = []
    for place in ("cpu", device):
        with torch.autocast(torch.device(place).type, dtype=torch.bfloat16):
            out = ops.roi_align(images.to(place, torch.bfloat16), rois.to(place), 2, 1.0)
        found.append(out.cpu())
    assert found[0].dtype == torch.bfloat16
    torch.testing.assert_close(found[1], found[0])

"""torchvision's C++ operators on the device: the fallback computes them, counted, with gradients."""

import pytest
import torch

pytestmark = pytest.mark.any_driver

BOXES = torch.tensor([[1.0, 1, 20, 22], [2, 1, 21, 22], [8, 9, 30, 31], [0, 0, 5, 6]])


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


def test_nms_keeps_the_cpus_boxes(ops, device, module):
    scores = torch.tensor([0.6, 0.9, 0.5, 0.4])
    module.fallback.reset()
    kept = ops.nms(BOXES.to(device), scores.to(device), 0.5)
    assert kept.device.type == torch.device(device).type
    assert kept.tolist() == ops.nms(BOXES, scores, 0.5).tolist() == [1, 2, 3]
    assert "torchvision::nms" in module.fallback.counts()
    several = ops.batched_nms(
        BOXES.to(device), scores.to(device), torch.tensor([0, 1, 0, 1]).to(device), 0.5
    )
    assert several.tolist() == [1, 0, 2, 3]


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


def test_a_faster_rcnn_trains_as_on_the_cpu(device):
    from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

    torch.manual_seed(0)
    # All boxes count for the losses: a sample of them would be drawn otherwise on each device.
    model = fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=3, min_size=96, max_size=96,
        box_batch_size_per_image=10**6, rpn_batch_size_per_image=10**6,
    ).train()  # fmt: skip
    images = [torch.rand(3, 80, 96), torch.rand(3, 96, 64)]
    boxes = BOXES * 2 + torch.tensor([0.0, 0, 9, 9])
    targets = [{"boxes": boxes, "labels": torch.tensor([1, 2, 1, 2])}] * 2
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

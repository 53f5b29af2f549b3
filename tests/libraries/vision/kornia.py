"""kornia: colours, blurs, edges, warps and their gradient."""

import kornia
import torch


def use(device):
    image = torch.rand(2, 3, 32, 32).to(device).requires_grad_()
    blurred = kornia.filters.gaussian_blur2d(image, (5, 5), (1.5, 1.5))
    edges = kornia.filters.sobel(blurred)
    angle = torch.tensor([20.0, -35.0]).to(device)
    turned = kornia.geometry.transform.rotate(image, angle)
    lab = kornia.color.rgb_to_lab(image)
    points = torch.tensor([[[2.0, 3.0], [28, 4], [27, 25], [3, 29]]] * 2).to(device)
    whole = torch.tensor([[[0.0, 0], [31, 0], [31, 31], [0, 31]]] * 2).to(device)
    matrix = kornia.geometry.transform.get_perspective_transform(points, whole)
    warped = kornia.geometry.transform.warp_perspective(image, matrix, (32, 32))
    likeness = kornia.metrics.ssim(image, blurred, 5)
    (edges.sum() + turned.square().sum() + warped.sum() + likeness.sum()).backward()
    return [blurred, edges, turned, lab, matrix, warped, likeness, image.grad]

"""torchvision's operators on regions of images as plain formulas, which autograd differentiates.

Images are float64 tensors of the CPU; regions are rows of an image's number, x1, y1, x2, y2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

Pixels = torch.Tensor


@dataclass(frozen=True)
class Bins:
    """How regions are cut, and which channels a bin has."""

    scale: float
    height: int
    width: int
    positional: bool = False

    def channels(self, image: Pixels, y: int, x: int) -> Pixels:
        if not self.positional:
            return image
        return image[y * self.width + x :: self.height * self.width]


def each_bin(
    images: Pixels, rois: Pixels, bins: Bins
) -> Iterator[tuple[Pixels, list[float], int, int]]:
    for roi in rois.tolist():
        for y in range(bins.height):
            for x in range(bins.width):
                yield bins.channels(images[int(roi[0])], y, x), roi[1:], y, x


def gathered(found: list[Pixels], rois: Pixels, bins: Bins) -> Pixels:
    """The results of each_bin as [regions, channels, height, width]."""
    stacked = torch.stack(found).view(len(rois), bins.height, bins.width, -1)
    return stacked.permute(0, 3, 1, 2)


def interpolated(image: Pixels, y: float, x: float) -> Pixels:
    size = image.shape[-2:]
    if not (-1 <= y <= size[0] and -1 <= x <= size[1]):
        return image[:, 0, 0] * 0
    total = image[:, 0, 0] * 0
    taps = []
    for at, length in zip((y, x), size, strict=True):
        low = min(int(max(at, 0)), length - 1)
        part = 0 if low == length - 1 else max(at, 0) - low
        taps.append([(low, 1 - part), (min(low + 1, length - 1), part)])
    for row, a in taps[0]:
        for column, b in taps[1]:
            total = total + a * b * image[:, row, column]
    return total


def align(images: Pixels, rois: Pixels, bins: Bins, ratio: int, aligned: bool) -> Pixels:
    """roi_align; ps_roi_align where the bins are positional and aligned."""
    found = []
    for image, (x1, y1, x2, y2), y, x in each_bin(images, rois, bins):
        half = 0.5 if aligned else 0.0
        start = (y1 * bins.scale - half, x1 * bins.scale - half)
        length = [y2 * bins.scale - half - start[0], x2 * bins.scale - half - start[1]]
        if not aligned:
            length = [max(one, 1.0) for one in length]
        bin = length[0] / bins.height, length[1] / bins.width
        count = [ratio if ratio > 0 else math.ceil(one) for one in bin]
        total = image[:, 0, 0] * 0
        for i in range(count[0]):
            for j in range(count[1]):
                row = start[0] + (y + (i + 0.5) / count[0]) * bin[0]
                column = start[1] + (x + (j + 0.5) / count[1]) * bin[1]
                total = total + interpolated(image, row, column)
        found.append(total / max(count[0] * count[1], 1))
    return gathered(found, rois, bins)


def pooled(images: Pixels, rois: Pixels, bins: Bins, largest: bool) -> Pixels:
    """roi_pool, or ps_roi_pool's forward pass, which leaves out the last row and column."""
    found = []
    for image, corners, y, x in each_bin(images, rois, bins):
        left, top, right, bottom = (
            math.floor(abs(c * bins.scale) + 0.5) * (-1 if c < 0 else 1) for c in corners
        )
        edges = []
        for at, first, last, count, size in ((y, top, bottom, bins.height, image.shape[1]),
                                             (x, left, right, bins.width, image.shape[2])):  # fmt: skip
            length = max(last - first + int(largest), 1) / count
            limit = size if largest else size - 1
            begin, end = math.floor(at * length) + first, math.ceil((at + 1) * length) + first
            edges.append(slice(min(max(begin, 0), limit), min(max(end, 0), limit)))
        cut = image[:, edges[0], edges[1]]
        if cut.numel() == 0:
            found.append(image[:, 0, 0] * 0)
        else:
            found.append(cut.amax((1, 2)) if largest else cut.mean((1, 2)))
    return gathered(found, rois, bins)


def kept_boxes(boxes: Pixels, scores: Pixels, threshold: float) -> list[int]:
    """nms, step by step in the boxes' dtype."""
    order = scores.sort(descending=True, stable=True).indices
    kept: list[int] = []
    for i in order.tolist():
        low = torch.maximum(boxes[kept, :2], boxes[i, :2])
        high = torch.minimum(boxes[kept, 2:], boxes[i, 2:])
        both = (high - low).clamp(min=0).prod(1)
        area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
        if not (both / (area[kept] + area[i] - both) > threshold).any():
            kept.append(i)
    return kept


def deformable(input: Pixels, weight: Pixels, offset: Pixels, mask: Pixels | None, bias: Pixels,
               stride: int, padding: int, dilation: int, groups: int, offset_groups: int) -> Pixels:  # fmt: skip
    """deform_conv2d by grid_sample, which also reads 0 beyond the edges."""
    n, _, height, width = input.shape
    rows, columns = offset.shape[2:]
    ky, kx = weight.shape[2:]
    moves = offset.view(n, offset_groups, ky * kx, 2, rows, columns)
    base_y = torch.arange(rows, dtype=input.dtype).view(-1, 1) * stride - padding
    base_x = torch.arange(columns, dtype=input.dtype).view(1, -1) * stride - padding
    patches = []
    for g in range(offset_groups):
        part = input.view(n, offset_groups, -1, height, width)[:, g]
        for k in range(ky * kx):
            y = base_y + k // kx * dilation + moves[:, g, k, 0]
            x = base_x + k % kx * dilation + moves[:, g, k, 1]
            grid = torch.stack([2 * x / (width - 1) - 1, 2 * y / (height - 1) - 1], -1)
            seen = torch.nn.functional.grid_sample(part, grid, align_corners=True)
            if mask is not None:
                seen = seen * mask.view(n, offset_groups, ky * kx, 1, rows, columns)[:, g, k]
            patches.append(seen)
    stacked = torch.stack(patches, 1).view(n, offset_groups, ky * kx, -1, rows * columns)
    flat = stacked.permute(0, 1, 3, 2, 4).reshape(n, groups, -1, rows * columns)
    products = torch.einsum(
        "gok,ngkl->ngol", weight.view(groups, weight.shape[0] // groups, -1), flat
    )
    return products.reshape(n, -1, rows, columns) + bias.view(1, -1, 1, 1)

// src/kernels/detection/deformable_patches.h: patches of images whose elements are read at
// positions that come from data.
#pragma once

#include <cstdint>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Element k of the patch at location l of an image is read at the position that a convolution would
// read, moved by an offset, between four elements of the image; beyond its edges it is 0. Channels
// are parted into groups with offsets of their own. Locations and the elements of patches are
// counted in row-major order, which is how these, all of one floating dtype, have them, contiguous:
//   columns [n, channels, patch, locations], offsets [n, groups, patch, 2, locations] (y, x), and
//   mask [n, groups, patch, locations], which the elements are multiplied with.
// images [n, channels, h, w] may have any strides. Positions and sums in float32 (float64 for
// float64). Gradients write every element and are summed in one order.
struct DeformablePatches {
  int64_t kernel[2], stride[2], padding[2], dilation[2];  // along y, x
  int64_t columns = 1;                                    // of locations
};

// mask may be null, here and below.
GRAFT_EXPORT void deformable_patches(Stream& stream, const TensorView& columns,
                                     const TensorView& images, const TensorView& offsets,
                                     const TensorView* mask, const DeformablePatches& patches);

GRAFT_EXPORT void deformable_patches_images_backward(Stream& stream, const TensorView& grad_images,
                                                     const TensorView& grad_columns,
                                                     const TensorView& offsets,
                                                     const TensorView* mask,
                                                     const DeformablePatches& patches);

// grad_mask is null where mask is.
GRAFT_EXPORT void deformable_patches_offsets_backward(
    Stream& stream, const TensorView& grad_offsets, const TensorView* grad_mask,
    const TensorView& grad_columns, const TensorView& images, const TensorView& offsets,
    const TensorView* mask, const DeformablePatches& patches);

}  // namespace graft

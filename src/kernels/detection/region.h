// src/kernels/detection/region.h: regions of images, cut into bins.
#pragma once

#include <cstdint>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Images are [n, c, h, w], bins [regions, channels, bins along y, bins along x], both with any
// strides and of the boxes' dtype: float16, float32 or float64. Sums and positions are taken in
// float32 (float64 for float64). A region's image that is none of the images is clamped and
// reported (error_record.h); in gradients the region is left out. Gradients write every element,
// and sum in the order of the regions and of their bins, so they do not depend on threads.
struct BinnedRegions {
  TensorView boxes;    // contiguous [regions, 5]: the image's number, x1, y1, x2, y2
  double scale = 1.0;  // from the boxes' numbers to elements of the images
  // A bin (y, x) of channel c reads channel (c * bins along y + y) * bins along x + x of the
  // images, not channel c.
  bool positional = false;
};

// The mean of samples of a bin, each interpolated between four elements.
struct RegionSamples {
  int64_t ratio = 0;  // samples along each axis of a bin; not above 0: about one per element
  bool half_pixel =
      false;  // elements are centred at 0.5, 1.5, ...; else regions have a size of 1 at least
};
GRAFT_EXPORT void region_align(Stream& stream, const TensorView& bins, const TensorView& images,
                               const BinnedRegions& regions, const RegionSamples& samples);
GRAFT_EXPORT void region_align_backward(Stream& stream, const TensorView& grad_images,
                                        const TensorView& grad_bins, const BinnedRegions& regions,
                                        const RegionSamples& samples);

// The largest element of a bin whose edges are rounded outwards to whole elements, 0 where it has
// none; positions (int32, contiguous, as bins) says where it is in its plane, -1 for none.
// Positions beyond the plane are left out of gradients. REQUIRES: not positional.
GRAFT_EXPORT void region_max(Stream& stream, const TensorView& bins, const TensorView& positions,
                             const TensorView& images, const BinnedRegions& regions);
GRAFT_EXPORT void region_max_backward(Stream& stream, const TensorView& grad_images,
                                      const TensorView& grad_bins, const TensorView& positions,
                                      const BinnedRegions& regions);

// The mean of the elements of such a bin. As torchvision's kernels, the forward pass leaves out the
// last row and column of an image, and gradients do not.
GRAFT_EXPORT void region_average(Stream& stream, const TensorView& bins, const TensorView& images,
                                 const BinnedRegions& regions);
GRAFT_EXPORT void region_average_backward(Stream& stream, const TensorView& grad_images,
                                          const TensorView& grad_bins,
                                          const BinnedRegions& regions);

}  // namespace graft

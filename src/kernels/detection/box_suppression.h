// src/kernels/detection/box_suppression.h: which of several boxes that overlap are kept.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// boxes: contiguous [4, n] of x1, y1, x2 and y2, float32 or float64, the best box first. kept
// (bool, contiguous [n]) is true for a box unless a kept one before it overlaps it: the area of
// their intersection is more than threshold times that of their union. Areas and the quotient are
// rounded step by step in the boxes' dtype, so that close calls go as on other devices.
GRAFT_EXPORT void suppress_boxes(Stream& stream, const TensorView& kept, const TensorView& boxes,
                                 double threshold);

}  // namespace graft

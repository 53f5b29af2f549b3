// src/kernels/training/gradient_scale.h: what automatic mixed precision does to gradients and its
// scale.
#pragma once

#include <span>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Multiplies every gradient by inverse_scale in place (not at all where that is 1), and sets
// found_inf to 1 when any element was not finite; found_inf is left alone otherwise. Gradients are
// flat views of rank 1 of floating dtypes, which may differ; the other two are one float32 each.
GRAFT_EXPORT void unscale_gradients(Stream& stream, std::span<const TensorView> gradients,
                                    const TensorView& found_inf, const TensorView& inverse_scale);

// One step of the scale. Where found_inf is not 0: scale * backoff, tracker = 0. Otherwise the
// tracker counts up, and at growth_interval starts again while the scale becomes scale * growth
// where that is finite. scale and found_inf: one float32; tracker: one int32.
GRAFT_EXPORT void update_scale(Stream& stream, const TensorView& scale, const TensorView& tracker,
                               const TensorView& found_inf, double growth, double backoff,
                               int64_t growth_interval);

}  // namespace graft

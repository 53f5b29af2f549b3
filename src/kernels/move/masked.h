// src/kernels/move/masked.h: moving elements that a mask or counts choose.
#pragma once

#include <cstdint>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Where mask (bool) is set, to's elements become source's, one after another in row-major order of
// the mask. ordinals (int64, the mask's sizes): how many mask elements are set up to each one, with
// it. source is contiguous, of to's dtype; any dtype, any strides of the others. A source that is
// too short is reported at the next synchronisation as an index out of range.
GRAFT_EXPORT void masked_scatter(Stream& stream, const TensorView& to, const TensorView& mask,
                                 const TensorView& ordinals, const TensorView& source);

// Whether two elements of the view may share memory: exact but for strides that interleave.
// REQUIRES: strides are not negative.
GRAFT_EXPORT bool overlaps_itself(const TensorView& view);

// to's elements become value where mask (bool) is set; no others are written, so that views may
// overlap themselves. Any dtype, any strides.
GRAFT_EXPORT void masked_fill(Stream& stream, const TensorView& to, const TensorView& mask,
                              const Scalar& value);

// output = 0, repeated repeats[0] times, then 1, repeats[1] times, ...: contiguous vectors of int32
// or int64; ends (int64) are the sums of repeats up to each one, with it. Reports (assertion.h)
// negative repeats, and an output of another size than the last of ends, whose end it keeps.
GRAFT_EXPORT void repeat_positions(Stream& stream, const TensorView& output,
                                   const TensorView& repeats, const TensorView& ends);

}  // namespace graft

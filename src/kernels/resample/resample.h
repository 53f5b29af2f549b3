// src/kernels/resample/resample.h: linear maps along the last dimensions of tensors, one after
// another.
#pragma once

#include <span>

#include "kernels/resample/linear_map.h"
#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// output = input mapped along its last maps.size() dimensions by maps (one per dimension, in their
// order), which say each dimension's two lengths; the other dimensions agree. Any strides; both of
// one dtype. Maps that only pick elements take any dtype. Sums: float32 (float64 for float64), also
// between the dimensions; complex numbers part by part; each element's terms in the order of its
// map, so the result does not depend on threads. Integers and bool take maps whose weights are all
// 1: sums wrap, and bool is whether any term is true. Throws UNSUPPORTED for weights on them.
GRAFT_EXPORT void resample(Stream& stream, const TensorView& output, const TensorView& input,
                           std::span<const LinearMap> maps);

// The same by the transposed maps: the gradient's way.
void resample_back(Stream& stream, const TensorView& output, const TensorView& input,
                   std::span<const LinearMap> maps);

// The same for uint8 images in whole numbers, last dimension first: each map's weights are rounded
// to the 15 bits that fit its largest one, each pass rounds to nearest and saturates at 0 and 255.
GRAFT_EXPORT void resample_bytes(Stream& stream, const TensorView& output, const TensorView& input,
                                 std::span<const LinearMap> maps);

}  // namespace graft

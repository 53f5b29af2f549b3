// src/kernels/weight_only/decoding_factor.cpp: the first factor as decoding kernels read it.
#include "kernels/weight_only/decoding_factor.h"

#include <algorithm>

#include "kernels/launch/lanes.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

// The elements of a group of the factor's integers, or 0 where it stays in floats.
int64_t integer_group(const OpenDevice& device, const TensorView& a, WordKind kind,
                      const WeightScales& scales) {
  if (!is_half(a.dtype) || !has_vectors(device)) return 0;
  const int64_t group = std::min(scales.group, most_integers(kind));
  if (kind == WordKind::kNibbles) return group == scales.group ? group : 0;
  if (a.sizes[1] % kBytesOfBlock != 0) return 0;
  return scales.groups() == 1 || scales.group % group == 0 ? group : 0;
}

}  // namespace

DecodingFactor::DecodingFactor(Stream& stream, const TensorView& a, WordKind kind,
                               const WeightScales& scales)
    : k_(a.sizes[1]), group_(integer_group(stream.device(), a, kind, scales)) {
  if (group_ > 0) {
    integers_.emplace(stream, a, kind, group_);
  } else {
    group_ = scales.group;
    numbers_.emplace(stream, a, kind, group_);
  }
}

void DecodingFactor::append(Arguments& arguments) const {
  if (integers_) return integers_->append(arguments, GRAFT_ACCESS_READ);
  numbers_->append(arguments, GRAFT_ACCESS_READ);
}

}  // namespace graft

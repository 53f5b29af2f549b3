// src/kernels/weight_only/integer_activation.h: a floating factor of half precision in integers.
#pragma once

#include "kernels/launch/workspace.h"
#include "kernels/tensor/view.h"

namespace graft {

// The factor [m, k] in int16, each group of a row in steps of 1 / 32767 of its largest magnitude:
// an element is off by half a step at most. A group whose elements are all below 1e-30 has steps of
// 1e-30 / 32767; one with an element that is infinite or NaN has the step NaN or infinity and
// zeros. Four pairs for each word of nibbles, as the low and high halves of an int32: elements 0
// and 4, 1 and 5, 2 and 6, 3 and 7. After them the sums of the groups and their steps, float32 [m,
// groups]. Lives as long as the commands of its call are queued.
class IntegerActivation {
 public:
  // REQUIRES: a floating dtype, and groups of whole words.
  IntegerActivation(Stream& stream, const TensorView& factor, int64_t group);

  graft_address address() const { return workspace_.address(); }
  uint64_t bytes() const { return bytes_; }
  graft_address sums() const { return workspace_.address() + bytes_; }
  graft_address steps() const { return sums() + group_bytes_; }
  uint64_t group_bytes() const { return group_bytes_; }  // of the sums; of the steps

 private:
  uint64_t bytes_, group_bytes_;
  Workspace workspace_;
};

// Whether int32 sums of a group hold.
constexpr bool fits_integers(int64_t group) { return group <= 4096; }

}  // namespace graft

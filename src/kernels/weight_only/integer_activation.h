// src/kernels/weight_only/integer_activation.h: a floating factor of half precision in integers.
#pragma once

#include "kernels/launch/arguments.h"
#include "kernels/launch/workspace.h"
#include "kernels/tensor/view.h"
#include "kernels/weight_only/weight.h"

namespace graft {

// The factor [m, k] in int16, each group of a row in steps of 1 / 32767 of its largest magnitude:
// an element is off by half a step at most. A group whose elements are all below 1e-30 has steps of
// 1e-30 / 32767; one with an element that is infinite or NaN has the step NaN or infinity and
// zeros. Pairs for each word of the weight, as the low and high halves of an int32:
//   kNibbles: elements 0 and 4, 1 and 5, 2 and 6, 3 and 7.
//   kBytes: elements 0 and 2 of each of 8 words, then 1 and 3 of each.
// After them, float32 [m, groups]: the sums of the groups, after rounding, and their steps. Lives
// as long as the commands of its call are queued.
class IntegerActivation {
 public:
  // REQUIRES: a floating dtype, groups of whole words, and kBytes: k and groups of whole blocks.
  // The last group of kBytes may be shorter.
  IntegerActivation(Stream& stream, const TensorView& factor, WordKind kind, int64_t group);

  // Factor, sums, steps, for access as GRAFT_ACCESS_ bits say.
  void append(Arguments& arguments, uint32_t access) const;

 private:
  int64_t groups_;
  uint64_t bytes_, group_bytes_;
  Workspace workspace_;
};

// The elements of a group whose sums hold in int32: half of 512 products of nibbles 2^4 too large,
// 2048 of bytes without sign, by 32767.
constexpr int64_t most_integers(WordKind kind) { return kind == WordKind::kNibbles ? 512 : 2048; }

}  // namespace graft

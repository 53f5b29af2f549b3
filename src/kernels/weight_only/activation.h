// src/kernels/weight_only/activation.h: the floating factor as the decoding kernels of CPU-like
// devices read it.
#pragma once

#include "kernels/launch/arguments.h"
#include "kernels/launch/workspace.h"
#include "kernels/tensor/view.h"
#include "kernels/weight_only/weight.h"

namespace graft {

// The factor [m, k] in float32, each element divided by what its integer is too large by where the
// word is only masked: 2^8 and 2^16 for the second and third byte, 2^4 to 2^24 for the second to
// seventh nibble. The last one of a word is shifted. Exact but for elements below 2^-102.
//   kNibbles: in the order of k.
//   kBytes: 32 elements a block: the first byte of each of 8 words, then the second of each, ...;
//   the last block is filled with zeros.
// After them the sums of each row's groups, [m, groups].
// Lives as long as the commands of its call are queued.
class Activation {
 public:
  // REQUIRES: a floating dtype, and groups of whole words; kBytes: of whole blocks, or one group.
  Activation(Stream& stream, const TensorView& factor, WordKind kind, int64_t group);

  int64_t depth() const { return depth_; }  // of a row, in elements
  // Factor and sums. access: GRAFT_ACCESS_ bits.
  void append(Arguments& arguments, uint32_t access) const;

 private:
  int64_t depth_;
  uint64_t bytes_, sum_bytes_;
  Workspace workspace_;
};

}  // namespace graft

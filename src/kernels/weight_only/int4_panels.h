// src/kernels/weight_only/int4_panels.h: kernels that take a few rows times a weight of 4 bits.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "codegen/ir/builder.h"
#include "kernels/launch/lanes.h"
#include "kernels/weight_only/weight.h"
#include "runtime/driver/dtype.h"

namespace graft {

// How the scales and zeros of neighbouring rows lie.
enum class ScaleLayout {
  kSymmetric,     // dense scales, no zeros
  kDense,         // both dense
  kPairs,         // a scale, its zero, the next scale, ...
  kBfloat16Pairs  // the same: a word has both
};

struct Int4Decoding {
  graft_dtype output, scales;
  graft_dtype factor;  // of the first factor as the kernel reads it; int16: IntegerActivation
  ScaleLayout layout;
  int64_t rows;

  bool adds_integers() const { return factor == GRAFT_INT16; }

  // Sums have to stay in 16 vector registers, with the masks and the numbers that they meet.
  int64_t panels() const { return rows <= 2 ? 4 / rows : 1; }

  std::string key(WorkMapping deal) const {
    static const char* const kNames[] = {"symmetric_", "dense_", "pairs_", "words_"};
    return "weight_only_int4_" + std::to_string(rows) + "_" + kNames[static_cast<int>(layout)] +
           name_of(output) + "_" + name_of(factor) + "_" + name_of(scales) + suffix_of(deal);
  }
};

// A row's scale in a group and what is added to each of its numbers.
struct Int4ScaleReader {
  const ScaleLayout layout;
  ir::Address scales, zeros;
  ir::Value group_stride, zero_group_stride;

  Int4ScaleReader(ir::Builder& b, const Int4Decoding& kernel)
      : layout(kernel.layout),
        scales(b.read(layout == ScaleLayout::kBfloat16Pairs ? GRAFT_INT32 : kernel.scales)),
        zeros(has_zeros() ? b.read(kernel.scales) : scales) {
    group_stride = b.index();
    if (has_zeros()) zero_group_stride = b.index();
  }
  bool has_zeros() const { return layout == ScaleLayout::kDense || layout == ScaleLayout::kPairs; }

  // {scale, shift}: a number is integer * scale + shift.
  std::pair<ir::Value, ir::Value> load(ir::Value group, ir::Value row) const;
};

// The kernel of CPU-like devices: a work-item sums panels of kWords rows of the weight. Arguments:
// output, words, factor, the sums of its groups, (adds_integers: the steps of its groups,) scales,
// zeros, their strides; then the split, panels, depth, groups, words of a group, strides of output.
ir::Kernel write_int4_panels(const Int4Decoding& kernel);

}  // namespace graft

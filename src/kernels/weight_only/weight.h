// src/kernels/weight_only/weight.h: a weight of small integers and what they mean.
#pragma once

#include "kernels/tensor/view.h"

namespace graft {

// The scales and zero points of a weight [n, k]: one of each for every group of `group` consecutive
// integers of a row. Floating scales [k / group, n], any strides; zeros the same, of any real
// dtype, or null.
struct WeightScales {
  TensorView scales;
  const TensorView* zeros = nullptr;
  int64_t group = 0;

  int64_t groups() const { return scales.sizes[0]; }
};

// What a word of 32 bits of the weight holds, and how many of them.
enum class WordKind { kBytes, kNibbles };
inline constexpr int64_t kBytesOfWord = 4;
inline constexpr int64_t kNibblesOfWord = 8;

// Words that a step of the kernels of CPU-like devices takes at once, and their bytes.
inline constexpr int64_t kWords = 8;
inline constexpr int64_t kBytesOfBlock = kWords * kBytesOfWord;

// What is added to an int8 so that no byte of a word has a sign, and what a 4-bit integer means
// without zero point: q - 8.
inline constexpr int64_t kByteBias = 128;
inline constexpr int64_t kNibbleBias = 8;

// Most rows that a decoding kernel takes at once.
inline constexpr int64_t kMostRows = 8;

}  // namespace graft

// src/kernels/launch/accumulators.h: sums that a kernel of CPU-like devices takes side by side.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/ir/builder.h"

namespace graft {

// count arrays of float32, each of so many lanes, which are 0 at first.
inline std::vector<ir::Lanes> zero_lanes(ir::Builder& builder, int64_t count, int64_t lanes) {
  std::vector<ir::Lanes> made;
  for (int64_t i = 0; i < count; ++i) {
    made.emplace_back(builder, ir::Type::kF32, static_cast<uint32_t>(lanes));
    builder.vector_loop(builder.i64(0), builder.i64(lanes),
                        [&](ir::Value lane) { made.back().store(lane, builder.f32(0)); });
  }
  return made;
}

// The sum of all lanes, by halves; they hold other numbers then. REQUIRES: a power of two of them.
inline ir::Value sum_of_lanes(ir::Builder& builder, const ir::Lanes& lanes) {
  constexpr int64_t kLeast = 4;  // of vectors
  int64_t half = lanes.count() / 2;
  for (; half >= kLeast; half /= 2) {
    builder.vector_loop(builder.i64(0), builder.i64(half), [&](ir::Value lane) {
      lanes.store(lane, lanes.load(lane) + lanes.load(lane + half));
    });
  }
  std::vector<ir::Value> parts;
  for (int64_t i = 0; i < 2 * half; ++i) parts.push_back(lanes.load(builder.i64(i)));
  for (; half > 0; half /= 2) {
    for (size_t i = 0; i < static_cast<size_t>(half); ++i) {
      parts[i] = parts[i] + parts[i + static_cast<size_t>(half)];
    }
  }
  return parts[0];
}

// A number, or its 32 bits, in each of eight int32.
inline ir::Value in_all(ir::Builder& builder, int64_t number) {
  return splat(ir::Type::kI32x8, builder.constant(ir::Type::kI32, static_cast<int32_t>(number)));
}

// count sums of eight int32 each, for pair_dot(), which are 0 at first.
inline std::vector<ir::Variable> zero_pairs(ir::Builder& builder, int64_t count) {
  const ir::Value zero = in_all(builder, 0);
  std::vector<ir::Variable> made;
  for (int64_t i = 0; i < count; ++i) made.emplace_back(zero);
  return made;
}

// What such sums hold.
inline std::vector<ir::Lanes> lanes_of(ir::Builder& builder,
                                       const std::vector<ir::Variable>& sums) {
  std::vector<ir::Lanes> lanes;
  for (const ir::Variable& sum : sums) {
    lanes.emplace_back(builder, ir::Type::kI32, 8u);
    lanes.back().store(builder.i64(0), sum.get());
  }
  return lanes;
}

}  // namespace graft

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

}  // namespace graft

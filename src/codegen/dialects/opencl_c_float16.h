// src/codegen/dialects/opencl_c_float16.h: tiles of float16 by OpenCL's own vector conversions.
#pragma once

#include <string_view>

#include "codegen/print/tile.h"

namespace graft::ir {

// These are of OpenCL's core: they need no cl_khr_fp16. The forms for one element are left alone,
// PoCL's take 0.7 ns an element. PoCL 3.1 takes the memory that vload_half8 and vstore_half8 are
// given for aligned, which OpenCL does not ask for: halves that lie otherwise pass through a vector
// of their own, which is slower.
inline constexpr std::string_view kOpenclFloat16Tiles = R"(
static void graft_f32s_from_float16(f32* to, const __global u16* from) {
  if (((ulong)from & 15) == 0) {
_Pragma("unroll")
    for (i64 i = 0; i < 32; i += 8) vstore8(vload_half8(0, (const __global half*)(from + i)), 0, to + i);
    return;
  }
_Pragma("unroll")
  for (i64 i = 0; i < 32; i += 8) {
    const ushort8 halves = vload8(0, from + i);
    vstore8(vload_half8(0, (const half*)&halves), 0, to + i);
  }
}
static void graft_float16s_from_f32(__global u16* to, const f32* from) {
  if (((ulong)to & 15) == 0) {
_Pragma("unroll")
    for (i64 i = 0; i < 32; i += 8) vstore_half8_rte(vload8(0, from + i), 0, (__global half*)(to + i));
    return;
  }
_Pragma("unroll")
  for (i64 i = 0; i < 32; i += 8) {
    ushort8 halves;
    vstore_half8_rte(vload8(0, from + i), 0, (half*)&halves);
    vstore8(halves, 0, to + i);
  }
}
)";
static_assert(kTileElements == 32, "written out in the program above");

}  // namespace graft::ir

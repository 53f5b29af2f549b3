// src/codegen/dialects/host_c_float16.h: tiles of float16 by x86's own instructions.
#pragma once

#include <string_view>

#include "codegen/print/tile.h"

namespace graft::ir {

// gcc 12 has no vector form of float16 but in the builtins below. Where they are missing, the loops
// call the functions that convert one element, which the compiler turns into integer vectors.
inline constexpr std::string_view kFloat16Tiles = R"(
#if defined(__F16C__) && !defined(__clang__) && defined(__AVX512F__)
#define GRAFT_HALVES 16
#define GRAFT_WIDEN(v) __builtin_ia32_vcvtph2ps512_mask(v, (graft_f32s){0}, (u16)-1, 4)
#define GRAFT_NARROW(v) __builtin_ia32_vcvtps2ph512_mask(v, 0, (graft_halves){0}, (u16)-1)
#elif defined(__F16C__) && !defined(__clang__)
#define GRAFT_HALVES 8
#define GRAFT_WIDEN(v) __builtin_ia32_vcvtph2ps256(v)
#define GRAFT_NARROW(v) __builtin_ia32_vcvtps2ph256(v, 0)
#else
#define GRAFT_HALVES 1
#endif
#if GRAFT_HALVES > 1
typedef f32 graft_f32s __attribute__((vector_size(4 * GRAFT_HALVES)));
typedef i16 graft_halves __attribute__((vector_size(2 * GRAFT_HALVES)));
#else
typedef f32 graft_f32s;
typedef u16 graft_halves;
#define GRAFT_WIDEN(v) graft_f32_from_float16(v)
#define GRAFT_NARROW(v) graft_float16_from_f32(v)
#endif
static inline __attribute__((always_inline)) void graft_f32s_from_float16(f32* to, const u16* from) {
  for (i64 i = 0; i < 32; i += GRAFT_HALVES) {
    graft_halves half;
    __builtin_memcpy(&half, from + i, sizeof half);
    const graft_f32s wide = GRAFT_WIDEN(half);
    __builtin_memcpy(to + i, &wide, sizeof wide);
  }
}
static inline __attribute__((always_inline)) void graft_float16s_from_f32(u16* to, const f32* from) {
  for (i64 i = 0; i < 32; i += GRAFT_HALVES) {
    graft_f32s wide;
    __builtin_memcpy(&wide, from + i, sizeof wide);
    const graft_halves half = GRAFT_NARROW(wide);
    __builtin_memcpy(to + i, &half, sizeof half);
  }
}
)";
static_assert(kTileElements == 32, "written out in the program above");

}  // namespace graft::ir

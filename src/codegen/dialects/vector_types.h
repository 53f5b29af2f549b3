// src/codegen/dialects/vector_types.h: how the dialects of CPUs spell the vectors of ir.h.
#pragma once

#include <string_view>

namespace graft::ir {

// By what GNU C and OpenCL C share.
#define GRAFT_PLAIN_PAIR_DOT               \
  "#define graft_pair_dot_i32x8(a, b, c) " \
  "(((a) << 16 >> 16) * ((b) << 16 >> 16) + ((a) >> 16) * ((b) >> 16) + (c))\n"

// GNU C. x - 0 keeps every value, -0 too.
inline constexpr std::string_view kHostVectors =
    R"(typedef f32 f32x4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef f32 f32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef f32 f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef i32 i32x8 __attribute__((vector_size(32), aligned(4), may_alias));
#define graft_splat_f32x4(x) ((x) - (f32x4){})
#define graft_splat_f32x8(x) ((x) - (f32x8){})
#define graft_splat_f32x16(x) ((x) - (f32x16){})
#define graft_splat_i32x8(x) ((x) - (i32x8){})
#define graft_load_f32x4(p) (*(const f32x4*)(p))
#define graft_load_f32x8(p) (*(const f32x8*)(p))
#define graft_load_f32x16(p) (*(const f32x16*)(p))
#define graft_load_i32x8(p) (*(const i32x8*)(p))
#define graft_store_f32x4(p, v) (*(f32x4*)(p) = (v))
#define graft_store_f32x8(p, v) (*(f32x8*)(p) = (v))
#define graft_store_f32x16(p, v) (*(f32x16*)(p) = (v))
#define graft_store_i32x8(p, v) (*(i32x8*)(p) = (v))
#ifdef __AVX2__
typedef i16 graft_i16x16 __attribute__((vector_size(32)));
#define graft_pair_dot_i32x8(a, b, c) \
  ((i32x8)__builtin_ia32_pmaddwd256((graft_i16x16)(a), (graft_i16x16)(b)) + (c))
#else
)" GRAFT_PLAIN_PAIR_DOT R"(#endif
)";

inline constexpr std::string_view kOpenclVectors = R"(typedef float4 f32x4;
typedef float8 f32x8;
typedef float16 f32x16;
typedef int8 i32x8;
#define graft_splat_f32x4(x) ((f32x4)(x))
#define graft_splat_f32x8(x) ((f32x8)(x))
#define graft_splat_f32x16(x) ((f32x16)(x))
#define graft_splat_i32x8(x) ((i32x8)(x))
#define graft_load_f32x4(p) vload4(0, p)
#define graft_load_f32x8(p) vload8(0, p)
#define graft_load_f32x16(p) vload16(0, p)
#define graft_load_i32x8(p) vload8(0, p)
#define graft_store_f32x4(p, v) vstore4(v, 0, p)
#define graft_store_f32x8(p, v) vstore8(v, 0, p)
#define graft_store_f32x16(p, v) vstore16(v, 0, p)
#define graft_store_i32x8(p, v) vstore8(v, 0, p)
)" GRAFT_PLAIN_PAIR_DOT;

#undef GRAFT_PLAIN_PAIR_DOT

}  // namespace graft::ir

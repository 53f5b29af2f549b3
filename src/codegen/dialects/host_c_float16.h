// src/codegen/dialects/host_c_float16.h: x86's instruction that rounds float32 to float16.
#pragma once

#include <string>

namespace graft::ir {

// The function graft_float16_from_f32 for CPUs with F16C, else the definition given. gcc 12 has no
// vector form of the instruction; it calls the variant of a simd function by its name in the x86
// Vector Function ABI (Intel, 2015, 2.6), written here by hand. A program is several files: each
// may hold it, one is linked.
inline std::string with_float16_instruction(const std::string& definition) {
  return R"(
#if defined(__F16C__) && !defined(__clang__) && __GNUC__ >= 12
#define GRAFT_ONCE __attribute__((visibility("hidden"), weak, const))
typedef f32 graft_f32x4 __attribute__((vector_size(16)));
#ifdef __AVX512F__
typedef f32 graft_f32s __attribute__((vector_size(64)));
typedef i16 graft_i16s __attribute__((vector_size(64)));
typedef i16 graft_i16s_half __attribute__((vector_size(32)));
#define GRAFT_ROUND(v) __builtin_ia32_vcvtps2ph512_mask(v, 0, (graft_i16s_half){0}, (u16)-1)
#define GRAFT_ORDER 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, \
  16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
#define GRAFT_VARIANT "_ZGVeN32v_"
#pragma omp declare simd notinbranch simdlen(32)
#else
typedef f32 graft_f32s __attribute__((vector_size(32)));
typedef i16 graft_i16s __attribute__((vector_size(32)));
typedef i16 graft_i16s_half __attribute__((vector_size(16)));
#define GRAFT_ROUND(v) __builtin_ia32_vcvtps2ph256(v, 0)
#define GRAFT_ORDER 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
#define GRAFT_VARIANT "_ZGVdN16v_"
#pragma omp declare simd notinbranch simdlen(16)
#endif
GRAFT_ONCE u16 graft_float16_from_f32(f32 value);
GRAFT_ONCE u16 graft_float16_one(f32 value) __asm__("graft_float16_from_f32");
u16 graft_float16_one(f32 value) {
  return (u16)__builtin_ia32_vcvtps2ph((graft_f32x4){value}, 0)[0];
}
GRAFT_ONCE graft_i16s graft_float16s(graft_f32s a, graft_f32s b)
    __asm__(GRAFT_VARIANT "graft_float16_from_f32");
graft_i16s graft_float16s(graft_f32s a, graft_f32s b) {
  return __builtin_shufflevector(GRAFT_ROUND(a), GRAFT_ROUND(b), GRAFT_ORDER);
}
#else
)" + definition +
         "#endif\n";
}

}  // namespace graft::ir

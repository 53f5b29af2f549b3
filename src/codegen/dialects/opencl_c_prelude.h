// src/codegen/dialects/opencl_c_prelude.h: what every program in OpenCL C begins with.
#pragma once

#include <string_view>

namespace graft::ir {

// float64 exists where the device has it. Address parameters come in two forms, which the driver
// chooses: a pointer, or with -DGRAFT_MEMORY_OFFSETS=1 the pointer of a whole allocation and an
// offset in bytes, because cl_mem has no address inside it. Compilers that are clang (PoCL's,
// Intel's, AMD's) are told that the iterations of a vector loop are independent, and that a product
// and a sum may become one instruction, as they may on the host.
//
// On x86-64 such a compiler reads constants under a mask. Where every lane is masked off, the page
// of the constants is never brought in, and each of these loads waits for a fault that nobody is
// told of (17 ns an element instead of 0.1). So each kernel reads one byte of its constants.
inline constexpr std::string_view kOpenclPrelude = R"opencl(typedef char i8;
typedef uchar u8;
typedef short i16;
typedef ushort u16;
typedef int i32;
typedef uint u32;
typedef long i64;
typedef ulong u64;
typedef float f32;
#if defined(cl_khr_fp64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#if defined(cl_khr_fp64) || defined(__opencl_c_fp64)
typedef double f64;
#endif
#define graft_sub_group_place get_sub_group_local_id()
#define graft_sub_group_index get_sub_group_id()
#define graft_sub_group_size get_sub_group_size()
#if defined(cl_khr_subgroup_shuffle)
#define graft_shuffle sub_group_shuffle_xor
#elif defined(cl_intel_subgroups)
#define graft_shuffle intel_sub_group_shuffle_xor
#endif
#if defined(cl_khr_subgroups)
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#endif
#if defined(GRAFT_MEMORY_OFFSETS)
#define GRAFT_ADDRESS(type, n) __global type* b##n, ulong o##n
#define GRAFT_BIND(type, n) \
  __global type* const p##n = (__global type*)((__global char*)b##n + o##n);
#else
#define GRAFT_ADDRESS(type, n) __global type* p##n
#define GRAFT_BIND(type, n)
#endif
#if defined(__clang__)
#pragma clang fp contract(fast)
#define GRAFT_PRAGMA(text) _Pragma(#text)
#define GRAFT_VECTOR_LOOP(n) GRAFT_PRAGMA(clang loop vectorize(assume_safety) interleave_count(n))
#else
#define GRAFT_VECTOR_LOOP(n)
#endif
#if defined(__clang__) && defined(__x86_64__)
__constant const volatile uchar graft_constants = 1;
#define GRAFT_TOUCH (void)graft_constants;
#else
#define GRAFT_TOUCH
#endif
)opencl";

}  // namespace graft::ir

// src/codegen/dialects/opencl_c_prelude.h: what every program in OpenCL C begins with.
#pragma once

#include <string_view>

namespace graft::ir {

// float64 exists where the device has it. Address parameters come in two forms, which the driver
// chooses: a pointer, or with -DGRAFT_MEMORY_OFFSETS=1 the pointer of a whole allocation and an
// offset in bytes, because cl_mem has no address inside it. Compilers that are clang (PoCL's,
// Intel's, AMD's) are told that the iterations of a vector loop are independent, and that a product
// and a sum may become one instruction, as they may on the host.
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
#define GRAFT_VECTOR_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define GRAFT_VECTOR_LOOP
#endif
)opencl";

}  // namespace graft::ir

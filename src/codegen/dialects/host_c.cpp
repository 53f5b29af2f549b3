// src/codegen/dialects/host_c.cpp: GNU C for the CPU, kernels as driver.h's dialect "c" has them.
#include "codegen/dialects/host_c_division.h"
#include "codegen/dialects/host_c_float16.h"
#include "codegen/dialects/host_c_rounding.h"
#include "codegen/dialects/vector_types.h"
#include "codegen/print/dialect.h"
#include "codegen/print/printer.h"

namespace graft::ir {
namespace {

class HostC final : public Dialect {
 public:
  HostC() : Dialect("c", Family::kCpuLike) {}

  std::string_view head() const override {
    return R"(typedef _Bool bool; typedef __INT8_TYPE__ i8; typedef __INT16_TYPE__ i16; typedef __INT32_TYPE__ i32;
typedef __UINT8_TYPE__ u8; typedef __UINT16_TYPE__ u16; typedef __UINT32_TYPE__ u32;
typedef __INT64_TYPE__ i64; typedef __UINT64_TYPE__ u64; typedef float f32; typedef double f64;
typedef union { void* address; u64 bits; } graft_kernel_argument;
#ifndef __FMA__
#define __builtin_fmaf(a, b, c) ((f32)((f64)(a) * (b) + (c)))
#endif
#define graft_lgamma(a) ({ f64 lgamma_r(f64, int*); int sign; lgamma_r(a, &sign); })
)";
  }

  std::string_view function_qualifier() const override {
    return "static inline __attribute__((always_inline)) ";
  }

  std::string open_kernel(const Kernel& kernel) const override {
    std::string text(rounds_through_f32(kernel) ? kKeepsRounding : ""), name = kernel.name;
    text += "void " + name + "(const graft_kernel_argument* arguments, u64 begin, u64 end) {\n";
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      const Parameter& parameter = kernel.parameters[i];
      const std::string p = "p" + std::to_string(i), from = "arguments[" + std::to_string(i) + "].";
      const std::string stored = storage_type(parameter.dtype);
      if (parameter.is_address) {
        text += "  " + stored + "* const " + p + " = (" + stored + "*)" + from + "address;\n";
        continue;
      }
      text += "  " + stored + " " + p + "_bits;\n  __builtin_memcpy(&" + p + "_bits, &" + from +
              "bits, sizeof " + p + "_bits);\n  const " + name_of(compute_type(parameter.dtype)) +
              " " + p + " = " + loaded(parameter.dtype, p + "_bits") + ";\n";
    }
    return text + "  for (i64 item = begin; item < (i64)end; ++item) {\n";
  }
  std::string_view close_kernel() const override { return "  }\n}\n"; }
  std::string vector_loop(int64_t, size_t) const override { return "#pragma omp simd\n"; }
  std::string vector_maximum(const std::string& variable) const override {
    return "#pragma omp simd reduction(max : " + variable + ")\n";
  }
  // float64's; it reduces angles as Payne and Hanek do (SIGNUM Newsletter 18, 1983).
  std::string far_math(Math function) const override {
    return std::string("__builtin_") + name_of(function);
  }

  // float64 and the rare functions are libm's (lgamma_r: lgamma writes a global); others math.h's.
  std::string math(Math function, Type type) const override {
    if (function == Math::k_digamma || function >= Math::k_zeta) return "";
    if (function >= Math::k_exp && type == Type::kF32) return "";
    std::string name = function == Math::k_round ? "rint" : name_of(function);
    if (function == Math::k_abs) name = "fabs";
    const char* prefix = function == Math::k_lgamma ? "graft_" : "__builtin_";
    return prefix + name + (type == Type::kF32 ? "f" : "");
  }

  std::string_view prefetch() const override { return "__builtin_prefetch"; }
  std::string_view invariant_division() const override { return kInvariantDivision; }
  std::string_view tile_functions(graft_dtype dtype) const override {
    return dtype == GRAFT_FLOAT16 ? kFloat16Tiles : "";
  }
  std::string_view vectors() const override { return kHostVectors; }
};

const HostC host_c;

}  // namespace
}  // namespace graft::ir

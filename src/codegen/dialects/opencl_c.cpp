// src/codegen/dialects/opencl_c.cpp: OpenCL C 1.2, as driver.h's dialect "opencl-c".
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "codegen/dialects/gpu_like.h"
#include "codegen/dialects/opencl_c_float16.h"
#include "codegen/dialects/opencl_c_prelude.h"
#include "codegen/dialects/private_arrays.h"
#include "codegen/dialects/vector_types.h"

namespace graft::ir {
namespace {

// What the language calls a type in as_<type>().
const char* own_name(Type type) {
  static constexpr const char* names[] = {"void", "bool", "char", "uchar", "short", "ushort",
                                          "int",  "uint", "long", "ulong", "float", "double"};
  static_assert(static_cast<int>(Type::kF64) == 11);
  return names[static_cast<int>(type)];
}

// CPUs run kernels of both families (a work-item that takes a whole tile has vector loops inside):
// which one a kernel is of follows the device's class, not the dialect.
class OpenclC final : public GpuLike {
 public:
  OpenclC() : GpuLike("opencl-c") {}

  std::string_view head() const override { return kOpenclPrelude; }
  std::string_view vectors() const override { return kOpenclVectors; }
  std::string_view tile_functions(graft_dtype dtype) const override {
    return dtype == GRAFT_FLOAT16 ? kOpenclFloat16Tiles : "";
  }
  std::string_view function_qualifier() const override { return "static "; }
  // PoCL unrolls and interleaves no loop that does not ask for it. A loop of few iterations is one
  // step of vectors of 8, after which its arrays are registers.
  std::string vector_loop(int64_t trips, size_t instructions) const override {
    const int64_t most = instructions <= 48 ? 4 : instructions <= 128 ? 2 : 1;
    const int64_t vectors = trips == 0 ? most : std::clamp<int64_t>(trips / 8, 1, 8);
    return fmt::format("GRAFT_VECTOR_LOOP({})\n", std::bit_floor(static_cast<uint64_t>(vectors)));
  }
  std::string vector_maximum(const std::string&) const override { return vector_loop(0, 0); }

  std::string open_kernel(const Kernel& kernel) const override {
    std::string text = GpuLike::open_kernel(kernel) + "  GRAFT_TOUCH\n";
    if (private_bytes(kernel) <= kSharedStack) return text;
    return text.replace(text.find("void"), 0, "__attribute__((reqd_work_group_size(1, 1, 1))) ");
  }

  std::string bitcast(Type to, Type, const std::string& value) const override {
    return std::string("as_") + own_name(to) + "(" + value + ")";
  }

  // The least that OpenCL allows of CL_DEVICE_MAX_PARAMETER_SIZE, and what many devices say.
  int parameter_bytes() const override { return 1024; }
  std::string_view barrier() const override { return "barrier(CLK_LOCAL_MEM_FENCE);"; }
  std::string_view local_item() const override { return "get_local_id(0)"; }
  std::string_view local_memory() const override { return "__local "; }
  std::string_view address_space() const override { return "__global "; }

 protected:
  bool rounds_up() const override { return false; }
  std::string_view kernel_qualifier() const override { return "__kernel "; }
  std::string_view grid_item() const override { return "get_global_id(0)"; }
  std::string parameter(const std::string& type, size_t i) const override {
    return "GRAFT_ADDRESS(" + type + ", " + std::to_string(i) + ")";
  }
  std::string bound(const std::string& type, size_t i) const override {
    return "  GRAFT_BIND(" + type + ", " + std::to_string(i) + ")\n";
  }
};

const OpenclC opencl_c;

}  // namespace
}  // namespace graft::ir

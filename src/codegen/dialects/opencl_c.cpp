// src/codegen/dialects/opencl_c.cpp: OpenCL C 1.2, as driver.h's dialect "opencl-c".
#include "codegen/dialects/gpu_like.h"

namespace graft::ir {
namespace {

class OpenclC final : public GpuLike {
 public:
  OpenclC() : GpuLike("opencl-c") {}

  std::string_view head() const override {
    return R"(typedef char i8;
typedef uchar u8;
typedef short i16;
typedef ushort u16;
typedef int i32;
typedef uint u32;
typedef long i64;
typedef ulong u64;
typedef float f32;
#ifdef cl_khr_fp64
typedef double f64;
#endif
)";
  }

  std::string_view function_qualifier() const override { return "static "; }

  std::string bitcast(Type to, Type from, const std::string& value) const override {
    return std::string("((union { ") + name_of(from) + " from; " + name_of(to) + " to; }){" +
           value + "}).to";
  }

  std::string_view barrier() const override { return "barrier(CLK_LOCAL_MEM_FENCE);"; }
  std::string_view local_item() const override { return "get_local_id(0)"; }
  std::string_view local_memory() const override { return "__local "; }

 protected:
  std::string_view kernel_qualifier() const override { return "__kernel "; }
  std::string_view address_space() const override { return "__global "; }
  std::string_view grid_item() const override { return "get_global_id(0)"; }
};

const OpenclC opencl_c;

}  // namespace
}  // namespace graft::ir

// src/codegen/dialects/cuda_c.cpp: CUDA C++, as driver.h's dialect "cuda-c".
#include "codegen/dialects/gpu_like.h"

namespace graft::ir {
namespace {

class CudaC final : public GpuLike {
 public:
  CudaC() : GpuLike("cuda-c") {}

  std::string_view head() const override {
    return R"(typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
template <class To, class From>
static __device__ __forceinline__ To graft_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "");
  union { From from; To to; } bits = {from};
  return bits.to;
}
#define graft_sub_group_place (threadIdx.x % 32)
#define graft_sub_group_index (threadIdx.x / 32)
#define graft_sub_group_size 32
#define graft_shuffle(value, mask) __shfl_xor_sync(0xffffffffu, value, mask)
)";
  }

  std::string_view function_qualifier() const override {
    return "static __device__ __forceinline__ ";
  }

  std::string bitcast(Type to, Type, const std::string& value) const override {
    return std::string("graft_bits<") + name_of(to) + ">(" + value + ")";
  }

  std::string_view barrier() const override { return "__syncthreads();"; }
  std::string_view local_item() const override { return "threadIdx.x"; }
  std::string_view local_memory() const override { return "__shared__ "; }

 protected:
  std::string_view kernel_qualifier() const override { return "extern \"C\" __global__ "; }
  std::string_view grid_item() const override {
    return "(i64)blockIdx.x * blockDim.x + threadIdx.x";
  }
};

const CudaC cuda_c;

}  // namespace
}  // namespace graft::ir

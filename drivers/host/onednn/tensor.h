// drivers/host/onednn/tensor.h: Graft's tensors and epilogues in oneDNN's words.
#ifndef GRAFT_DRIVERS_HOST_ONEDNN_TENSOR_H_
#define GRAFT_DRIVERS_HOST_ONEDNN_TENSOR_H_

#include <optional>
#include <span>

#include "plan.h"

namespace graft::host {

dnnl::memory::data_type data_type(uint32_t dtype);
dnnl::memory::dims sizes(const graft_tensor& tensor);
dnnl::memory::dims strides(const graft_tensor& tensor);

// Throws Unsupported if a factor holds bytes and this processor multiplies them inexactly: without
// VNNI oneDNN adds pairs of their products in 16 bits, where they saturate.
void check_bytes(const graft_tensor& a, const graft_tensor& b);

// The tensor as it lies in memory.
dnnl::memory::desc laid_out(const graft_tensor& tensor);
// The tensor in row-major order, for a copy of it.
dnnl::memory::desc dense(const graft_tensor& tensor);

// Epilogues as attributes of a primitive, and what it needs beside them.
struct Epilogues {
  dnnl::primitive_attr attributes;         // with the scratchpad in the caller's hands
  std::optional<dnnl::memory::desc> bias;  // the first epilogue, as the primitive's own argument
  std::optional<uint32_t> sum;             // the ADD whose operand must lie in the result before
  struct Binary {
    int argument;      // of the primitive
    uint32_t operand;  // its index
    dnnl::memory::desc desc;
  };
  std::vector<Binary> binaries;
  std::vector<int> zeros;  // arguments of the primitive that are LibraryPlan::zero()
};

// What a primitive writes, as epilogues see it.
struct ResultShape {
  uint32_t channel;           // the dimension that a vector runs over
  uint32_t bias_rank = 0;     // of the bias that the primitive takes itself, 0 for none
  bool reads_addend = false;  // laid out as the operand of an ADD, which is then read where it lies
  bool takes_zeros = false;   // for a faster relu
};

// result: the tensor that they change.
Epilogues translate(std::span<const graft_epilogue> epilogues, const graft_tensor& result,
                    const ResultShape& shape, uint32_t math_mode);

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_ONEDNN_TENSOR_H_

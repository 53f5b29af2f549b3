// drivers/host/onednn/tensor.cpp: Graft's tensors and epilogues in oneDNN's words.
#include "tensor.h"

#include <limits>

namespace graft::host {
namespace {

using dnnl::memory;

// A vector along one dimension of a tensor that is broadcast over the others.
memory::desc vector_of(int64_t count, uint32_t dimension, uint32_t dtype, uint32_t rank) {
  memory::dims dims(rank, 1), steps(rank, 1);
  dims[dimension] = count;
  for (uint32_t i = 0; i < dimension; ++i) steps[i] = count;
  return memory::desc(dims, data_type(dtype), steps);
}

void append_activation(dnnl::post_ops& chain, uint32_t kind) {
  switch (kind) {
    case GRAFT_EPILOGUE_RELU:
      // oneDNN's own relu is max(x, 0), which makes 0 of NaN. This is x times 0 or 1, which makes
      // NaN of -inf instead.
      chain.append_eltwise(dnnl::algorithm::eltwise_hardswish, std::numeric_limits<float>::max(),
                           0.0f);
      return;
    case GRAFT_EPILOGUE_GELU:
      chain.append_eltwise(dnnl::algorithm::eltwise_gelu_erf, 0.0f, 0.0f);
      return;
    case GRAFT_EPILOGUE_GELU_TANH:
      chain.append_eltwise(dnnl::algorithm::eltwise_gelu_tanh, 0.0f, 0.0f);
      return;
    case GRAFT_EPILOGUE_SILU:
      chain.append_eltwise(dnnl::algorithm::eltwise_swish, 1.0f, 0.0f);
      return;
    default:
      throw Unsupported{"this list of epilogues"};
  }
}

}  // namespace

memory::data_type data_type(uint32_t dtype) {
  switch (dtype) {
    case GRAFT_FLOAT32:
      return memory::data_type::f32;
    case GRAFT_BFLOAT16:
      return memory::data_type::bf16;
    case GRAFT_FLOAT16:
      return memory::data_type::f16;
    case GRAFT_INT32:
      return memory::data_type::s32;
    case GRAFT_INT8:
      return memory::data_type::s8;
    case GRAFT_UINT8:
      return memory::data_type::u8;
    default:
      throw Unsupported{"oneDNN has no such element type"};
  }
}

memory::dims sizes(const graft_tensor& tensor) {
  if (tensor.rank > GRAFT_MAX_RANK) throw Unsupported{"more dimensions than the ABI has"};
  memory::dims result(tensor.sizes, tensor.sizes + tensor.rank);
  for (auto size : result) {
    if (size <= 0) throw Unsupported{"an empty tensor"};
  }
  return result;
}

memory::dims strides(const graft_tensor& tensor) {
  return {tensor.strides, tensor.strides + tensor.rank};
}

memory::desc laid_out(const graft_tensor& tensor) {
  return memory::desc(sizes(tensor), data_type(tensor.dtype), strides(tensor));
}

memory::desc dense(const graft_tensor& tensor) {
  memory::dims dims = sizes(tensor), steps(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) steps[i - 1] = steps[i] * dims[i];
  return memory::desc(dims, data_type(tensor.dtype), steps);
}

Epilogues translate(std::span<const graft_epilogue> epilogues, const graft_tensor& result,
                    uint32_t channel, uint32_t bias_rank, uint32_t math_mode) {
  Epilogues translated;
  dnnl::post_ops chain;
  for (uint32_t i = 0; i < epilogues.size(); ++i) {
    const graft_epilogue& epilogue = epilogues[i];
    float value = float(epilogue.value);
    if (epilogue.kind == GRAFT_EPILOGUE_SCALE) {
      chain.append_eltwise(dnnl::algorithm::eltwise_linear, value, 0.0f);
    } else if (epilogue.kind == GRAFT_EPILOGUE_BIAS && i == 0 && bias_rank != 0) {
      uint32_t dimension = bias_rank == 1 ? 0 : channel;
      translated.bias = vector_of(result.sizes[channel], dimension, epilogue.dtype, bias_rank);
    } else if (epilogue.kind == GRAFT_EPILOGUE_BIAS) {
      int argument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(chain.len()) | DNNL_ARG_SRC_1;
      memory::desc vector = vector_of(result.sizes[channel], channel, epilogue.dtype, result.rank);
      chain.append_binary(dnnl::algorithm::binary_add, vector);
      translated.binaries.push_back({argument, i, vector});
    } else if (epilogue.kind == GRAFT_EPILOGUE_ADD && !translated.sum) {
      chain.append_sum(value);
      translated.sum = i;
    } else {
      append_activation(chain, epilogue.kind);
    }
  }
  translated.attributes.set_post_ops(chain);
  translated.attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (math_mode == GRAFT_MATH_BF16) translated.attributes.set_fpmath_mode(dnnl::fpmath_mode::bf16);
  if (math_mode == GRAFT_MATH_TF32) translated.attributes.set_fpmath_mode(dnnl::fpmath_mode::tf32);
  return translated;
}

}  // namespace graft::host

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

// oneDNN's own relu is max(x, 0), which makes 0 of NaN. Both of these multiply by 0 where x is
// negative, which makes NaN of -inf instead.
void append_relu(dnnl::post_ops& chain, const ResultShape& shape, Epilogues& translated) {
  if (!shape.takes_zeros) {
    chain.append_eltwise(dnnl::algorithm::eltwise_hardswish, std::numeric_limits<float>::max(),
                         0.0f);
    return;
  }
  translated.zeros.push_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(chain.len()) | DNNL_ARG_WEIGHTS);
  chain.append_prelu(0);
}

// Whether the list begins with the larger one of x and 0 and the smaller one of x and a number that
// is not below 0, in either order.
bool clamps(std::span<const graft_epilogue> steps) {
  if (steps.size() < 2) return false;
  const bool relu_first = steps[0].kind == GRAFT_EPILOGUE_RELU;
  const graft_epilogue &relu = steps[relu_first ? 0 : 1], &minimum = steps[relu_first ? 1 : 0];
  return relu.kind == GRAFT_EPILOGUE_RELU && minimum.kind == GRAFT_EPILOGUE_MINIMUM &&
         minimum.value >= 0;
}

// oneDNN's clip makes the lower bound of NaN; here that is -inf, of which a relu makes NaN again.
void append_minimum(dnnl::post_ops& chain, float most) {
  const float least = -std::numeric_limits<float>::infinity();
  chain.append_eltwise(dnnl::algorithm::eltwise_clip, least, most);
}

void append_activation(dnnl::post_ops& chain, uint32_t kind) {
  switch (kind) {
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
      throw Unsupported{"an element type that oneDNN lacks"};
  }
}

memory::dims sizes(const graft_tensor& tensor) {
  if (tensor.rank > GRAFT_MAX_RANK) throw Unsupported{"more than GRAFT_MAX_RANK dimensions"};
  memory::dims result(tensor.sizes, tensor.sizes + tensor.rank);
  for (auto size : result) {
    if (size <= 0) throw Unsupported{"an empty tensor"};
  }
  return result;
}

memory::dims strides(const graft_tensor& tensor) {
  return {tensor.strides, tensor.strides + tensor.rank};
}

void check_bytes(const graft_tensor& a, const graft_tensor& b) {
  static const bool exact = [] {
    const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    const auto has = [isa](dnnl::cpu_isa wanted) {
      return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
    };
    return has(dnnl::cpu_isa::avx2_vnni) || has(dnnl::cpu_isa::avx512_core_vnni);
  }();
  const auto bytes = [](const graft_tensor& t) {
    return t.dtype == GRAFT_INT8 || t.dtype == GRAFT_UINT8;
  };
  if (!exact && (bytes(a) || bytes(b))) throw Unsupported{"bytes on a processor without VNNI"};
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
                    const ResultShape& shape, uint32_t math_mode) {
  Epilogues translated;
  dnnl::post_ops chain;
  auto append_binary = [&](dnnl::algorithm algorithm, uint32_t operand, const memory::desc& desc) {
    int argument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(chain.len()) | DNNL_ARG_SRC_1;
    chain.append_binary(algorithm, desc);
    translated.binaries.push_back({argument, operand, desc});
  };
  for (uint32_t i = 0; i < epilogues.size(); ++i) {
    const graft_epilogue& epilogue = epilogues[i];
    const uint32_t kind = epilogue.kind;
    float value = float(epilogue.value);
    if (kind == GRAFT_EPILOGUE_SCALE) {
      chain.append_eltwise(dnnl::algorithm::eltwise_linear, value, 0.0f);
    } else if (kind == GRAFT_EPILOGUE_BIAS && i == 0 && shape.bias_rank != 0) {
      uint32_t dimension = shape.bias_rank == 1 ? 0 : shape.channel;
      translated.bias =
          vector_of(result.sizes[shape.channel], dimension, epilogue.dtype, shape.bias_rank);
    } else if (kind == GRAFT_EPILOGUE_BIAS || kind == GRAFT_EPILOGUE_CHANNEL_SCALE) {
      append_binary(
          kind == GRAFT_EPILOGUE_BIAS ? dnnl::algorithm::binary_add : dnnl::algorithm::binary_mul,
          i, vector_of(result.sizes[shape.channel], shape.channel, epilogue.dtype, result.rank));
    } else if (kind == GRAFT_EPILOGUE_ADD && value == 1 && shape.reads_addend) {
      graft_tensor addend = result;
      addend.dtype = epilogue.dtype;
      append_binary(dnnl::algorithm::binary_add, i, laid_out(addend));
    } else if (kind == GRAFT_EPILOGUE_ADD && !translated.sum) {
      chain.append_sum(value);
      translated.sum = i;
    } else if (clamps(epilogues.subspan(i))) {
      const bool relu_first = kind == GRAFT_EPILOGUE_RELU;
      append_minimum(chain, float(epilogues[relu_first ? i + 1 : i].value));
      append_relu(chain, shape, translated);
      ++i;
    } else if (kind == GRAFT_EPILOGUE_RELU) {
      append_relu(chain, shape, translated);
    } else {
      append_activation(chain, kind);
    }
  }
  translated.attributes.set_post_ops(chain);
  translated.attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (math_mode == GRAFT_MATH_BF16) translated.attributes.set_fpmath_mode(dnnl::fpmath_mode::bf16);
  if (math_mode == GRAFT_MATH_TF32) translated.attributes.set_fpmath_mode(dnnl::fpmath_mode::tf32);
  return translated;
}

}  // namespace graft::host

// src/torch/ops/nested.cpp: nested tensors of the strided layout: what PyTorch's kernels for them
// do in CPU or CUDA code.
#include "torch/version/ops/nested.h"

#include <ATen/NestedTensorImpl.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>

#include <array>
#include <vector>

#include "operators.h"
#include "torch/dispatch/guarded.h"

namespace graft::binding {
namespace {

using native::get_nested_tensor_impl;
using native::NestedTensorImpl;
using Optional = std::optional<at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

const at::Tensor& sizes_of(const at::Tensor& nested) {
  return get_nested_tensor_impl(nested)->get_nested_sizes();
}

// The elements of all parts, one part after another, as rank 1. Shares memory where they lie so.
at::Tensor elements_of(const at::Tensor& nested) {
  const at::Tensor packed = nested.contiguous();
  return get_nested_tensor_impl(packed)->get_buffer().narrow(0, 0, packed.numel());
}

// A nested tensor of elements; its whole storage counts as its buffer.
at::Tensor nested_of(const at::Tensor& elements, const at::Tensor& sizes) {
  at::Tensor buffer = elements.reshape({-1});
  if (buffer.storage_offset() != 0 || buffer.storage().nbytes() != buffer.nbytes()) {
    buffer = buffer.clone();
  }
  return at::detail::make_tensor<NestedTensorImpl>(buffer, sizes);
}

at::Tensor joined(const std::vector<at::Tensor>& parts, const at::TensorOptions& options) {
  return parts.empty() ? at::empty({0}, options) : at::cat(parts);
}

Optional flat(const Optional& tensor) {
  return tensor.has_value() && tensor->defined() ? Optional(tensor->reshape({-1})) : std::nullopt;
}

// All rows of the parts under one normalisation, and the length of a row.
std::pair<int64_t, int64_t> rows_of(const at::Tensor& input, at::IntArrayRef normalized_shape,
                                    const Optional& weight, const Optional& bias) {
  TORCH_CHECK(c10::multiply_integers(normalized_shape) > 0,
              "layer_norm of a nested tensor expects a normalized_shape without zeros, got ",
              normalized_shape);
  return native::_check_nested_layer_norm_inputs(*get_nested_tensor_impl(input), normalized_shape,
                                                 weight.value_or(at::Tensor()),
                                                 bias.value_or(at::Tensor()));
}

Three layer_norm(const at::Tensor& input, at::IntArrayRef normalized_shape, const Optional& weight,
                 const Optional& bias, double eps) {
  const auto [rows, n] = rows_of(input, normalized_shape, weight, bias);
  const auto [output, mean, rstd] =
      at::native_layer_norm(elements_of(input).view({rows, n}), {n}, flat(weight), flat(bias), eps);
  return {nested_of(output, sizes_of(input)), mean.view({rows}), rstd.view({rows})};
}

Three layer_norm_backward(const at::Tensor& grad_out, const at::Tensor& input,
                          at::IntArrayRef normalized_shape, const at::Tensor& mean,
                          const at::Tensor& rstd, const Optional& weight, const Optional& bias,
                          std::array<bool, 3> output_mask) {
  const auto [rows, n] = rows_of(input, normalized_shape, weight, bias);
  auto [grad_input, grad_weight, grad_bias] = at::native_layer_norm_backward(
      elements_of(grad_out).view({rows, n}), elements_of(input).view({rows, n}), {n},
      mean.view({rows, 1}), rstd.view({rows, 1}), flat(weight), flat(bias), output_mask);
  if (grad_input.defined()) grad_input = nested_of(grad_input, sizes_of(input));
  if (grad_weight.defined()) grad_weight = grad_weight.view(normalized_shape);
  if (grad_bias.defined()) grad_bias = grad_bias.view(normalized_shape);
  return {grad_input, grad_weight, grad_bias};
}

void check_last_dimension(const at::Tensor& self, at::OptionalIntArrayRef dims) {
  TORCH_CHECK(dims.has_value() && dims->size() == 1,
              "NestedTensor only allows reduction of a single dimension for now.");
  const int64_t dim = at::maybe_wrap_dim((*dims)[0], self.dim());
  TORCH_CHECK(dim > 0 && dim == self.dim() - 1,
              "NestedTensor can only be reduced across the last dimension for now, got dimension ",
              dim, " instead.");
}

at::Tensor sum(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
               std::optional<at::ScalarType> dtype) {
  if (get_nested_tensor_impl(self)->size(0) == 0) return self;
  check_last_dimension(self, dims);
  TORCH_CHECK(keepdim, "NestedTensor always requires keepdim=True for now.");
  TORCH_CHECK(!dtype, "NestedTensor does not support dtype argument for now.");
  const at::ScalarType type = self.scalar_type();
  const at::Tensor sizes = sizes_of(self).clone();
  sizes.select(1, -1).fill_(1);
  const int64_t columns = get_nested_tensor_impl(self)->opt_size(-1).value_or(0);
  if (columns > 0) {
    const at::Tensor rows = elements_of(self).view({-1, columns});
    return nested_of(rows.sum(at::IntArrayRef({-1}), false, type), sizes);
  }
  std::vector<at::Tensor> sums;
  for (const at::Tensor& part : self.unbind()) {
    sums.push_back(part.sum(at::IntArrayRef({-1}), false, type).reshape({-1}));
  }
  return nested_of(joined(sums, elements_of(self).options()), sizes);
}

at::Tensor sum_backward(const at::Tensor& grad, const at::Tensor& self,
                        at::OptionalIntArrayRef dims, bool) {
  check_last_dimension(self, dims);
  const std::vector<at::Tensor> grads = grad.unbind(), parts = self.unbind();
  std::vector<at::Tensor> spread;
  for (size_t i = 0; i < parts.size(); ++i) {
    spread.push_back(grads[i].expand(parts[i].sizes()).reshape({-1}));
  }
  return nested_of(joined(spread, elements_of(self).options()), sizes_of(self));
}

// Sizes, strides and offsets of parts are read by the CPU. torch.load brings them elsewhere where
// map_location names a device.
at::Tensor on_host(const at::Tensor& numbers) { return numbers.to(at::kCPU).contiguous(); }

at::Tensor pin_memory(const at::Tensor& self, std::optional<at::Device>) {
  TORCH_CHECK(false, "cannot pin a nested tensor on ", self.device(),
              ": only dense CPU tensors can be pinned");
}

}  // namespace

at::Tensor GRAFT_OPERATOR(_nested_view_from_buffer)(const at::Tensor& buffer,
                                                    const at::Tensor& sizes,
                                                    const at::Tensor& strides,
                                                    const at::Tensor& offsets) {
  return native::_nested_view_from_buffer(buffer, on_host(sizes), on_host(strides),
                                          on_host(offsets));
}

std::tuple<at::Tensor, at::Tensor> GRAFT_OPERATOR(_nested_compute_contiguous_strides_offsets)(
    const at::Tensor& sizes) {
  const bool known = sizes.scalar_type() == at::kLong && (sizes.dim() == 0 || sizes.dim() == 2);
  TORCH_CHECK(known, "expected int64 sizes of [parts, dimensions of a part], but got ",
              sizes.scalar_type(), " and ", sizes.sizes());
  return native::_nested_compute_contiguous_strides_offsets(on_host(sizes).contiguous());
}

// sizes is [parts, rank of a part]. fused: padded is [parts, heads, length, size of a
// head], the rows of the parts hold all heads.
at::Tensor GRAFT_OPERATOR(_nested_from_padded)(const at::Tensor& padded, const at::Tensor& sizes,
                                               bool fused) {
  const at::Tensor from = fused ? padded.transpose(1, 2).flatten(2) : padded;
  const at::Tensor wanted = on_host(sizes);
  TORCH_CHECK(
      wanted.dim() == 2 && wanted.size(1) == from.dim() - 1 && wanted.size(0) == from.size(0),
      "_nested_from_padded: sizes ", wanted.sizes(), " do not describe the parts of ",
      from.sizes());
  const int64_t* lengths = wanted.const_data_ptr<int64_t>();
  std::vector<at::Tensor> parts;
  for (int64_t i = 0; i < wanted.size(0); ++i) {
    at::Tensor part = from.select(0, i);
    for (int64_t d = 0; d < part.dim(); ++d) part = part.narrow(d, 0, *lengths++);
    parts.push_back(part.reshape({-1}));
  }
  return nested_of(joined(parts, from.options()), wanted);
}

TORCH_LIBRARY_IMPL(aten, GRAFT_NESTED_KEY, m) {
  m.impl("_fused_sdp_choice", TORCH_FN(GRAFT_OPERATOR(_fused_sdp_choice)));
  m.impl("_native_multi_head_attention", TORCH_FN(GRAFT_OPERATOR(_native_multi_head_attention)));
  m.impl("_nested_sum_backward", TORCH_FN(sum_backward));
  m.impl("_nested_tensor_softmax_with_shape", TORCH_FN(native::NestedTensor_softmax_dropout));
  m.impl("_pin_memory", TORCH_FN(pin_memory));
  m.impl("_transform_bias_rescale_qkv", TORCH_FN(GRAFT_OPERATOR(_transform_bias_rescale_qkv)));
  m.impl("bmm", TORCH_FN(native::bmm_nested));
  m.impl("is_pinned", TORCH_FN(native::is_pinned));
  m.impl("native_layer_norm", TORCH_FN(layer_norm));
  m.impl("native_layer_norm_backward", TORCH_FN(layer_norm_backward));
  m.impl("sum.dim_IntList", TORCH_FN(sum));
  m.impl("to_padded_tensor", TORCH_FN(native::NestedTensor_to_padded_tensor_generic));
}

}  // namespace graft::binding

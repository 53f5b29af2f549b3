// src/torch/dispatch/quantized_image.cpp: quantized tensors as the integers that they hold, and
// elsewhere.
#include "torch/dispatch/quantized_image.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/quantized/QTensorImpl.h>

#include "torch/device/type.h"
#include "torch/tensor/copy.h"
#include "torch/tensor/empty.h"

namespace graft::binding {
namespace {

bool below_a_byte(at::ScalarType type) { return type == at::kQUInt4x2 || type == at::kQUInt2x4; }

// Of a tensor that was made without a meaning: false.
bool per_channel(const at::Tensor& quantized) {
  const at::QuantizerPtr quantizer = quantized.quantizer();
  if (dynamic_cast<const at::UnknownQuantizer*>(quantizer.get()) != nullptr) return false;
  const at::QScheme scheme = quantizer->qscheme();
  return scheme == at::kPerChannelAffine || scheme == at::kPerChannelAffineFloatQParams;
}

// Another tensor's memory under the key and dtype given; sizes and strides are the caller's.
template <class Impl, class... Arguments>
at::Tensor over(const at::Tensor& memory, c10::DispatchKey ours, c10::DispatchKey host,
                at::ScalarType type, Arguments... arguments) {
  const auto key = memory.device().is_cpu() ? host : ours;
  return at::detail::make_tensor<Impl>(c10::Storage(memory.storage()), c10::DispatchKeySet(key),
                                       c10::scalarTypeToTypeMeta(type), arguments...);
}

at::Tensor empty_integers(const at::Tensor& like, c10::Device device) {
  const bool dense = like.is_non_overlapping_and_dense();
  if (!device.is_cpu()) {
    return dense ? empty_strided_graft(like.sizes(), like.strides(), like.scalar_type(), device)
                 : empty_graft(like.sizes(), like.scalar_type(), device);
  }
  const auto options = at::TensorOptions().dtype(like.scalar_type());
  return dense ? at::empty_strided(like.sizes(), like.strides(), options)
               : at::empty(like.sizes(), options);
}

}  // namespace

at::Tensor integers_of(const at::Tensor& quantized) {
  const at::ScalarType type = quantized.scalar_type();
  at::Tensor integers = over<c10::TensorImpl>(quantized, kDispatchKey, c10::DispatchKey::CPU,
                                              c10::toUnderlying(type));
  c10::TensorImpl& impl = *integers.unsafeGetTensorImpl();
  if (below_a_byte(type)) {
    impl.set_sizes_contiguous({static_cast<int64_t>(quantized.storage().nbytes())});
    return integers;
  }
  impl.set_storage_offset(quantized.storage_offset());
  impl.set_sizes_and_strides(quantized.sizes(), quantized.strides());
  return integers;
}

at::Tensor quantized_over(const at::Tensor& integers, const at::QuantizerPtr& quantizer) {
  at::Tensor quantized =
      over<at::QTensorImpl>(integers, kQuantizedKey, c10::DispatchKey::QuantizedCPU,
                            c10::toQIntType(integers.scalar_type()), quantizer);
  c10::TensorImpl& impl = *quantized.unsafeGetTensorImpl();
  impl.set_storage_offset(integers.storage_offset());
  impl.set_sizes_and_strides(integers.sizes(), integers.strides());
  return quantized;
}

at::QuantizerPtr quantizer_on(const at::Tensor& quantized, c10::Device device) {
  if (quantized.device() == device || !per_channel(quantized)) return quantized.quantizer();
  const at::AutoDispatchBelowADInplaceOrView below;
  return at::make_per_channel_affine_quantizer(
      quantized.q_per_channel_scales().to(device), quantized.q_per_channel_zero_points().to(device),
      quantized.q_per_channel_axis(), quantized.scalar_type());
}

at::Tensor quantized_copy(const at::Tensor& quantized, c10::Device device) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const at::Tensor from = integers_of(quantized), to = empty_integers(from, device);
  binding::copy(to, from);
  if (!below_a_byte(quantized.scalar_type())) {
    return quantized_over(to, quantizer_on(quantized, device));
  }
  at::Tensor packed =
      over<at::QTensorImpl>(to, kQuantizedKey, c10::DispatchKey::QuantizedCPU,
                            quantized.scalar_type(), quantizer_on(quantized, device));
  packed.unsafeGetTensorImpl()->set_storage_offset(quantized.storage_offset());
  packed.unsafeGetTensorImpl()->set_sizes_and_strides(quantized.sizes(), quantized.strides());
  return packed;
}

void assign_quantized(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  const at::AutoDispatchBelowADInplaceOrView below;
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  binding::copy(integers_of(to), integers_of(from), non_blocking);
  at::set_quantizer_(to, quantizer_on(from, to.device()));
}

size_t quantized_bytes(const at::Tensor& quantized) {
  size_t bytes = integers_of(quantized).nbytes();
  if (per_channel(quantized)) {
    bytes += quantized.q_per_channel_scales().nbytes();
    bytes += quantized.q_per_channel_zero_points().nbytes();
  }
  return bytes;
}

}  // namespace graft::binding

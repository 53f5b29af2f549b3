// src/torch/ve/faces.cpp: a tensor of the slot for one of the device that carries it, and back.
#include "torch/ve/faces.h"

#include <ATen/SparseTensorImpl.h>
#include <ATen/quantized/QTensorImpl.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/TensorImpl.h>

#include <utility>

namespace graft::binding::ve {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

// Of a face under one of two keys, with what PyTorch adds to the key of each tensor. torch.autocast
// of our device type holds for the slot, too: PyTorch has no autocast key for it.
template <DispatchKey inner_key, DispatchKey outer_key>
DispatchKeySet keys_of(Face face) {
  const auto all = [](DispatchKeySet keys) {
    return keys | c10::getAutogradRelatedKeySetFromBackend(keys.highestBackendKey()) |
           DispatchKeySet(DispatchKey::AutocastPrivateUse1);
  };
  static const DispatchKeySet inner = all(DispatchKeySet(inner_key));
  static const DispatchKeySet outer = all(DispatchKeySet(outer_key));
  return face == Face::kInner ? inner : outer;
}

void take_geometry(c10::TensorImpl& to, const at::Tensor& from) {
  to.set_sizes_and_strides(from.sizes(), from.strides(), from.storage_offset());
}

at::QuantizerPtr quantizer_face(const at::Tensor& of, Part part) {
  const at::QuantizerPtr quantizer = at::get_qtensorimpl(of)->quantizer();
  if (quantizer->qscheme() != at::kPerChannelAffine &&
      quantizer->qscheme() != at::kPerChannelAffineFloatQParams) {
    return quantizer;
  }
  const auto& channels = static_cast<const at::PerChannelAffineQuantizer&>(*quantizer);
  return at::make_per_channel_affine_quantizer(
      part(channels.scales()), part(channels.zero_points()), channels.axis(), of.scalar_type());
}

at::SparseTensorImpl& coo(const at::Tensor& tensor) {
  return *static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
}

void take_coordinates(at::SparseTensorImpl& to, const at::SparseTensorImpl& from, Part part) {
  to.raw_resize_(from.sparse_dim(), from.dense_dim(), from.sizes());
  to.set_indices_and_values_unsafe(part(from.indices()), part(from.values()));
  to.set_coalesced(from.coalesced());
}

}  // namespace

at::Tensor dense_face(const at::Tensor& of, Face face, c10::Storage storage, bool inference) {
  DispatchKeySet keys = keys_of<kDispatchKey, kKey>(face);
  if (inference) keys = keys - c10::autograd_dispatch_keyset_with_ADInplaceOrView;
  if (of._is_zerotensor()) keys = keys.add(DispatchKey::ZeroTensor);
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW,
                                                             std::move(storage), keys, of.dtype());
  c10::TensorImpl& impl = *made.unsafeGetTensorImpl();
  take_geometry(impl, of);
  if (of.is_conj()) impl._set_conj(true);
  if (of.is_neg()) impl._set_neg(true);
  if (of.unsafeGetTensorImpl()->is_wrapped_number()) impl.set_wrapped_number(true);
  return made;
}

at::Tensor quantized_face(const at::Tensor& of, Face face, c10::Storage storage, Part part) {
  at::Tensor made = at::detail::make_tensor<at::QTensorImpl>(
      c10::TensorImpl::VIEW, std::move(storage),
      keys_of<binding::kQuantizedKey, ve::kQuantizedKey>(face), of.dtype(),
      quantizer_face(of, part));
  take_geometry(*made.unsafeGetTensorImpl(), of);
  return made;
}

at::Tensor sparse_face(const at::Tensor& of, Face face, Part part) {
  const c10::DeviceGuard guard(face == Face::kInner ? inner(of.device()) : outer(of.device()));
  at::Tensor made = at::detail::make_tensor<at::SparseTensorImpl>(
      DispatchKeySet(face == Face::kInner ? DispatchKey::SparsePrivateUse1 : kSparseKey),
      of.dtype());
  take_coordinates(coo(made), coo(of), part);
  return made;
}

void take_parts(const at::Tensor& to, const at::Tensor& from, Part part) {
  take_coordinates(coo(to), coo(from), part);
}

void refuse_compressed(std::string_view operation) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, operation, ": PyTorch keeps compressed sparse tensors (CSR, CSC, BSR, BSC) from ve ",
      "devices: its SparseCsrTensorImpl lists the devices that it takes. Use torch.sparse_coo");
}

}  // namespace graft::binding::ve

// src/torch/dispatch/sparse_image.cpp: sparse tensors on another device.
#include "torch/dispatch/sparse_image.h"

#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>

#include "torch/version/sparse.h"

namespace graft::binding {
namespace {

struct Parts {
  at::Tensor indices, plain_indices, values;  // plain_indices: of compressed layouts only
};

Parts parts_of(const at::Tensor& sparse) {
  if (sparse.is_sparse()) {
    const at::SparseTensorImpl& impl = *at::sparse::get_sparse_impl(sparse);
    return {impl.indices(), {}, impl.values()};
  }
  const at::SparseCsrTensorImpl& impl = *at::sparse_csr::get_sparse_csr_impl(sparse);
  return {impl.compressed_indices(), impl.plain_indices(), impl.values()};
}

}  // namespace

bool is_sparse(const at::Tensor& tensor) {
  return tensor.is_sparse() || at::sparse_csr::is_sparse_compressed(tensor);
}

at::Tensor sparse_copy(const at::Tensor& sparse, c10::Device device) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const Parts parts = parts_of(sparse);
  // Kernels for sparse tensors take indices for contiguous.
  const at::Tensor indices = parts.indices.to(device).contiguous();
  const at::Tensor values = parts.values.to(device);
  const at::TensorOptions options = values.options().layout(sparse.layout());
  if (sparse.is_sparse()) {
    return at::_sparse_coo_tensor_unsafe(indices, values, sparse.sizes(), options,
                                         sparse.is_coalesced());
  }
  return at::_sparse_compressed_tensor_unsafe(indices, parts.plain_indices.to(device), values,
                                              sparse.sizes(), options);
}

void assign_sparse(const at::Tensor& to, const at::Tensor& from) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const at::Tensor copy = sparse_copy(from, to.device());
  const Parts parts = parts_of(copy);
  if (to.is_sparse()) {
    at::SparseTensorImpl* impl = at::sparse::get_sparse_impl(to);
    impl->raw_resize_(copy.sparse_dim(), copy.dense_dim(), copy.sizes());
    impl->set_indices_and_values_unsafe(parts.indices, parts.values);
    impl->set_coalesced(copy.is_coalesced());
    return;
  }
  at::sparse_csr::get_sparse_csr_impl(to)->set_member_tensors(parts.indices, parts.plain_indices,
                                                              parts.values, copy.sizes());
}

size_t sparse_bytes(const at::Tensor& sparse) {
  const Parts parts = parts_of(sparse);
  size_t bytes = parts.indices.nbytes() + parts.values.nbytes();
  if (parts.plain_indices.defined()) bytes += parts.plain_indices.nbytes();
  return bytes;
}

}  // namespace graft::binding

// src/torch/version/sparse.h: from inside torch: sparse tensors.
#pragma once

#include <ATen/native/DispatchStub.h>
#include <ATen/native/SparseTensorUtils.h>

// Stubs that PyTorch exports and whose declarations it does not ship.
namespace at::native {
using flatten_indices_fn = Tensor (*)(const Tensor& indices, IntArrayRef sizes);
using mul_sparse_sparse_out_fn = void (*)(Tensor& out, const Tensor& x, const Tensor& y);
using sparse_mask_intersection_out_fn = void (*)(Tensor& out, const Tensor& x, const Tensor& y,
                                                 const std::optional<Tensor>& hash);
using sparse_mask_projection_out_fn = void (*)(Tensor& out, const Tensor& x, const Tensor& y,
                                               const std::optional<Tensor>& hash, bool accumulate);
DECLARE_DISPATCH(flatten_indices_fn, flatten_indices_stub)
DECLARE_DISPATCH(mul_sparse_sparse_out_fn, mul_sparse_sparse_out_stub)
DECLARE_DISPATCH(sparse_mask_intersection_out_fn, sparse_mask_intersection_out_stub)
DECLARE_DISPATCH(sparse_mask_projection_out_fn, sparse_mask_projection_out_stub)
}  // namespace at::native

namespace graft::binding::native {

using at::native::flatten_indices_stub;
using at::native::mul_sparse_sparse_out_stub;
using at::native::sparse_mask_intersection_out_stub;
using at::native::sparse_mask_projection_out_stub;

}  // namespace graft::binding::native

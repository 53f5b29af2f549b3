// src/torch/dispatch/sparse_image.h: sparse tensors on another device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

namespace graft::binding {

// COO, CSR, CSC, BSR or BSC.
bool is_sparse(const at::Tensor& tensor);

// A tensor of the same layout, sizes and elements on device: copies of the indices and values of
// sparse. Whether a COO tensor is coalesced stays. Throws Error.
at::Tensor sparse_copy(const at::Tensor& sparse, c10::Device device);

// Gives to the elements and sizes of from, of the same layout, on whatever device.
void assign_sparse(const at::Tensor& to, const at::Tensor& from);

// Bytes of the indices and values.
size_t sparse_bytes(const at::Tensor& sparse);

}  // namespace graft::binding

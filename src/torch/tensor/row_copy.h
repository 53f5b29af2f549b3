// src/torch/tensor/row_copy.h: copies of tensors with gaps or of another order, row by row.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "graft/driver.h"

namespace graft::binding {

// The copy of from's elements to to, which have one dtype and the same sizes, as rows of at least
// some bytes; nothing where that takes more than three strides. Addresses are those of the tensors,
// wherever they lie. REQUIRES: to and from have elements.
std::optional<graft_strided_copy> rows_of(const at::Tensor& to, const at::Tensor& from,
                                          graft_copy_kind kind);

// Copies so where the driver does (copy_strided), between the device and the host or on the device.
// False, and nothing is done, where it does not. Waits unless non_blocking and the host tensor is
// pinned; the host tensor lives as long.
bool copy_rows(const at::Tensor& to, const at::Tensor& from, bool non_blocking);

}  // namespace graft::binding

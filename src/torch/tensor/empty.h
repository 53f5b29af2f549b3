// src/torch/tensor/empty.h: new tensors on the device, with no values in them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/TensorOptions.h>

#include <optional>

namespace graft::binding {

// A tensor of the given sizes on device (index below 0: the current one), in the memory format, row
// by row without one. The memory comes from the current stream of the device. Throws RuntimeError
// for a negative size and torch.OutOfMemoryError.
at::Tensor empty_graft(at::IntArrayRef sizes, at::ScalarType dtype, c10::Device device,
                       std::optional<at::MemoryFormat> format = std::nullopt);

// The same with dtype, device and format from options; their defaults are PyTorch's default dtype
// and the current device.
at::Tensor empty_graft(at::IntArrayRef sizes, const at::TensorOptions& options);

// With strides in elements; the storage reaches to the last element.
at::Tensor empty_strided_graft(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype,
                               c10::Device device);
at::Tensor empty_strided_graft(at::IntArrayRef sizes, at::IntArrayRef strides,
                               const at::TensorOptions& options);

// What torch.empty's options come to. Throws RuntimeError for a layout that is not strided, and for
// memory that shall be pinned.
void check_empty_options(std::optional<at::Layout> layout, std::optional<bool> pinned);

// The dtype that was asked for, else PyTorch's default one.
at::ScalarType wanted_or_default(std::optional<at::ScalarType> dtype);

// Whether the user asked for values in new memory: torch.use_deterministic_algorithms and
// torch.utils.deterministic.fill_uninitialized_memory.
bool asks_for_fill();

}  // namespace graft::binding

// src/torch/tensor/empty.cpp: new tensors on the device, with no values in them.
#include "torch/tensor/empty.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <torch/library.h>

#include "torch/device/type.h"
#include "torch/tensor/memory.h"
#include "torch/version/factories.h"

namespace graft::binding {
namespace {

at::Tensor tensor_of(int64_t bytes, at::ScalarType dtype, c10::Device device) {
  const auto size = static_cast<size_t>(bytes);
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), size,
                                                       allocate_on(device.index(), size),
                                                       &device_memory(), /*resizable=*/true);
  return at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(kDispatchKey), c10::scalarTypeToTypeMeta(dtype));
}

at::Tensor finished(at::Tensor tensor) {
  if (asks_for_fill()) [[unlikely]]
    native::fill_empty_deterministic_(tensor);
  return tensor;
}

at::Tensor empty_memory_format(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype,
                               std::optional<at::Layout> layout, std::optional<at::Device> device,
                               std::optional<bool> pinned, std::optional<at::MemoryFormat> format) {
  check_empty_options(layout, pinned);
  return empty_graft(sizes, wanted_or_default(dtype), device.value_or(device_of(-1)), format);
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                         std::optional<at::Device> device, std::optional<bool> pinned) {
  check_empty_options(layout, pinned);
  return empty_strided_graft(sizes, strides, wanted_or_default(dtype),
                             device.value_or(device_of(-1)));
}

}  // namespace

void check_empty_options(std::optional<at::Layout> layout, std::optional<bool> pinned) {
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided, "expected a strided layout, not ",
              *layout);
  TORCH_CHECK(!pinned.value_or(false), "only dense CPU tensors can be pinned");
}

at::ScalarType wanted_or_default(std::optional<at::ScalarType> dtype) {
  return dtype.has_value() ? *dtype : c10::get_default_dtype_as_scalartype();
}

bool asks_for_fill() {
  const auto& context = at::globalContext();
  return context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory();
}

at::Tensor empty_graft(at::IntArrayRef sizes, at::ScalarType dtype, c10::Device device,
                       std::optional<at::MemoryFormat> format) {
  at::detail::check_size_nonnegative(sizes);
  const size_t bytes = at::detail::computeStorageNbytesContiguous(sizes, c10::elementSize(dtype));
  at::Tensor tensor = tensor_of(static_cast<int64_t>(bytes), dtype, device);
  if (sizes.size() != 1 || sizes[0] != 0) tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  if (format.has_value() && *format != at::MemoryFormat::Contiguous) {
    tensor.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  return finished(std::move(tensor));
}

at::Tensor empty_graft(at::IntArrayRef sizes, const at::TensorOptions& options) {
  return empty_graft(sizes, c10::typeMetaToScalarType(options.dtype()),
                     options.device_opt().value_or(device_of(-1)), options.memory_format_opt());
}

at::Tensor empty_strided_graft(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype,
                               c10::Device device) {
  at::detail::check_size_nonnegative(sizes);
  const size_t bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype));
  at::Tensor tensor = tensor_of(static_cast<int64_t>(bytes), dtype, device);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return finished(std::move(tensor));
}

at::Tensor empty_strided_graft(at::IntArrayRef sizes, at::IntArrayRef strides,
                               const at::TensorOptions& options) {
  return empty_strided_graft(sizes, strides, c10::typeMetaToScalarType(options.dtype()),
                             options.device_opt().value_or(device_of(-1)));
}

TORCH_LIBRARY_IMPL(aten, GRAFT_DISPATCH_KEY, m) {
  m.impl("empty.memory_format", &empty_memory_format);
  m.impl("empty_strided", &empty_strided);
}

}  // namespace graft::binding

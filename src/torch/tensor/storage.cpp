// src/torch/tensor/storage.cpp: storages that grow and shrink, and the operators that resize and
// rebind.
#include "torch/tensor/storage.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <algorithm>

#include "torch/device/current.h"
#include "torch/device/errors.h"
#include "torch/tensor/empty.h"
#include "torch/tensor/memory.h"
#include "torch/version/resize.h"

namespace graft::binding {
namespace {

// Makes the tensor's storage reach to its last element.
void grow_to_fit(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return;
  const size_t bytes =
      at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.dtype().itemsize(),
                                       static_cast<size_t>(tensor.storage_offset()));
  c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  if (bytes > storage.nbytes()) translate([&] { resize_storage(storage, bytes); });
}

const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef sizes,
                         std::optional<at::MemoryFormat> format) {
  at::detail::check_size_nonnegative(sizes);
  c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
  if (self.sizes() != sizes) impl.set_sizes_contiguous(sizes);
  if (format.has_value()) {
    TORCH_CHECK(*format != at::MemoryFormat::Preserve,
                "resize_ got memory format 'preserve': give contiguous or channels_last");
    impl.empty_tensor_restride(*format);
  }
  const size_t before = self.storage().nbytes();
  grow_to_fit(self);
  if (asks_for_fill()) [[unlikely]] {
    native::fill_resize_deterministic_(self, static_cast<int64_t>(before));
  }
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef sizes,
                        at::IntArrayRef strides) {
  native::checkSetStorage(self, std::move(source), offset, sizes, strides);
  c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
  impl.set_storage_offset(offset);
  if (strides.data() != nullptr) {
    impl.set_sizes_and_strides(sizes, strides);
  } else {
    impl.set_sizes_contiguous(sizes);
  }
  grow_to_fit(self);
  return self;
}

at::Tensor& set_whole_storage(at::Tensor& self, at::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_storage(self, std::move(source), 0, {count}, {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  if (self.is_same(source)) return self;
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(),
                     source.strides());
}

at::Tensor& set_nothing(at::Tensor& self) {
  const at::Tensor empty = empty_graft({0}, self.scalar_type(), self.device());
  return set_storage(self, empty.storage(), 0, {0}, {});
}

void record_stream_operator(at::Tensor& self, at::Stream stream) {
  translate([&] { record_stream(self.storage().data_ptr(), runtime_stream(stream)); });
}

}  // namespace

void resize_storage(c10::StorageImpl& storage, size_t bytes) {
  TORCH_CHECK(storage.resizable(),
              "this storage cannot be resized, because another library owns its memory");
  const c10::Device device = storage.device();
  c10::DataPtr memory = allocate_on(device.index(), bytes);
  const size_t kept = std::min(bytes, storage.nbytes());
  if (kept > 0) {
    current_stream(device.index())
        .copy(reinterpret_cast<uint64_t>(memory.get()), reinterpret_cast<uint64_t>(storage.data()),
              kept, GRAFT_DEVICE_TO_DEVICE);
  }
  storage.set_data_ptr_noswap(std::move(memory));
  storage.set_nbytes(bytes);
}

TORCH_LIBRARY_IMPL(aten, GRAFT_DISPATCH_KEY, m) {
  m.impl("resize_", &resize);
  m.impl("set_", &set_nothing);
  m.impl("set_.source_Storage", &set_whole_storage);
  m.impl("set_.source_Storage_storage_offset", &set_storage);
  m.impl("set_.source_Tensor", &set_tensor);
  m.impl("record_stream", &record_stream_operator);
}

TORCH_LIBRARY_IMPL(aten, GRAFT_QUANTIZED_KEY, m) {
  m.impl("resize_", &resize);
  m.impl("record_stream", &record_stream_operator);
}

}  // namespace graft::binding

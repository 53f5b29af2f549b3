// src/torch/tensor/lazy_clone.cpp: storages that share memory until one of them is written.
#include "torch/tensor/lazy_clone.h"

#include <ATen/ops/clone.h>
#include <torch/library.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/driver/op_tag.h"
#include "runtime/stream/event.h"
#include "torch/device/current.h"
#include "torch/device/errors.h"
#include "torch/tensor/memory.h"
#include "torch/version/dispatch.h"

namespace graft::binding {
namespace {

using c10::impl::cow::COWDeleterContext;

// What storages share: the memory as it was allocated, and the copies of it that may still run.
struct Shared {
  c10::DataPtr memory;
  std::vector<std::unique_ptr<Event>> copies;  // guarded by Everything::mutex
};

// By PyTorch's context, which keeps its data to itself.
struct Everything {
  std::mutex mutex;
  std::unordered_map<const void*, Shared*> shared;
};

Everything& everything() {
  static auto* everything = new Everything;  // storages outlive static objects
  return *everything;
}

Shared* shared_by(const void* context) {
  const std::lock_guard lock(everything().mutex);
  const auto found = everything().shared.find(context);
  return found == everything().shared.end() ? nullptr : found->second;
}

// A context's address may name the next one by now.
void forget(const Shared* shared) {
  const std::lock_guard lock(everything().mutex);
  std::erase_if(everything().shared, [&](const auto& one) { return one.second == shared; });
  lazily_shared.store(everything().shared.size(), std::memory_order_relaxed);
}

// When the last storage dies without having been written.
void free_shared(void* context) {
  auto* shared = static_cast<Shared*>(context);
  forget(shared);
  delete shared;
}

// For the one storage that is left. Its stream writes behind the copies that others took.
c10::DataPtr taken_back(Shared* shared) {
  forget(shared);
  const std::unique_ptr<Shared> owned(shared);
  Stream& stream = current_stream(shared->memory.device().index());
  for (const auto& copy : shared->copies) stream.wait(*copy);
  return std::move(shared->memory);
}

c10::DataPtr copied(Shared& shared, size_t bytes) {
  const c10::Device device = shared.memory.device();
  Stream& stream = current_stream(device.index());
  c10::DataPtr own = allocate_on(device.index(), bytes);
  if (bytes == 0) return own;
  stream.copy(reinterpret_cast<uint64_t>(own.get()),
              reinterpret_cast<uint64_t>(shared.memory.get()), bytes, GRAFT_DEVICE_TO_DEVICE);
  record_stream(shared.memory, stream);
  auto done = std::make_unique<Event>(stream.device(), false);
  done->record(stream);
  const std::lock_guard lock(everything().mutex);
  shared.copies.push_back(std::move(done));
  return own;
}

// PyTorch calls it before a storage's mutable address leaves.
void materialize(c10::StorageImpl* storage) {
  const c10::DataPtr& data = storage->data_ptr();
  auto* context = data.cast_context<COWDeleterContext>(&c10::impl::cow::cow_deleter);
  if (context == nullptr) return;  // resized or replaced meanwhile
  Shared* shared = shared_by(context);
  TORCH_INTERNAL_ASSERT(shared != nullptr);
  translate([&] {
    c10::DataPtr own;
    auto reference = context->decrement_refcount();
    if (auto* last = std::get_if<COWDeleterContext::LastReference>(&reference)) {
      own = taken_back(static_cast<Shared*>(last->release()));
    } else {
      try {  // the reference that is still held keeps the memory
        own = copied(*shared, storage->nbytes());
      } catch (...) {
        context->increment_refcount();
        throw;
      }
    }
    storage->_mutable_data_ptr_no_checks().release_context();
    storage->set_data_ptr_noswap(std::move(own));
  });
}

c10::DataPtr over(const c10::DataPtr& data, COWDeleterContext* context) {
  return {data.get(), context, &c10::impl::cow::cow_deleter, data.device()};
}

void share(c10::StorageImpl& storage) {
  const c10::DataPtr& data = storage.data_ptr();
  const c10::DataPtr where(data.get(), data.device());
  auto* shared = new Shared{std::move(storage._mutable_data_ptr_no_checks()), {}};
  auto* context = new COWDeleterContext({shared, &free_shared});
  {
    const std::lock_guard lock(everything().mutex);
    everything().shared.insert_or_assign(context, shared);
    lazily_shared.store(everything().shared.size(), std::memory_order_relaxed);
  }
  if (storage.has_materializer()) storage.clear_materializer();
  storage.set_data_ptr_noswap(over(where, context));
  storage.set_materializer(&materialize);
}

bool is_shared(const c10::StorageImpl& storage) {
  return c10::impl::cow::is_cow_data_ptr(storage.data_ptr());
}

at::Tensor lazy_clone(const at::Tensor& self) {
  c10::StorageImpl& storage = *self.storage().unsafeGetStorageImpl();
  if (!is_shared(storage)) {
    // Memory that another library or a compiled graph gives and takes cannot be kept.
    const bool ours = storage.nbytes() == 0 || block_of(storage.data_ptr()) != nullptr;
    if (!ours) return at::clone(self);
    share(storage);
  }
  const c10::DataPtr& data = storage.data_ptr();
  auto* context = data.cast_context<COWDeleterContext>(&c10::impl::cow::cow_deleter);
  context->increment_refcount();
  auto second = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                                      storage.nbytes(), over(data, context),
                                                      storage.allocator(), storage.resizable());
  second->set_materializer(&materialize);
  at::Tensor clone = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(std::move(second)),
                                                              self.key_set(), self.dtype());
  clone.unsafeGetTensorImpl()->set_sizes_and_strides(self.sizes(), self.strides(),
                                                     self.storage_offset());
  return clone;
}

// Operators whose schemas hide that they write to running statistics.
bool hides_writes(std::string_view name) {
  return name == "aten::native_batch_norm" || name.starts_with("aten::batch_norm_");
}

bool operator_may_write() {
  const std::string tag = op_name(current_tag());
  if (tag == "aten::copy_") return false;  // copy() asks for what it writes itself
  const size_t dot = tag.find('.');
  const auto found = c10::Dispatcher::singleton().findSchema(
      {tag.substr(0, dot), dot == std::string::npos ? "" : tag.substr(dot + 1)});
  return !found.has_value() || found->schema().is_mutable() || hides_writes(tag);
}

}  // namespace

bool is_lazily_shared(const at::TensorBase& tensor) {
  return tensor.has_storage() && is_shared(*tensor.storage().unsafeGetStorageImpl());
}

void own_memory(const at::TensorBase& tensor) {
  if (tensor.defined() && is_lazily_shared(tensor)) {
    tensor.storage().unsafeGetStorageImpl()->mutable_data();
  }
}

void own_for_kernel(const at::TensorBase& tensor) {
  if (lazy_clones_live() && is_lazily_shared(tensor) && operator_may_write()) own_memory(tensor);
}

Block* lazily_shared_block(const c10::DataPtr& data) {
  if (!lazy_clones_live() || !c10::impl::cow::is_cow_data_ptr(data)) return nullptr;
  const Shared* shared = shared_by(data.get_context());
  return shared == nullptr ? nullptr : block_of(shared->memory);
}

TORCH_LIBRARY_IMPL(aten, GRAFT_DISPATCH_KEY, m) { m.impl("_lazy_clone", &lazy_clone); }

}  // namespace graft::binding

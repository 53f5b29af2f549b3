// src/torch/ve/storage.cpp: storages of the slot, each in front of one of the device that carries
// it.
#include "torch/ve/storage.h"

#include <utility>

#include "torch/device/current.h"
#include "torch/device/errors.h"
#include "torch/tensor/memory.h"
#include "torch/ve/attach.h"

namespace graft::binding::ve {
namespace {

using Impl = c10::intrusive_ptr<c10::StorageImpl>;

void release_inner(void* context) {
  c10::raw::intrusive_ptr::decref(static_cast<c10::StorageImpl*>(context));
}

// The context of an outer storage's data is the inner storage.
c10::DataPtr face_of(Impl inner) {
  const c10::Device device = outer(inner->device());
  void* const address = inner->_mutable_data_ptr_no_checks().get();
  return {address, inner.release(), &release_inner, device};
}

Impl storage_of(c10::DataPtr data, size_t bytes, c10::Allocator* allocator, bool resizable) {
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                               std::move(data), allocator, resizable);
}

class Memory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::DeviceIndex index = platform_index(-1);
    return face_of(storage_of(allocate_on(index, bytes), bytes, &device_memory(), true));
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    translate([&] {
      current_stream(platform_index(-1))
          .copy(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes,
                GRAFT_DEVICE_TO_DEVICE);
    });
  }
};

}  // namespace

c10::Storage inner_storage(const c10::Storage& outer) {
  const c10::DataPtr& data = outer.data_ptr();
  if (data.get_deleter() == &release_inner) [[likely]] {
    return c10::Storage(Impl::reclaim_copy(static_cast<c10::StorageImpl*>(data.get_context())));
  }
  auto* const kept = new c10::Storage(outer);
  c10::DataPtr same(
      const_cast<void*>(data.get()), kept,
      [](void* storage) { delete static_cast<c10::Storage*>(storage); }, inner(outer.device()));
  return c10::Storage(storage_of(std::move(same), outer.nbytes(), &device_memory(), false));
}

const c10::DataPtr& inner_data(const c10::DataPtr& outer) {
  if (outer.get_deleter() != &release_inner) return outer;
  return static_cast<const c10::StorageImpl*>(outer.get_context())->data_ptr();
}

c10::Storage outer_storage(c10::Storage inner) {
  const size_t bytes = inner.nbytes();
  Impl impl = Impl::reclaim(inner.unsafeReleaseStorageImpl());
  return c10::Storage(storage_of(face_of(std::move(impl)), bytes, &memory(), true));
}

bool paired(const c10::StorageImpl& outer, const c10::StorageImpl& inner) {
  const c10::DataPtr& data = outer.data_ptr();
  return data.get_deleter() == &release_inner && data.get_context() == &inner;
}

void follow(c10::StorageImpl& outer, c10::StorageImpl& inner) {
  if (outer.data_ptr().get() != inner._mutable_data_ptr_no_checks().get()) {
    outer.set_data_ptr_noswap(face_of(Impl::reclaim_copy(&inner)));
  }
  if (outer.nbytes() != inner.nbytes()) outer.set_nbytes(inner.nbytes());
}

c10::Allocator& memory() {
  static auto* const memory = new Memory;  // storages outlive static objects
  return *memory;
}

void attach_memory() { c10::SetAllocator(kType, &memory()); }

}  // namespace graft::binding::ve

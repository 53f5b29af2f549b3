// src/torch/tensor/copy.cpp: copies between tensors of any device, dtype and layout.
#include "torch/tensor/copy.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/_copy_from_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <torch/library.h>

#include <chrono>
#include <cstring>
#include <memory>

#include "kernels/move/copy.h"
#include "runtime/driver/error.h"
#include "runtime/driver/op_tag.h"
#include "runtime/platform/peer_copy.h"
#include "runtime/platform/platform.h"
#include "runtime/stream/event.h"
#include "torch/device/errors.h"
#include "torch/device/fallback_count.h"
#include "torch/device/pinned.h"
#include "torch/device/sync_debug.h"
#include "torch/tensor/lazy_clone.h"
#include "torch/tensor/row_copy.h"
#include "torch/tensor/view.h"

namespace graft::binding {
namespace {

// How the raw elements change on their way, beside the dtype. Both commute with every cast.
struct Bits {
  bool conj = false;
  bool neg = false;
  bool any() const { return conj || neg; }
};

bool ours(const at::Tensor& tensor) { return tensor.device().type() == kDeviceType; }

size_t bytes_of(const at::Tensor& tensor) {
  return static_cast<size_t>(tensor.numel()) * tensor.dtype().itemsize();
}

bool packed(const at::Tensor& tensor) { return tensor.is_non_overlapping_and_dense(); }

bool same_layout(const at::Tensor& a, const at::Tensor& b) {
  return packed(a) && packed(b) &&
         (a.strides() == b.strides() || (a.is_contiguous() && b.is_contiguous()));
}

// Whether moving bytes is all there is to do.
bool plain(const at::Tensor& to, const at::Tensor& from, Bits bits) {
  return to.scalar_type() == from.scalar_type() && !bits.any() && same_layout(to, from);
}

// Whether elements stay as they are, wherever each goes.
bool same_elements(const at::Tensor& to, const at::Tensor& from, Bits bits) {
  return to.scalar_type() == from.scalar_type() && !bits.any();
}

// The host tensor without its lazy bits.
at::Tensor raw_host(const at::Tensor& tensor) {
  const auto options = at::TensorOptions().dtype(tensor.scalar_type());
  return at::from_blob(const_cast<void*>(tensor.const_data_ptr()), tensor.sizes(), tensor.strides(),
                       options);
}

at::Tensor host_like(const at::Tensor& layout, at::ScalarType dtype) {
  const auto options = at::TensorOptions().dtype(dtype);
  return packed(layout) ? at::empty_strided(layout.sizes(), layout.strides(), options)
                        : at::empty(layout.sizes(), options);
}

at::Tensor changed(at::Tensor host, Bits bits) {
  if (bits.conj && host.is_complex()) host = host.conj();
  return bits.neg ? host._neg_view() : host;
}

bool known(at::ScalarType type) {
  try {
    to_graft(type);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Both on one device; by a kernel, unless bytes are all that moves.
void copy_on_device(const at::Tensor& to, const at::Tensor& from, Bits bits) {
  const c10::DeviceIndex index = to.device().index();
  if (plain(to, from, bits)) {
    if (address_of(to) != address_of(from)) {
      current_stream(index).copy(address_of(to), address_of(from), bytes_of(to),
                                 GRAFT_DEVICE_TO_DEVICE);
    }
    return;
  }
  const bool as_bits =
      to.scalar_type() == from.scalar_type() && !bits.any() && !known(to.scalar_type());
  const graft_dtype raw = as_bits ? raw_dtype_of_size(to.dtype().itemsize()) : GRAFT_BOOL;
  graft::copy(current_stream(index), as_bits ? view_as(to, raw) : view_of(to),
              as_bits ? view_as(from, raw) : view_of(from), bits.conj, bits.neg);
}

// Every byte from the first element to the last, as a host tensor with the same strides.
at::Tensor fetch(const at::Tensor& tensor) {
  int64_t span = 1;
  for (int64_t i = 0; i < tensor.dim(); ++i) span += (tensor.size(i) - 1) * tensor.stride(i);
  at::Tensor flat = at::empty({span}, at::TensorOptions().dtype(tensor.scalar_type()));
  copy_out(flat.mutable_data_ptr(), flat, address_of(tensor), bytes_of(flat),
           tensor.device().index());
  return flat.as_strided(tensor.sizes(), tensor.strides());
}

// For devices that have memory and copies, but no kernel for this: a fallback like any other.
void through_the_host(const at::Tensor& to, const at::Tensor& from, Bits bits) {
  FallbackCounter& counter = fallback_counter("aten::copy_");
  counter.announce();
  const auto start = std::chrono::steady_clock::now();
  const at::Tensor source = fetch(from);
  const at::Tensor image = packed(to) ? host_like(to, to.scalar_type()) : fetch(to);
  image.copy_(changed(source, bits));
  const size_t sent = image.storage().nbytes(), read = source.storage().nbytes();
  copy_in(address_of(to), image.storage().data(), image, sent, to.device().index());
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  counter.add(read + sent * (packed(to) ? 1 : 2), passed.count());
}

void copy_within(const at::Tensor& to, const at::Tensor& from, Bits bits) {
  try {
    copy_on_device(to, from, bits);
  } catch (const Error& error) {
    if (!error.lacks_kernel()) throw;
    if (same_elements(to, from, bits) && copy_rows(to, from, false)) return;
    explain_fallback(error);
    through_the_host(to, from, bits);
  }
}

// from's raw elements in row-major order on its device; undefined where no kernel packs them.
at::Tensor gathered(const at::Tensor& from) {
  at::Tensor to = empty_graft(from.sizes(), from.scalar_type(), from.device());
  try {
    copy_on_device(to, from, {});
  } catch (const Error& error) {
    if (!error.lacks_kernel()) throw;
    return {};
  }
  return to;
}

void copy_across(const at::Tensor& to, const at::Tensor& from, Bits bits) {
  Stream& there = current_stream(from.device().index());
  Stream& here = current_stream(to.device().index());
  const bool direct = plain(to, from, bits);
  const at::Tensor source = direct || from.is_contiguous() ? from : gathered(from);
  if (!source.defined()) return through_the_host(to, from, bits);
  const at::Tensor target = direct ? to : empty_graft(to.sizes(), from.scalar_type(), to.device());
  Event written(there.device(), false), arrived(here.device(), false);
  written.record(there);
  here.wait(written);
  peer_copy(here, platform().device(here), address_of(target), platform().device(there),
            address_of(source), bytes_of(target));
  arrived.record(here);
  there.wait(arrived);
  if (!direct) copy_within(to, target, bits);
}

// The host may not look at pinned memory that a command in the queue still writes: what changes
// on the way changes on the device.
void copy_unread(const at::Tensor& to, const at::Tensor& from, const at::Tensor& owner, Bits bits) {
  const at::Tensor image =
      at::empty_strided(from.sizes(), from.strides(), to.options().dtype(from.scalar_type()));
  copy_in(address_of(image), from.const_data_ptr(), owner, bytes_of(from), to.device().index(),
          true);
  copy_within(to, image, bits);
}

void copy_to_device(const at::Tensor& to, const at::Tensor& from, Bits bits, bool non_blocking) {
  const c10::Device device = to.device();
  at::Tensor host = raw_host(from);
  const bool rows = same_elements(to, host, bits) && !plain(to, host, bits);
  if (rows && copy_rows(to, from, non_blocking)) return;
  const bool changes = non_blocking && packed(host) && !plain(to, host, bits);
  if (changes && is_pinned(host.const_data_ptr())) return copy_unread(to, host, from, bits);
  const at::Tensor target = packed(to) ? to : empty_graft(to.sizes(), to.scalar_type(), device);
  const bool direct = plain(target, host, bits);
  if (!direct) {
    at::Tensor staged = host_like(target, to.scalar_type());
    staged.copy_(changed(host, bits));
    host = staged;
  }
  copy_in(address_of(target), host.const_data_ptr(), direct ? from : host, bytes_of(host),
          device.index(), non_blocking && direct);
  if (!target.is_same(to)) copy_within(to, target, {});
}

void copy_to_host(const at::Tensor& to, const at::Tensor& from, Bits bits, bool non_blocking) {
  const c10::Device device = from.device();
  const at::Tensor target = raw_host(to);
  const bool rows = same_elements(target, from, bits) && !plain(target, from, bits);
  if (rows && copy_rows(to, from, non_blocking)) return;
  const at::Tensor source = packed(from) ? from : gathered(from);
  if (!source.defined()) {
    target.copy_(changed(fetch(from), bits));
    return;
  }
  if (plain(target, source, bits)) {
    copy_out(target.mutable_data_ptr(), to, address_of(source), bytes_of(source), device.index(),
             non_blocking);
    return;
  }
  const at::Tensor staged = host_like(source, source.scalar_type());
  copy_out(staged.mutable_data_ptr(), staged, address_of(source), bytes_of(source), device.index());
  target.copy_(changed(staged, bits));
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& to, bool non_blocking) {
  if (self.device().type() == kSlotType || to.device().type() == kSlotType) {
    return at::_ops::_copy_from::redispatch(c10::DispatchKeySet(kSlotKey), self, to, non_blocking);
  }
  const OpScope scope("aten::copy_");
  translate([&] { binding::copy(to, self, non_blocking); });
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& to) {
  to.resize_(self.sizes());
  return copy_from(self, to, false);
}

// The number of a dtype that lies at these bytes.
at::Scalar number_at(const void* bytes, at::ScalarType type) {
  switch (type) {
#define GRAFT_CASE(cpp, name) \
  case at::ScalarType::name:  \
    return at::Scalar(*static_cast<const cpp*>(bytes));
    AT_FORALL_SCALAR_TYPES_WITH_COMPLEX(GRAFT_CASE)
#undef GRAFT_CASE
    default:
      return at::from_blob(const_cast<void*>(bytes), {}, at::TensorOptions().dtype(type)).item();
  }
}

at::Scalar read_number(const at::Tensor& self) {
  const OpScope scope("aten::_local_scalar_dense");
  tell_of_wait("reading a number of the device");
  alignas(16) char bytes[16];
  translate([&] {
    current_stream(self.device().index()).read(bytes, address_of(self), self.dtype().itemsize());
  });
  const at::Scalar number = number_at(bytes, self.scalar_type());
  if (!self.is_conj() && !self.is_neg()) [[likely]]
    return number;
  const at::Scalar plain = self.is_conj() ? number.conj() : number;
  return self.is_neg() ? -plain : plain;
}

std::shared_ptr<const void> kept(const at::Tensor& owner) {
  return std::make_shared<const c10::Storage>(owner.storage());
}

}  // namespace

void copy_in(graft_address to, const void* from, const at::Tensor& owner, size_t bytes,
             c10::DeviceIndex device, bool non_blocking) {
  if (bytes == 0) return;
  Stream& stream = current_stream(device);
  const auto source = reinterpret_cast<uint64_t>(from);
  if (non_blocking && is_pinned(from)) {
    record_pinned(from, stream);
    stream.copy(to, source, bytes, GRAFT_HOST_TO_DEVICE);
    return;
  }
  stream.refuse_recording("a copy from host memory that is not pinned, or that blocks,");
  if (bytes <= kStagedBytes && !stream.query()) {
    PinnedAllocator& pinned = platform().device(stream).pinned_allocator();
    const auto give_back = [&](PinnedBlock* block) { pinned.free(block); };
    const std::unique_ptr<PinnedBlock, decltype(give_back)> stage(pinned.allocate(bytes),
                                                                  give_back);
    std::memcpy(stage->pointer, from, bytes);
    pinned.record_stream(stage.get(), stream);
    stream.copy(to, reinterpret_cast<uint64_t>(stage->pointer), bytes, GRAFT_HOST_TO_DEVICE);
  } else {
    if (bytes > kStagedBytes) tell_of_wait("a large copy from host memory that blocks");
    stream.copy(to, source, bytes, GRAFT_HOST_TO_DEVICE);
    stream.synchronize([&] { return kept(owner); });
  }
}

void copy_out(void* to, const at::Tensor& owner, graft_address from, size_t bytes,
              c10::DeviceIndex device, bool non_blocking) {
  if (bytes == 0) return;
  Stream& stream = current_stream(device);
  const bool behind = non_blocking && is_pinned(to);
  if (!behind) tell_of_wait("a copy to host memory that is not pinned, or that blocks");
  if (behind) record_pinned(to, stream);
  if (!behind) stream.refuse_recording("a copy to host memory that is not pinned, or that blocks,");
  stream.copy(reinterpret_cast<uint64_t>(to), from, bytes, GRAFT_DEVICE_TO_HOST);
  if (!behind) stream.synchronize([&] { return kept(owner); });
}

void copy(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  if (to.numel() == 0 || to.is_same(from)) return;
  at::assert_no_internal_overlap(to);
  if (lazy_clones_live()) [[unlikely]]
    own_memory(to);
  const at::Tensor source = from.sizes() == to.sizes() ? from : from.expand(to.sizes());
  const Bits bits{to.is_conj() != from.is_conj(), to.is_neg() != from.is_neg()};
  if (ours(to) && ours(source)) {
    if (to.device() != source.device()) return copy_across(to, source, bits);
    if (to.storage().is_alias_of(source.storage())) at::assert_no_partial_overlap(to, source);
    return copy_within(to, source, bits);
  }
  const c10::Device other = ours(to) ? source.device() : to.device();
  TORCH_CHECK(other.is_cpu(), "a copy between ", from.device(), " and ", to.device(),
              " is not possible: go through the CPU");
  if (ours(to)) {
    copy_to_device(to, source, bits, non_blocking);
  } else {
    copy_to_host(to, source, bits, non_blocking);
  }
}

TORCH_LIBRARY_IMPL(aten, GRAFT_DISPATCH_KEY, m) {
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &read_number);
}

// copy_from handles the lazy bits itself; their fallbacks would clone, which copies again.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace graft::binding

// src/torch/compiled/tensor_watch.cpp: whether a tensor still is, and holds, what it did.
#include "torch/compiled/tensor_watch.h"

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/memory/shared_memory.h"
#include "runtime/stream/device_streams.h"
#include "runtime/stream/event.h"
#include "torch/device/current.h"
#include "torch/tensor/memory.h"
#include "torch/ve/slot.h"

namespace graft::binding {
namespace {

// Null for memory that is not Graft's alone.
std::shared_ptr<const WatchedMemory> watch(const at::Tensor& tensor) {
  Block* const block = block_of(tensor.storage().data_ptr());
  if (block == nullptr) return nullptr;
  auto memory = watch_writes(block->stream->device(), block->address, block->bytes);
  // Asked after the watch began: a message from then on ends the trust itself.
  return shared_memory().was_sent(*block) ? nullptr : memory;
}

}  // namespace

TensorWatch::TensorWatch(std::vector<at::Tensor> tensors)
    : tensors_(std::move(tensors)), seen_(tensors_.size()) {}

bool TensorWatch::same(const at::Tensor& tensor, const Seen& seen) {
  if (seen.numel == 0) return tensor.numel() == 0;
  return seen.memory != nullptr && seen.memory->held() && seen.memory->trusted() &&
         seen.memory->epoch() == seen.epoch && tensor.const_data_ptr() == seen.data &&
         tensor.sizes() == at::IntArrayRef(seen.sizes) &&
         tensor.strides() == at::IntArrayRef(seen.strides);
}

bool TensorWatch::unchanged() const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!same(tensors_[i], seen_[i])) return false;
  }
  return true;
}

TensorWatch::Seen TensorWatch::seen(const at::Tensor& tensor,
                                    std::shared_ptr<const WatchedMemory> before) {
  Seen now;
  now.numel = tensor.numel();
  if (now.numel == 0) return now;
  const Block* block = block_of(tensor.storage().data_ptr());
  const bool known =
      before != nullptr && before->held() && block != nullptr && before->begins_at(block->address);
  now.memory = known ? std::move(before) : watch(tensor);
  if (now.memory != nullptr) now.epoch = now.memory->epoch();
  now.data = tensor.const_data_ptr();
  now.sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
  now.strides.assign(tensor.strides().begin(), tensor.strides().end());
  return now;
}

void TensorWatch::look() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    seen_[i] = seen(tensors_[i], std::move(seen_[i].memory));
  }
}

bool TensorWatch::trusted() const {
  return std::ranges::all_of(seen_, [](const Seen& seen) {
    return seen.numel == 0 || (seen.memory != nullptr && seen.memory->trusted());
  });
}

void TensorWatch::wait_for_writers() const {
  std::set<c10::DeviceIndex> indices;
  for (const at::Tensor& tensor : tensors_) indices.insert(ve::carrier_index(tensor.device()));
  for (const c10::DeviceIndex index : indices) {
    Stream& here = current_stream(index);
    for (Stream* other : here.siblings().all()) {
      if (other == &here) continue;
      Event done(here.device(), false);
      done.record(*other);
      here.wait(done);
    }
  }
}

}  // namespace graft::binding

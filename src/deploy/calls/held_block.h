// src/deploy/calls/held_block.h: device memory that has one owner.
#pragma once

#include <cstdint>
#include <utility>

#include "runtime/memory/allocator.h"
#include "runtime/platform/device.h"

namespace graft::deploy {

// A block of device memory that goes back when it dies, in its stream's order.
class HeldBlock {
 public:
  HeldBlock() = default;
  // bytes may be 0: no memory then. Throws what Allocator::allocate throws.
  HeldBlock(Device& device, Stream& stream, uint64_t bytes)
      : allocator_(&device.allocator()),
        block_(bytes == 0 ? nullptr : allocator_->allocate(bytes, stream)) {}
  HeldBlock(HeldBlock&& other) noexcept
      : allocator_(other.allocator_), block_(std::exchange(other.block_, nullptr)) {}
  HeldBlock& operator=(HeldBlock&& other) noexcept {
    std::swap(allocator_, other.allocator_), std::swap(block_, other.block_);
    return *this;
  }
  ~HeldBlock() {
    if (block_ != nullptr) allocator_->free(block_);
  }

  // Commands of another stream use the memory from now on. Thread-safe.
  void use_on(Stream& stream) const {
    if (block_ != nullptr && block_->stream != &stream) allocator_->record_stream(block_, stream);
  }

  graft_address address() const { return block_ == nullptr ? 0 : block_->address; }

 private:
  Allocator* allocator_ = nullptr;
  Block* block_ = nullptr;
};

}  // namespace graft::deploy

// src/deploy/calls/device_array.h: a tensor in device memory.
#pragma once

#include <memory>
#include <utility>

#include "deploy/calls/held_block.h"
#include "kernels/tensor/axes.h"
#include "kernels/tensor/view.h"

namespace graft::deploy {

// Row-major. Copies share the memory, which goes back with the last of them, in the order of the
// streams that use it.
class DeviceArray {
 public:
  // Memory for the view's dtype and sizes, in the order of the stream. Throws what
  // Allocator::allocate throws. REQUIRES: the view is row-major.
  DeviceArray(Device& device, Stream& stream, const TensorView& view)
      : DeviceArray(device, view, HeldBlock(device, stream, extent_bytes(view))) {}
  // The elements are at the block's begin.
  DeviceArray(Device& device, const TensorView& view, HeldBlock block)
      : device_(&device),
        view_(view),
        memory_(std::make_shared<const HeldBlock>(std::move(block))) {
    view_.address = memory_->address();
  }

  Device& device() const { return *device_; }
  const TensorView& view() const { return view_; }
  uint64_t bytes() const { return extent_bytes(view_); }

  // The stream's commands use the memory from now on.
  void use_on(Stream& stream) const { memory_->use_on(stream); }

 private:
  Device* device_;
  TensorView view_;
  std::shared_ptr<const HeldBlock> memory_;
};

}  // namespace graft::deploy

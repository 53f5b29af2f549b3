// src/kernels/launch/workspace.h: scratch device memory for the commands of one call.
#pragma once

#include <cstdint>

#include "graft/driver.h"
#include "kernels/tensor/axes.h"
#include "runtime/driver/dtype.h"
#include "runtime/memory/allocator.h"
#include "runtime/stream/stream.h"

namespace graft {

// Memory from the stream's device for as long as the object lives. Freed in stream order: commands
// that were queued before the destructor ran may still use it. Bytes of 0 give address 0.
class Workspace {
 public:
  // Throws Error OUT_OF_MEMORY.
  Workspace(Stream& stream, uint64_t bytes);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  graft_address address() const { return block_ == nullptr ? 0 : block_->address; }

 private:
  Allocator& allocator_;
  Block* block_ = nullptr;
};

// Such memory as a contiguous tensor of another one's sizes, in a dtype.
class ScratchTensor {
 public:
  ScratchTensor(Stream& stream, const TensorView& sizes, graft_dtype dtype)
      : memory_(stream, static_cast<uint64_t>(sizes.count()) * size_of(dtype)),
        view_(contiguous_like(sizes, memory_.address(), dtype)) {}

  const TensorView& view() const { return view_; }

 private:
  Workspace memory_;
  TensorView view_;
};

}  // namespace graft

// src/kernels/launch/workspace.h: scratch device memory for the commands of one call.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "graft/driver.h"
#include "kernels/tensor/view.h"
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

// A contiguous tensor in such memory.
class ScratchTensor {
 public:
  // The sizes are those of a view, or as given.
  ScratchTensor(Stream& stream, const TensorView& like, graft_dtype dtype);
  ScratchTensor(Stream& stream, graft_dtype dtype, std::initializer_list<int64_t> sizes);

  const TensorView& view() const { return view_; }

 private:
  Workspace memory_;
  TensorView view_;
};

}  // namespace graft

// src/kernels/launch/workspace.cpp: scratch device memory for the commands of one call.
#include "kernels/launch/workspace.h"

namespace graft {

Workspace::Workspace(Stream& stream, uint64_t bytes) : allocator_(stream.allocator()) {
  if (bytes > 0) block_ = allocator_.allocate(bytes, stream);
}

Workspace::~Workspace() {
  if (block_ != nullptr) allocator_.free(block_);
}

}  // namespace graft

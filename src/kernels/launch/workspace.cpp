// src/kernels/launch/workspace.cpp: scratch device memory for the commands of one call.
#include "kernels/launch/workspace.h"

#include <algorithm>

#include "kernels/tensor/axes.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

TensorView of_sizes(graft_dtype dtype, std::initializer_list<int64_t> sizes) {
  TensorView view{};
  view.rank = static_cast<int>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), view.sizes);
  return contiguous_like(view, 0, dtype);
}

}  // namespace

Workspace::Workspace(Stream& stream, uint64_t bytes) : allocator_(stream.allocator()) {
  if (bytes > 0) block_ = allocator_.allocate(bytes, stream);
}

Workspace::~Workspace() {
  if (block_ != nullptr) allocator_.free(block_);
}

ScratchTensor::ScratchTensor(Stream& stream, const TensorView& like, graft_dtype dtype)
    : memory_(stream, static_cast<uint64_t>(like.count()) * size_of(dtype)),
      view_(contiguous_like(like, memory_.address(), dtype)) {}

ScratchTensor::ScratchTensor(Stream& stream, graft_dtype dtype,
                             std::initializer_list<int64_t> sizes)
    : ScratchTensor(stream, of_sizes(dtype, sizes), dtype) {}

}  // namespace graft

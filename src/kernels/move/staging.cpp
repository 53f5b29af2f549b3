// src/kernels/move/staging.cpp: contiguous stand-ins for views that a kernel does not take as they
// lie.
#include "kernels/move/staging.h"

#include <algorithm>

#include "kernels/move/copy.h"
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

ScratchTensor::ScratchTensor(Stream& stream, const TensorView& like, graft_dtype dtype)
    : view_(contiguous_like(like, 0, dtype)),
      workspace_(stream, static_cast<uint64_t>(like.count()) * size_of(dtype)) {
  view_.address = workspace_.address();
}

ScratchTensor::ScratchTensor(Stream& stream, graft_dtype dtype,
                             std::initializer_list<int64_t> sizes)
    : ScratchTensor(stream, of_sizes(dtype, sizes), dtype) {}

StagedInput::StagedInput(Stream& stream, const TensorView& view, bool stage, graft_dtype dtype)
    : view_(view) {
  if (!stage && dtype == view.dtype) return;
  copy_.emplace(stream, view, dtype);
  copy(stream, copy_->view(), view);
}

StagedOutput::StagedOutput(Stream& stream, const TensorView& view, bool stage, graft_dtype dtype)
    : stream_(stream), target_(view) {
  if (stage || dtype != view.dtype) instead_.emplace(stream, view, dtype);
}

void StagedOutput::finish() {
  if (instead_) copy(stream_, target_, instead_->view());
}

}  // namespace graft

// src/kernels/move/staging.cpp: contiguous stand-ins for views that a kernel does not take as they
// lie.
#include "kernels/move/staging.h"

#include "kernels/move/copy.h"

namespace graft {

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

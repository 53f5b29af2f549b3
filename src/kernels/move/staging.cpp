// src/kernels/move/staging.cpp: contiguous stand-ins for views that a kernel does not take as they
// lie.
#include "kernels/move/staging.h"

#include "kernels/move/copy.h"
#include "kernels/tensor/axes.h"
#include "runtime/driver/dtype.h"

namespace graft {

StagedInput::StagedInput(Stream& stream, const TensorView& view, bool stage, graft_dtype dtype)
    : view_(view) {
  if (!stage && dtype == view.dtype) return;
  workspace_.emplace(stream, static_cast<uint64_t>(view.count()) * size_of(dtype));
  view_ = contiguous_like(view, workspace_->address(), dtype);
  copy(stream, view_, view);
}

StagedOutput::StagedOutput(Stream& stream, const TensorView& view, bool stage)
    : stream_(stream), target_(view), view_(view) {
  if (!stage) return;
  workspace_.emplace(stream, static_cast<uint64_t>(view.count()) * size_of(view.dtype));
  view_ = contiguous_like(view, workspace_->address(), view.dtype);
}

void StagedOutput::finish() {
  if (workspace_) copy(stream_, target_, view_);
}

}  // namespace graft

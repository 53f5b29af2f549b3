// src/kernels/move/staging.h: contiguous stand-ins for views that a kernel does not take as they
// lie.
#pragma once

#include <optional>

#include "kernels/launch/workspace.h"
#include "kernels/tensor/view.h"

namespace graft {

// The view itself, or a contiguous copy of it when stage is set (by default: when the view is not
// contiguous) or dtype is another one than the view's. Lives as long as the commands of its call
// are queued.
class StagedInput {
 public:
  StagedInput(Stream& stream, const TensorView& view)
      : StagedInput(stream, view, !view.contiguous()) {}
  StagedInput(Stream& stream, const TensorView& view, bool stage)
      : StagedInput(stream, view, stage, view.dtype) {}
  StagedInput(Stream& stream, const TensorView& view, bool stage, graft_dtype dtype);
  const TensorView& view() const { return copy_ ? copy_->view() : view_; }

 private:
  TensorView view_;
  std::optional<ScratchTensor> copy_;
};

// The view itself, or in the same cases contiguous memory of the dtype that finish() copies to it.
class StagedOutput {
 public:
  StagedOutput(Stream& stream, const TensorView& view)
      : StagedOutput(stream, view, !view.contiguous()) {}
  StagedOutput(Stream& stream, const TensorView& view, bool stage)
      : StagedOutput(stream, view, stage, view.dtype) {}
  StagedOutput(Stream& stream, const TensorView& view, bool stage, graft_dtype dtype);
  const TensorView& view() const { return instead_ ? instead_->view() : target_; }
  void finish();

 private:
  Stream& stream_;
  TensorView target_;
  std::optional<ScratchTensor> instead_;
};

}  // namespace graft

// src/kernels/move/staging.h: contiguous stand-ins for views that a kernel does not take as they
// lie.
#pragma once

#include <optional>

#include "kernels/launch/workspace.h"
#include "kernels/tensor/view.h"

namespace graft {

// The view itself, or a contiguous copy of it when stage is set or dtype is another one than the
// view's. Lives as long as the commands of its call are queued.
class StagedInput {
 public:
  StagedInput(Stream& stream, const TensorView& view, bool stage)
      : StagedInput(stream, view, stage, view.dtype) {}
  StagedInput(Stream& stream, const TensorView& view, bool stage, graft_dtype dtype);
  const TensorView& view() const { return view_; }

 private:
  TensorView view_;
  std::optional<Workspace> workspace_;
};

// The view itself, or contiguous memory that finish() copies to it.
class StagedOutput {
 public:
  StagedOutput(Stream& stream, const TensorView& view, bool stage);
  const TensorView& view() const { return view_; }
  void finish();

 private:
  Stream& stream_;
  TensorView target_;
  TensorView view_;
  std::optional<Workspace> workspace_;
};

}  // namespace graft

// src/kernels/matmul/panels.h: matrices laid out for register-blocked products, in float32.
#pragma once

#include "kernels/launch/workspace.h"
#include "kernels/tensor/view.h"

namespace graft {

// Lines of width elements, depth after depth: element (line, k) of panel line / width lies at
// (panel * depth + k) * width + line % width. Lines beyond the last are zeros.
class Panels {
 public:
  // Packs the lines of a matrix of rank 2, or of a batch of rank 3, which run along dimension
  // depth; the other of the last two dimensions counts them. dtype: float32 or a half type.
  // Lives as long as the commands of its call are queued.
  Panels(Stream& stream, const TensorView& matrix, int depth, int64_t width);

  graft_address address() const { return workspace_.address(); }
  uint64_t bytes() const { return bytes_; }
  // From one matrix of the batch to the next, in elements; 0 where all are the same.
  int64_t batch_stride() const { return batch_stride_; }

 private:
  int64_t batch_stride_;
  uint64_t bytes_;
  Workspace workspace_;
};

}  // namespace graft

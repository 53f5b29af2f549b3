// src/kernels/pooling/planes.h: pooling of images that do not lie channels last.
#pragma once

#include "kernels/launch/work_split.h"
#include "kernels/pooling/plane_kernel.h"
#include "kernels/pooling/pooling.h"

namespace graft {

// One pooling in planes. Each method takes views of rank 4 with elements, launches and gives true,
// or gives false and does nothing where kernels over channels are the better or only choice:
// channels last, or sizes beyond kPlaneSide and kPlaneReach.
class PlanePool {
 public:
  explicit PlanePool(const PoolWindow& window, int64_t divisor = 0, bool count_padding = false)
      : window_(window), divisor_(divisor), count_padding_(count_padding) {}

  bool max(Stream& stream, const TensorView& output, const TensorView& indices,
           const TensorView& input) const;
  bool max_backward(Stream& stream, const TensorView& grad_input, const TensorView& grad_output,
                    const TensorView& indices) const;
  // written is the gradient of the input when backward, else the output.
  bool average(Stream& stream, bool backward, const TensorView& written,
               const TensorView& read) const;
  // The same with the windows of adaptive_avg_pool2d; the window given is not used.
  static bool adaptive(Stream& stream, bool backward, const TensorView& written,
                       const TensorView& read);

 private:
  // Its lines are rows.
  WorkSplit rows(const TensorView& written, int64_t work) const;
  bool fits(const TensorView& written, const TensorView& read, const WorkSplit& rows) const;
  bool average(Stream& stream, const PlanePoolKernel& kernel, const TensorView& written,
               const TensorView& read, int64_t work) const;
  // Windows reach over the edge by more than margin times the padding.
  bool clipped(const TensorView& large, const TensorView& small, int64_t margin) const;
  void launch(Stream& stream, PlanePoolKernel kernel, const TensorView& written,
              const TensorView* indices, const TensorView& read, const WorkSplit& rows) const;

  PoolWindow window_;
  int64_t divisor_;
  bool count_padding_;
};

}  // namespace graft

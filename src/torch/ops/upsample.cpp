// src/torch/ops/upsample.cpp: interpolation of lines, images and volumes, and its gradients.
#include <initializer_list>
#include <optional>

#include "kernels/resample/interpolate.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

using Scale = std::optional<double>;
using Scales = std::initializer_list<Scale>;  // one per dimension that changes
void forward(Resizing::Filter filter, const at::Tensor& self, bool align, Scales scales,
             const at::Tensor& out) {
  require_floating_or(at::kByte, self);
  interpolate(stream_of(self), view_of(out), view_of(self), {filter, align, scales});
}

void backward(Resizing::Filter filter, const at::Tensor& grad_output, bool align, Scales scales,
              const at::Tensor& grad_input) {
  require_floating_or(at::kByte, grad_output);
  interpolate_backward(stream_of(grad_output), view_of(grad_input), view_of(grad_output),
                       {filter, align, scales});
}

}  // namespace

// Defines an operator and its gradient by their names: parameters stand between the sizes and the
// result, and what follows here is align_corners and the scale of each dimension that changes.
#define GRAFT_LISTED(...) __VA_ARGS__
#define GRAFT_RESIZES(into, gradient, filter, parameters, ...)                   \
  void into(const at::Tensor& self, at::IntArrayRef, GRAFT_LISTED parameters,    \
            const at::Tensor& out) {                                             \
    forward(Resizing::filter, self, __VA_ARGS__, out);                           \
  }                                                                              \
  void gradient(const at::Tensor& grad_output, at::IntArrayRef, at::IntArrayRef, \
                GRAFT_LISTED parameters, const at::Tensor& grad_input) {         \
    backward(Resizing::filter, grad_output, __VA_ARGS__, grad_input);            \
  }

GRAFT_RESIZES(GRAFT_STRUCTURED(upsample_nearest1d_out),
              GRAFT_STRUCTURED(upsample_nearest1d_backward_grad_input), kNearest, (Scale x), false,
              {x})
GRAFT_RESIZES(GRAFT_STRUCTURED(upsample_nearest2d_out),
              GRAFT_STRUCTURED(upsample_nearest2d_backward_grad_input), kNearest,
              (Scale y, Scale x), false, {y, x})
GRAFT_RESIZES(GRAFT_STRUCTURED(upsample_nearest3d_out),
              GRAFT_STRUCTURED(upsample_nearest3d_backward_grad_input), kNearest,
              (Scale z, Scale y, Scale x), false, {z, y, x})
GRAFT_RESIZES(GRAFT_STRUCTURED(_upsample_nearest_exact1d_out),
              GRAFT_STRUCTURED(_upsample_nearest_exact1d_backward_grad_input), kNearestExact,
              (Scale x), false, {x})
GRAFT_RESIZES(GRAFT_STRUCTURED(_upsample_nearest_exact2d_out),
              GRAFT_STRUCTURED(_upsample_nearest_exact2d_backward_grad_input), kNearestExact,
              (Scale y, Scale x), false, {y, x})
GRAFT_RESIZES(GRAFT_STRUCTURED(_upsample_nearest_exact3d_out),
              GRAFT_STRUCTURED(_upsample_nearest_exact3d_backward_grad_input), kNearestExact,
              (Scale z, Scale y, Scale x), false, {z, y, x})
GRAFT_RESIZES(GRAFT_STRUCTURED(upsample_linear1d_out),
              GRAFT_STRUCTURED(upsample_linear1d_backward_grad_input), kLinear,
              (bool align, Scale x), align, {x})
GRAFT_RESIZES(GRAFT_STRUCTURED(upsample_bilinear2d_out),
              GRAFT_STRUCTURED(upsample_bilinear2d_backward_grad_input), kLinear,
              (bool align, Scale y, Scale x), align, {y, x})
GRAFT_RESIZES(GRAFT_STRUCTURED(upsample_trilinear3d_out),
              GRAFT_STRUCTURED(upsample_trilinear3d_backward_grad_input), kLinear,
              (bool align, Scale z, Scale y, Scale x), align, {z, y, x})
GRAFT_RESIZES(GRAFT_STRUCTURED(upsample_bicubic2d_out),
              GRAFT_STRUCTURED(upsample_bicubic2d_backward_grad_input), kCubic,
              (bool align, Scale y, Scale x), align, {y, x})
GRAFT_RESIZES(GRAFT_STRUCTURED(_upsample_bilinear2d_aa_out),
              GRAFT_STRUCTURED(_upsample_bilinear2d_aa_backward_grad_input), kLinearAntialias,
              (bool align, Scale y, Scale x), align, {y, x})
GRAFT_RESIZES(GRAFT_STRUCTURED(_upsample_bicubic2d_aa_out),
              GRAFT_STRUCTURED(_upsample_bicubic2d_aa_backward_grad_input), kCubicAntialias,
              (bool align, Scale y, Scale x), align, {y, x})
GRAFT_RESIZES(GRAFT_STRUCTURED(_upsample_lanczos2d_aa_out),
              GRAFT_STRUCTURED(_upsample_lanczos2d_aa_backward_grad_input), kLanczosAntialias,
              (bool align, Scale y, Scale x), align, {y, x})

}  // namespace graft::binding

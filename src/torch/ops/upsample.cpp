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

void GRAFT_STRUCTURED(upsample_nearest1d_out)(const at::Tensor& self, at::IntArrayRef, Scale first,
                                              const at::Tensor& out) {
  forward(Resizing::kNearest, self, false, {first}, out);
}
void GRAFT_STRUCTURED(upsample_nearest1d_backward_grad_input)(const at::Tensor& grad_output,
                                                              at::IntArrayRef, at::IntArrayRef,
                                                              Scale first,
                                                              const at::Tensor& grad_input) {
  backward(Resizing::kNearest, grad_output, false, {first}, grad_input);
}

void GRAFT_STRUCTURED(upsample_nearest2d_out)(const at::Tensor& self, at::IntArrayRef, Scale first,
                                              Scale second, const at::Tensor& out) {
  forward(Resizing::kNearest, self, false, {first, second}, out);
}
void GRAFT_STRUCTURED(upsample_nearest2d_backward_grad_input)(const at::Tensor& grad_output,
                                                              at::IntArrayRef, at::IntArrayRef,
                                                              Scale first, Scale second,
                                                              const at::Tensor& grad_input) {
  backward(Resizing::kNearest, grad_output, false, {first, second}, grad_input);
}

void GRAFT_STRUCTURED(upsample_nearest3d_out)(const at::Tensor& self, at::IntArrayRef, Scale first,
                                              Scale second, Scale third, const at::Tensor& out) {
  forward(Resizing::kNearest, self, false, {first, second, third}, out);
}
void GRAFT_STRUCTURED(upsample_nearest3d_backward_grad_input)(const at::Tensor& grad_output,
                                                              at::IntArrayRef, at::IntArrayRef,
                                                              Scale first, Scale second,
                                                              Scale third,
                                                              const at::Tensor& grad_input) {
  backward(Resizing::kNearest, grad_output, false, {first, second, third}, grad_input);
}

void GRAFT_STRUCTURED(_upsample_nearest_exact1d_out)(const at::Tensor& self, at::IntArrayRef,
                                                     Scale first, const at::Tensor& out) {
  forward(Resizing::kNearestExact, self, false, {first}, out);
}
void GRAFT_STRUCTURED(_upsample_nearest_exact1d_backward_grad_input)(const at::Tensor& grad_output,
                                                                     at::IntArrayRef,
                                                                     at::IntArrayRef, Scale first,
                                                                     const at::Tensor& grad_input) {
  backward(Resizing::kNearestExact, grad_output, false, {first}, grad_input);
}

void GRAFT_STRUCTURED(_upsample_nearest_exact2d_out)(const at::Tensor& self, at::IntArrayRef,
                                                     Scale first, Scale second,
                                                     const at::Tensor& out) {
  forward(Resizing::kNearestExact, self, false, {first, second}, out);
}
void GRAFT_STRUCTURED(_upsample_nearest_exact2d_backward_grad_input)(const at::Tensor& grad_output,
                                                                     at::IntArrayRef,
                                                                     at::IntArrayRef, Scale first,
                                                                     Scale second,
                                                                     const at::Tensor& grad_input) {
  backward(Resizing::kNearestExact, grad_output, false, {first, second}, grad_input);
}

void GRAFT_STRUCTURED(_upsample_nearest_exact3d_out)(const at::Tensor& self, at::IntArrayRef,
                                                     Scale first, Scale second, Scale third,
                                                     const at::Tensor& out) {
  forward(Resizing::kNearestExact, self, false, {first, second, third}, out);
}
void GRAFT_STRUCTURED(_upsample_nearest_exact3d_backward_grad_input)(const at::Tensor& grad_output,
                                                                     at::IntArrayRef,
                                                                     at::IntArrayRef, Scale first,
                                                                     Scale second, Scale third,
                                                                     const at::Tensor& grad_input) {
  backward(Resizing::kNearestExact, grad_output, false, {first, second, third}, grad_input);
}

void GRAFT_STRUCTURED(upsample_linear1d_out)(const at::Tensor& self, at::IntArrayRef, bool align,
                                             Scale first, const at::Tensor& out) {
  forward(Resizing::kLinear, self, align, {first}, out);
}
void GRAFT_STRUCTURED(upsample_linear1d_backward_grad_input)(const at::Tensor& grad_output,
                                                             at::IntArrayRef, at::IntArrayRef,
                                                             bool align, Scale first,
                                                             const at::Tensor& grad_input) {
  backward(Resizing::kLinear, grad_output, align, {first}, grad_input);
}

void GRAFT_STRUCTURED(upsample_bilinear2d_out)(const at::Tensor& self, at::IntArrayRef, bool align,
                                               Scale first, Scale second, const at::Tensor& out) {
  forward(Resizing::kLinear, self, align, {first, second}, out);
}
void GRAFT_STRUCTURED(upsample_bilinear2d_backward_grad_input)(const at::Tensor& grad_output,
                                                               at::IntArrayRef, at::IntArrayRef,
                                                               bool align, Scale first,
                                                               Scale second,
                                                               const at::Tensor& grad_input) {
  backward(Resizing::kLinear, grad_output, align, {first, second}, grad_input);
}

void GRAFT_STRUCTURED(upsample_trilinear3d_out)(const at::Tensor& self, at::IntArrayRef, bool align,
                                                Scale first, Scale second, Scale third,
                                                const at::Tensor& out) {
  forward(Resizing::kLinear, self, align, {first, second, third}, out);
}
void GRAFT_STRUCTURED(upsample_trilinear3d_backward_grad_input)(const at::Tensor& grad_output,
                                                                at::IntArrayRef, at::IntArrayRef,
                                                                bool align, Scale first,
                                                                Scale second, Scale third,
                                                                const at::Tensor& grad_input) {
  backward(Resizing::kLinear, grad_output, align, {first, second, third}, grad_input);
}

void GRAFT_STRUCTURED(upsample_bicubic2d_out)(const at::Tensor& self, at::IntArrayRef, bool align,
                                              Scale first, Scale second, const at::Tensor& out) {
  forward(Resizing::kCubic, self, align, {first, second}, out);
}
void GRAFT_STRUCTURED(upsample_bicubic2d_backward_grad_input)(const at::Tensor& grad_output,
                                                              at::IntArrayRef, at::IntArrayRef,
                                                              bool align, Scale first, Scale second,
                                                              const at::Tensor& grad_input) {
  backward(Resizing::kCubic, grad_output, align, {first, second}, grad_input);
}

void GRAFT_STRUCTURED(_upsample_bilinear2d_aa_out)(const at::Tensor& self, at::IntArrayRef,
                                                   bool align, Scale first, Scale second,
                                                   const at::Tensor& out) {
  forward(Resizing::kLinearAntialias, self, align, {first, second}, out);
}
void GRAFT_STRUCTURED(_upsample_bilinear2d_aa_backward_grad_input)(const at::Tensor& grad_output,
                                                                   at::IntArrayRef, at::IntArrayRef,
                                                                   bool align, Scale first,
                                                                   Scale second,
                                                                   const at::Tensor& grad_input) {
  backward(Resizing::kLinearAntialias, grad_output, align, {first, second}, grad_input);
}

void GRAFT_STRUCTURED(_upsample_bicubic2d_aa_out)(const at::Tensor& self, at::IntArrayRef,
                                                  bool align, Scale first, Scale second,
                                                  const at::Tensor& out) {
  forward(Resizing::kCubicAntialias, self, align, {first, second}, out);
}
void GRAFT_STRUCTURED(_upsample_bicubic2d_aa_backward_grad_input)(const at::Tensor& grad_output,
                                                                  at::IntArrayRef, at::IntArrayRef,
                                                                  bool align, Scale first,
                                                                  Scale second,
                                                                  const at::Tensor& grad_input) {
  backward(Resizing::kCubicAntialias, grad_output, align, {first, second}, grad_input);
}

void GRAFT_STRUCTURED(_upsample_lanczos2d_aa_out)(const at::Tensor& self, at::IntArrayRef,
                                                  bool align, Scale first, Scale second,
                                                  const at::Tensor& out) {
  forward(Resizing::kLanczosAntialias, self, align, {first, second}, out);
}
void GRAFT_STRUCTURED(_upsample_lanczos2d_aa_backward_grad_input)(const at::Tensor& grad_output,
                                                                  at::IntArrayRef, at::IntArrayRef,
                                                                  bool align, Scale first,
                                                                  Scale second,
                                                                  const at::Tensor& grad_input) {
  backward(Resizing::kLanczosAntialias, grad_output, align, {first, second}, grad_input);
}

}  // namespace graft::binding

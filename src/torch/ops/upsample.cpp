// src/torch/ops/upsample.cpp: interpolation of lines, images and volumes, and its gradients.
#include "kernels/resample/upsample.h"

#include <initializer_list>
#include <optional>
#include <vector>

#include "kernels/resample/resample.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

using Scale = std::optional<double>;
using Scales = std::initializer_list<Scale>;
using Make = LinearMap (*)(const Interpolation&);

// One map for each of the last dimensions of small, which is interpolated to large.
std::vector<LinearMap> maps_of(Make make, const at::Tensor& small, const at::Tensor& large,
                               bool align, Scales scales) {
  std::vector<LinearMap> maps;
  int64_t d = small.dim() - static_cast<int64_t>(scales.size());
  const bool wide = small.scalar_type() == at::kDouble || small.scalar_type() == at::kByte;
  for (const Scale& scale : scales) {
    maps.push_back(make({small.size(d), large.size(d), align, scale, wide}));
    ++d;
  }
  return maps;
}

void forward(Make make, const at::Tensor& self, bool align, Scales scales, const at::Tensor& out) {
  require_floating_or(at::kByte, self);
  if (out.numel() == 0) return;
  const std::vector<LinearMap> maps = maps_of(make, self, out, align, scales);
  const bool picks = maps.front().picks();
  // PyTorch interpolates bytes in images alone.
  if (self.scalar_type() == at::kByte && !picks && scales.size() == 2) {
    return resample_bytes(stream_of(self), view_of(out), view_of(self), maps);
  }
  resample(stream_of(self), view_of(out), view_of(self), maps);
}

void backward(Make make, const at::Tensor& grad_output, bool align, Scales scales,
              const at::Tensor& grad_input) {
  require_floating_or(at::kByte, grad_output);
  if (grad_input.numel() == 0) return;
  std::vector<LinearMap> maps = maps_of(make, grad_input, grad_output, align, scales);
  for (LinearMap& map : maps) map = map.transposed();
  resample(stream_of(grad_output), view_of(grad_input), view_of(grad_output), maps);
}

LinearMap linear_antialias_taps(const Interpolation& line) {
  return antialias_taps(line, Filter::kLinear);
}
LinearMap cubic_antialias_taps(const Interpolation& line) {
  return antialias_taps(line, Filter::kCubic);
}
LinearMap lanczos_antialias_taps(const Interpolation& line) {
  return antialias_taps(line, Filter::kLanczos);
}

}  // namespace

void GRAFT_STRUCTURED(upsample_nearest1d_out)(const at::Tensor& self, at::IntArrayRef, Scale first,
                                              const at::Tensor& out) {
  forward(&nearest_taps, self, false, {first}, out);
}
void GRAFT_STRUCTURED(upsample_nearest1d_backward_grad_input)(const at::Tensor& grad_output,
                                                              at::IntArrayRef, at::IntArrayRef,
                                                              Scale first,
                                                              const at::Tensor& grad_input) {
  backward(&nearest_taps, grad_output, false, {first}, grad_input);
}

void GRAFT_STRUCTURED(upsample_nearest2d_out)(const at::Tensor& self, at::IntArrayRef, Scale first,
                                              Scale second, const at::Tensor& out) {
  forward(&nearest_taps, self, false, {first, second}, out);
}
void GRAFT_STRUCTURED(upsample_nearest2d_backward_grad_input)(const at::Tensor& grad_output,
                                                              at::IntArrayRef, at::IntArrayRef,
                                                              Scale first, Scale second,
                                                              const at::Tensor& grad_input) {
  backward(&nearest_taps, grad_output, false, {first, second}, grad_input);
}

void GRAFT_STRUCTURED(upsample_nearest3d_out)(const at::Tensor& self, at::IntArrayRef, Scale first,
                                              Scale second, Scale third, const at::Tensor& out) {
  forward(&nearest_taps, self, false, {first, second, third}, out);
}
void GRAFT_STRUCTURED(upsample_nearest3d_backward_grad_input)(const at::Tensor& grad_output,
                                                              at::IntArrayRef, at::IntArrayRef,
                                                              Scale first, Scale second,
                                                              Scale third,
                                                              const at::Tensor& grad_input) {
  backward(&nearest_taps, grad_output, false, {first, second, third}, grad_input);
}

void GRAFT_STRUCTURED(_upsample_nearest_exact1d_out)(const at::Tensor& self, at::IntArrayRef,
                                                     Scale first, const at::Tensor& out) {
  forward(&nearest_exact_taps, self, false, {first}, out);
}
void GRAFT_STRUCTURED(_upsample_nearest_exact1d_backward_grad_input)(const at::Tensor& grad_output,
                                                                     at::IntArrayRef,
                                                                     at::IntArrayRef, Scale first,
                                                                     const at::Tensor& grad_input) {
  backward(&nearest_exact_taps, grad_output, false, {first}, grad_input);
}

void GRAFT_STRUCTURED(_upsample_nearest_exact2d_out)(const at::Tensor& self, at::IntArrayRef,
                                                     Scale first, Scale second,
                                                     const at::Tensor& out) {
  forward(&nearest_exact_taps, self, false, {first, second}, out);
}
void GRAFT_STRUCTURED(_upsample_nearest_exact2d_backward_grad_input)(const at::Tensor& grad_output,
                                                                     at::IntArrayRef,
                                                                     at::IntArrayRef, Scale first,
                                                                     Scale second,
                                                                     const at::Tensor& grad_input) {
  backward(&nearest_exact_taps, grad_output, false, {first, second}, grad_input);
}

void GRAFT_STRUCTURED(_upsample_nearest_exact3d_out)(const at::Tensor& self, at::IntArrayRef,
                                                     Scale first, Scale second, Scale third,
                                                     const at::Tensor& out) {
  forward(&nearest_exact_taps, self, false, {first, second, third}, out);
}
void GRAFT_STRUCTURED(_upsample_nearest_exact3d_backward_grad_input)(const at::Tensor& grad_output,
                                                                     at::IntArrayRef,
                                                                     at::IntArrayRef, Scale first,
                                                                     Scale second, Scale third,
                                                                     const at::Tensor& grad_input) {
  backward(&nearest_exact_taps, grad_output, false, {first, second, third}, grad_input);
}

void GRAFT_STRUCTURED(upsample_linear1d_out)(const at::Tensor& self, at::IntArrayRef, bool align,
                                             Scale first, const at::Tensor& out) {
  forward(&linear_taps, self, align, {first}, out);
}
void GRAFT_STRUCTURED(upsample_linear1d_backward_grad_input)(const at::Tensor& grad_output,
                                                             at::IntArrayRef, at::IntArrayRef,
                                                             bool align, Scale first,
                                                             const at::Tensor& grad_input) {
  backward(&linear_taps, grad_output, align, {first}, grad_input);
}

void GRAFT_STRUCTURED(upsample_bilinear2d_out)(const at::Tensor& self, at::IntArrayRef, bool align,
                                               Scale first, Scale second, const at::Tensor& out) {
  forward(&linear_taps, self, align, {first, second}, out);
}
void GRAFT_STRUCTURED(upsample_bilinear2d_backward_grad_input)(const at::Tensor& grad_output,
                                                               at::IntArrayRef, at::IntArrayRef,
                                                               bool align, Scale first,
                                                               Scale second,
                                                               const at::Tensor& grad_input) {
  backward(&linear_taps, grad_output, align, {first, second}, grad_input);
}

void GRAFT_STRUCTURED(upsample_trilinear3d_out)(const at::Tensor& self, at::IntArrayRef, bool align,
                                                Scale first, Scale second, Scale third,
                                                const at::Tensor& out) {
  forward(&linear_taps, self, align, {first, second, third}, out);
}
void GRAFT_STRUCTURED(upsample_trilinear3d_backward_grad_input)(const at::Tensor& grad_output,
                                                                at::IntArrayRef, at::IntArrayRef,
                                                                bool align, Scale first,
                                                                Scale second, Scale third,
                                                                const at::Tensor& grad_input) {
  backward(&linear_taps, grad_output, align, {first, second, third}, grad_input);
}

void GRAFT_STRUCTURED(upsample_bicubic2d_out)(const at::Tensor& self, at::IntArrayRef, bool align,
                                              Scale first, Scale second, const at::Tensor& out) {
  forward(&cubic_taps, self, align, {first, second}, out);
}
void GRAFT_STRUCTURED(upsample_bicubic2d_backward_grad_input)(const at::Tensor& grad_output,
                                                              at::IntArrayRef, at::IntArrayRef,
                                                              bool align, Scale first, Scale second,
                                                              const at::Tensor& grad_input) {
  backward(&cubic_taps, grad_output, align, {first, second}, grad_input);
}

void GRAFT_STRUCTURED(_upsample_bilinear2d_aa_out)(const at::Tensor& self, at::IntArrayRef,
                                                   bool align, Scale first, Scale second,
                                                   const at::Tensor& out) {
  forward(&linear_antialias_taps, self, align, {first, second}, out);
}
void GRAFT_STRUCTURED(_upsample_bilinear2d_aa_backward_grad_input)(const at::Tensor& grad_output,
                                                                   at::IntArrayRef, at::IntArrayRef,
                                                                   bool align, Scale first,
                                                                   Scale second,
                                                                   const at::Tensor& grad_input) {
  backward(&linear_antialias_taps, grad_output, align, {first, second}, grad_input);
}

void GRAFT_STRUCTURED(_upsample_bicubic2d_aa_out)(const at::Tensor& self, at::IntArrayRef,
                                                  bool align, Scale first, Scale second,
                                                  const at::Tensor& out) {
  forward(&cubic_antialias_taps, self, align, {first, second}, out);
}
void GRAFT_STRUCTURED(_upsample_bicubic2d_aa_backward_grad_input)(const at::Tensor& grad_output,
                                                                  at::IntArrayRef, at::IntArrayRef,
                                                                  bool align, Scale first,
                                                                  Scale second,
                                                                  const at::Tensor& grad_input) {
  backward(&cubic_antialias_taps, grad_output, align, {first, second}, grad_input);
}

void GRAFT_STRUCTURED(_upsample_lanczos2d_aa_out)(const at::Tensor& self, at::IntArrayRef,
                                                  bool align, Scale first, Scale second,
                                                  const at::Tensor& out) {
  forward(&lanczos_antialias_taps, self, align, {first, second}, out);
}
void GRAFT_STRUCTURED(_upsample_lanczos2d_aa_backward_grad_input)(const at::Tensor& grad_output,
                                                                  at::IntArrayRef, at::IntArrayRef,
                                                                  bool align, Scale first,
                                                                  Scale second,
                                                                  const at::Tensor& grad_input) {
  backward(&lanczos_antialias_taps, grad_output, align, {first, second}, grad_input);
}

}  // namespace graft::binding

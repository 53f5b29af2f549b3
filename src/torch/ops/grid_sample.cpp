// src/torch/ops/grid_sample.cpp: sampling images and volumes at the positions of a grid.
#include "kernels/resample/grid_sample.h"

#include <ATen/ops/empty.h>

#include <array>
#include <tuple>

#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/tensor/operands.h"
#include "torch/version/minor.h"
#include "torch/version/ops/grid_sample.h"

namespace graft::binding {
namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;

// Numbers that functional.grid_sample makes of words.
GridSampling sampling_of(int64_t mode, int64_t padding, bool align_corners) {
  using Mode = native::GridSamplerInterpolation;
  using Padding = native::GridSamplerPadding;
  TORCH_CHECK(mode >= 0 && mode <= static_cast<int64_t>(Mode::Bicubic),
              "grid_sampler(): interpolation_mode must be 0, 1 or 2, but got ", mode);
  TORCH_CHECK(padding >= 0 && padding <= static_cast<int64_t>(Padding::Reflection),
              "grid_sampler(): padding_mode must be 0, 1 or 2, but got ", padding);
  return {static_cast<GridSampling::Mode>(mode), static_cast<GridSampling::Padding>(padding),
          align_corners};
}

// [n, points, axes]
at::Tensor flat(const at::Tensor& grid) {
  const int64_t n = grid.size(0), axes = grid.size(-1);
  return grid.contiguous().view({n, grid.numel() / std::max<int64_t>(n * axes, 1), axes});
}

// [n, channels, points]
at::Tensor planes(const at::Tensor& tensor) {
  const int64_t n = tensor.size(0), c = tensor.size(1);
  return tensor.contiguous().view({n, c, tensor.numel() / std::max<int64_t>(n * c, 1)});
}

at::DimVector output_sizes(const at::Tensor& input, const at::Tensor& grid) {
  at::DimVector sizes{input.size(0), input.size(1)};
  sizes.append(grid.sizes().begin() + 1, grid.sizes().end() - 1);
  return sizes;
}

void check_like_output(const at::Tensor& grad_output, const at::Tensor& input,
                       const at::Tensor& grid) {
  const at::DimVector sizes = output_sizes(input, grid);
  TORCH_CHECK(grad_output.sizes() == sizes && grad_output.scalar_type() == input.scalar_type() &&
                  grid.scalar_type() == input.scalar_type(),
              "grid_sampler(): expected grad_output of ", input.scalar_type(), " and size ",
              at::IntArrayRef(sizes), ", and grid of the same dtype, but got ",
              grad_output.toString(), grad_output.sizes(), " and ", grid.toString());
}

at::Tensor forward(const at::Tensor& input, const at::Tensor& grid, int64_t mode, int64_t padding,
                   bool align_corners) {
  require_floating(input);
  require_same_dtype(input, grid);
  const at::Tensor out = at::empty(output_sizes(input, grid), input.options());
  if (out.numel() == 0) return out;
  grid_sample(stream_of(input), view_of(planes(out)), view_of(input), view_of(flat(grid)),
              sampling_of(mode, padding, align_corners));
  return out;
}

Pair backward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& grid,
              int64_t mode, int64_t padding, bool align_corners, std::array<bool, 2> wanted) {
  require_floating(input);
  require_same_dtype(input, grid);
  check_like_output(grad_output, input, grid);
  const GridSampling sampling = sampling_of(mode, padding, align_corners);
  at::Tensor grad_input, grad_grid = at::empty(grid.sizes(), grid.options());
  if (wanted[0]) grad_input = at::empty(input.sizes(), input.options());
  if (grad_output.numel() == 0) {
    if (wanted[0]) grad_input.zero_();
    return {grad_input, grad_grid.zero_()};
  }
  const at::Tensor gradient = planes(grad_output), points = flat(grid), slopes = flat(grad_grid);
  const OptionalView input_view(grad_input), grid_view(slopes);
  grid_sample_backward(stream_of(input), input_view.get(), grid_view.get(), view_of(gradient),
                       view_of(input), view_of(points), sampling);
  return {grad_input, grad_grid};
}

}  // namespace

// A sampler and its gradient by their names; check: what PyTorch asks of grids of that rank.
#define GRAFT_GRID_SAMPLER(sampler, gradient, check)                                            \
  at::Tensor sampler(const at::Tensor& input, const at::Tensor& grid, int64_t mode,             \
                     int64_t padding, bool align_corners) {                                     \
    native::check_grid_sampler_common(input, grid);                                             \
    check;                                                                                      \
    return forward(input, grid, mode, padding, align_corners);                                  \
  }                                                                                             \
  Pair gradient(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& grid, \
                int64_t mode, int64_t padding, bool align_corners,                              \
                std::array<bool, 2> output_mask) {                                              \
    native::check_grid_sampler_common(input, grid);                                             \
    check;                                                                                      \
    return backward(grad_output, input, grid, mode, padding, align_corners, output_mask);       \
  }

GRAFT_GRID_SAMPLER(GRAFT_OPERATOR(grid_sampler_2d), GRAFT_OPERATOR(grid_sampler_2d_backward),
                   native::check_grid_sampler_2d(input, grid))
GRAFT_GRID_SAMPLER(GRAFT_OPERATOR(grid_sampler_3d), GRAFT_OPERATOR(grid_sampler_3d_backward),
                   native::check_grid_sampler_3d(input, grid, mode))

}  // namespace graft::binding

// src/torch/ops/fft.cpp: the discrete Fourier transforms that torch.fft and stft are made of.
#include "kernels/fft/fft.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/stubs.h"
#include "torch/tensor/operands.h"
#include "torch/tensor/out_argument.h"
#include "torch/version/ops/fft.h"

namespace graft::binding {
namespace {

using native::fft_norm_mode;

void require_complex(const at::Tensor& self) {
  TORCH_CHECK(self.is_complex(), "Only supports complex dtypes, but found: ", self.scalar_type());
}

// The CPU refuses calls without dimensions; its words come with the fallback. Half types it refuses
// in these, where it does not damage its memory first.
std::vector<int> dims_of(const at::Tensor& self, at::IntArrayRef dims) {
  std::vector<int> wrapped;
  for (const int64_t dim : dims) {
    const auto axis = static_cast<int>(at::maybe_wrap_dim(dim, self.dim()));
    TORCH_CHECK(std::ranges::find(wrapped, axis) == wrapped.end(), "dim ", axis,
                " appears multiple times in the list of dims");
    wrapped.push_back(axis);
  }
  if (dims.empty() || self.dim() == 0) throw_unfilled();
  const auto part = c10::toRealValueType(self.scalar_type());
  TORCH_CHECK(part == at::kFloat || part == at::kDouble,
              "MKL FFT doesn't support tensors of type: ", part);
  return wrapped;
}

double scale_of(const at::Tensor& signal, const std::vector<int>& dims, int64_t normalization) {
  const auto mode = static_cast<fft_norm_mode>(normalization);
  if (mode == fft_norm_mode::none) return 1;
  double count = 1;
  for (const int dim : dims) count *= static_cast<double>(signal.size(dim));
  return 1 / (mode == fft_norm_mode::by_root_n ? std::sqrt(count) : count);
}

}  // namespace

at::Tensor GRAFT_OPERATOR(_fft_c2c)(const at::Tensor& self, at::IntArrayRef dim,
                                    int64_t normalization, bool forward) {
  require_complex(self);
  if (dim.empty()) return self.clone();
  const std::vector<int> dims = dims_of(self, dim);
  const at::Tensor out = at::empty(self.sizes(), self.options());
  if (out.numel() == 0) return out;
  fft(stream_of(self), view_of(out), view_of(self), dims, !forward,
      scale_of(self, dims, normalization));
  return out;
}

at::Tensor GRAFT_OPERATOR(_fft_r2c)(const at::Tensor& self, at::IntArrayRef dim,
                                    int64_t normalization, bool onesided) {
  TORCH_CHECK(self.is_floating_point(),
              "Only supports floating-point dtypes, but found: ", self.scalar_type());
  const std::vector<int> dims = dims_of(self, dim);
  at::DimVector sizes(self.sizes());
  if (onesided) {
    sizes[dims.back()] = native::infer_ft_real_to_complex_onesided_size(sizes[dims.back()]);
  }
  const auto options = self.options().dtype(c10::toComplexType(self.scalar_type()));
  const at::Tensor out = at::empty(sizes, options);
  if (out.numel() == 0 || self.numel() == 0) return out.zero_();
  const double scale = scale_of(self, dims, normalization);
  if (onesided) {
    fft_from_real(stream_of(self), view_of(out), view_of(self), dims, scale);
  } else {
    fft(stream_of(self), view_of(out), view_of(self), dims, false, scale);
  }
  return out;
}

at::Tensor GRAFT_OPERATOR(_fft_c2r)(const at::Tensor& self, at::IntArrayRef dim,
                                    int64_t normalization, int64_t last_dim_size) {
  require_complex(self);
  const std::vector<int> dims = dims_of(self, dim);
  const int last = dims.back();
  const int64_t half = native::infer_ft_real_to_complex_onesided_size(last_dim_size);
  const bool whole = self.size(last) == last_dim_size;
  if (last_dim_size < 1 || (self.size(last) != half && !whole)) throw_unfilled();
  at::DimVector sizes(self.sizes());
  sizes[last] = last_dim_size;
  const auto options = self.options().dtype(c10::toRealValueType(self.scalar_type()));
  const at::Tensor out = at::empty(sizes, options);
  if (out.numel() == 0) return out;
  const at::Tensor input = self.narrow(last, 0, half);
  fft_to_real(stream_of(self), view_of(out), view_of(input), dims,
              scale_of(out, dims, normalization));
  return out;
}

at::Tensor& GRAFT_OPERATOR(_fft_c2c_out)(const at::Tensor& self, at::IntArrayRef dim,
                                         int64_t normalization, bool forward, at::Tensor& out) {
  return store(out, GRAFT_OPERATOR(_fft_c2c)(self, dim, normalization, forward));
}

at::Tensor& GRAFT_OPERATOR(_fft_r2c_out)(const at::Tensor& self, at::IntArrayRef dim,
                                         int64_t normalization, bool onesided, at::Tensor& out) {
  return store(out, GRAFT_OPERATOR(_fft_r2c)(self, dim, normalization, onesided));
}

at::Tensor& GRAFT_OPERATOR(_fft_c2r_out)(const at::Tensor& self, at::IntArrayRef dim,
                                         int64_t normalization, int64_t last_dim_size,
                                         at::Tensor& out) {
  return store(out, GRAFT_OPERATOR(_fft_c2r)(self, dim, normalization, last_dim_size));
}

}  // namespace graft::binding

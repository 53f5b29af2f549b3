// src/torch/version/ops/fft.h: from inside torch: Fourier transforms.
#pragma once

#include <ATen/native/SpectralOpsUtils.h>

namespace graft::binding::native {

using at::native::fft_norm_mode;
using at::native::infer_ft_real_to_complex_onesided_size;

}  // namespace graft::binding::native

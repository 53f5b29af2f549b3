// src/torch/version/ops/linalg.h: from inside torch: linear algebra.
#pragma once

#include <ATen/native/BatchLinearAlgebra.h>
#include <ATen/native/LinearAlgebraUtils.h>

namespace graft::binding::native {

using at::native::cholesky_inverse_stub;
using at::native::cholesky_stub;
using at::native::cloneBatchedColumnMajor;
using at::native::geqrf_stub;
using at::native::linalg_eigh_stub;
using at::native::lu_factor_stub;
using at::native::lu_solve_stub;
using at::native::orgqr_stub;
using at::native::ormqr_stub;
using at::native::svd_stub;
using at::native::TransposeType;
using at::native::triangular_solve_stub;

}  // namespace graft::binding::native

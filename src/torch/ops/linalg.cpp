// src/torch/ops/linalg.cpp: linear algebra: LU, Cholesky, QR, eigenvalues, SVD, triangular systems.
#include "torch/version/ops/linalg.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "kernels/linalg/cholesky.h"
#include "kernels/linalg/eigen.h"
#include "kernels/linalg/householder.h"
#include "kernels/linalg/lu.h"
#include "kernels/linalg/matrix_batch.h"
#include "kernels/linalg/singular_values.h"
#include "kernels/linalg/triangular_solve.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/stubs.h"
#include "torch/tensor/operands.h"
#include "torch/version/resize.h"

namespace graft::binding {
namespace {

using native::TransposeType;

// Above so many rows or columns LAPACK's blocked algorithms on the CPU are the faster ones.
constexpr int64_t kMaxSize = 256;

// Jacobi's rotations take some ten times as many operations as LAPACK's reductions to tridiagonal
// and bidiagonal form: above this, the CPU is faster even with both copies.
constexpr int64_t kMaxJacobiSize = 64;

void require_kernel(const at::Tensor& matrices) {
  const at::ScalarType part = at::toRealValueType(matrices.scalar_type());
  const bool taken = part == at::kFloat || part == at::kDouble;
  if (!taken || std::max(matrices.size(-2), matrices.size(-1)) > kMaxSize) throw_unfilled();
}

void require_jacobi_kernel(const at::Tensor& matrices) {
  require_kernel(matrices);
  if (std::min(matrices.size(-2), matrices.size(-1)) > kMaxJacobiSize) throw_unfilled();
}

void require_finite(const char* name, const at::Tensor& matrices) {
  TORCH_CHECK(at::isfinite(matrices).all().item<bool>(), "torch.", name,
              ": input tensor should not contain infs or NaNs.");
}

at::IntArrayRef batch_of(const at::Tensor& matrices) {
  return matrices.sizes().slice(0, matrices.dim() - 2);
}

// The last dims dimensions stay, all others, expanded to batch, become one.
at::Tensor as_batch(const at::Tensor& tensor, at::IntArrayRef batch, int64_t dims = 2) {
  const at::IntArrayRef kept = tensor.sizes().slice(tensor.dim() - dims);
  at::DimVector expanded(batch), sizes = {c10::multiply_integers(batch)};
  expanded.append(kept.begin(), kept.end());
  sizes.append(kept.begin(), kept.end());
  return tensor.expand(expanded).reshape(sizes);
}

// Matrices that kernels overwrite, as one batch.
class Overwritten {
 public:
  explicit Overwritten(const at::Tensor& target)
      : target_(target), batch_(as_batch(target, batch_of(target))) {}

  TensorView view() const { return view_of(batch_); }
  // After the kernels: copies back where the target does not lie as one batch.
  void finish() const {
    if (!batch_.is_alias_of(target_)) target_.copy_(batch_.view(target_.sizes()));
  }

 private:
  at::Tensor target_, batch_;
};

void lu_factor_stub(const at::Tensor& input, const at::Tensor& pivots, const at::Tensor& infos,
                    bool compute_pivots) {
  require_kernel(input);
  if (!compute_pivots) throw_unfilled();
  const Overwritten matrices(input);
  const int64_t count = c10::multiply_integers(batch_of(input));
  lu_factor(stream_of(input), matrices.view(), view_of(pivots.view({count, pivots.size(-1)})),
            view_of(infos.view({count})));
  matrices.finish();
}

void lu_solve_stub(const at::Tensor& factors, const at::Tensor& pivots, const at::Tensor& right,
                   TransposeType transpose) {
  require_kernel(factors);
  const Overwritten unknowns(right);
  const TensorView x = unknowns.view();
  const at::Tensor batch = as_batch(factors, batch_of(right));
  const at::Tensor rows = as_batch(pivots, batch_of(right), 1).contiguous();
  const TensorView a = view_of(batch), exchanged = view_of(rows);
  Stream& stream = stream_of(right);
  if (transpose == TransposeType::NoTranspose) {
    exchange_rows(stream, x, exchanged, false);
    triangular_solve(stream, x, a, false, true);
    triangular_solve(stream, x, a, true, false);
  } else {
    const bool conjugate = transpose == TransposeType::ConjTranspose;
    triangular_solve(stream, x, transposed(a), false, false, conjugate);
    triangular_solve(stream, x, transposed(a), true, true, conjugate);
    exchange_rows(stream, x, exchanged, true);
  }
  unknowns.finish();
}

void triangular_solve_stub(const at::Tensor& matrices, const at::Tensor& right, bool left,
                           bool stored_upper, TransposeType transpose, bool unit) {
  require_kernel(matrices);
  const Overwritten unknowns(right);
  const at::Tensor batch = as_batch(matrices, batch_of(right));
  const bool turned = transpose != TransposeType::NoTranspose;
  const bool upper = stored_upper != turned;
  const bool conjugate = transpose == TransposeType::ConjTranspose;
  const TensorView x = unknowns.view();
  // As BLAS does, the caller's flags see the memory column by column, whatever the strides say.
  const bool by_rows = !matrices.mT().is_contiguous();
  const TensorView a = turned != by_rows ? transposed(view_of(batch)) : view_of(batch);
  if (left) {
    triangular_solve(stream_of(right), x, a, upper, unit, conjugate);
  } else {
    triangular_solve(stream_of(right), transposed(x), transposed(a), !upper, unit, conjugate);
  }
  unknowns.finish();
}

void cholesky_stub(const at::Tensor& input, const at::Tensor& info, bool upper) {
  require_kernel(input);
  const Overwritten matrices(input);
  const TensorView a = matrices.view();
  cholesky_factor(stream_of(input), upper ? transposed(a) : a,
                  view_of(info.view({c10::multiply_integers(batch_of(input))})));
  matrices.finish();
}

// Solves with the factor and then with its adjoint, or the other way round for an upper one.
void solve_with_factor(const at::Tensor& right, const at::Tensor& factor, bool upper) {
  const Overwritten unknowns(right);
  const at::Tensor batch = as_batch(factor, batch_of(right));
  const TensorView x = unknowns.view(), a = view_of(batch);
  Stream& stream = stream_of(right);
  triangular_solve(stream, x, upper ? transposed(a) : a, false, false, upper);
  triangular_solve(stream, x, upper ? a : transposed(a), true, false, !upper);
  unknowns.finish();
}

at::Tensor identity_like(const at::Tensor& matrices) {
  const at::Tensor identity = at::zeros_like(matrices);
  identity.diagonal(0, -2, -1).fill_(1);
  return identity;
}

at::Tensor& cholesky_inverse_stub(at::Tensor& result, at::Tensor&, bool upper) {
  require_kernel(result);
  const at::Tensor inverse = identity_like(result);
  solve_with_factor(inverse, result, upper);
  result.copy_(inverse);
  return result;
}

void geqrf_stub(const at::Tensor& input, const at::Tensor& tau) {
  require_kernel(input);
  const Overwritten matrices(input);
  const int64_t count = c10::multiply_integers(batch_of(input));
  householder_factor(stream_of(input), matrices.view(), view_of(tau.view({count, tau.size(-1)})));
  matrices.finish();
}

void ormqr_stub(const at::Tensor& input, const at::Tensor& tau, const at::Tensor& other, bool left,
                bool transpose) {
  require_kernel(input);
  const Overwritten matrices(other);
  const at::Tensor reflections = as_batch(input, batch_of(other));
  const at::Tensor factors = as_batch(tau, batch_of(other), 1).contiguous();
  const TensorView a = matrices.view();
  // From the right: (A Q)^T is the conjugate of Q^H, times A^T.
  apply_reflections(stream_of(other), left ? a : transposed(a), view_of(reflections),
                    view_of(factors), transpose == left, !left);
  matrices.finish();
}

at::Tensor& orgqr_stub(at::Tensor& result, const at::Tensor& tau) {
  require_kernel(result);
  const at::Tensor product = identity_like(result);
  const Overwritten matrices(product);
  const at::Tensor reflections = as_batch(result, batch_of(result));
  const at::Tensor factors = as_batch(tau, batch_of(result), 1).contiguous();
  apply_reflections(stream_of(result), matrices.view(), view_of(reflections), view_of(factors),
                    /*adjoint=*/false, /*conjugate=*/false, /*to_identity=*/true);
  matrices.finish();
  result.copy_(product);
  return result;
}

// vectors holds the matrices, and gets what is asked for.
void eigh_stub(const at::Tensor& values, const at::Tensor& vectors, const at::Tensor& infos,
               bool upper, bool compute_vectors) {
  require_jacobi_kernel(vectors);
  const int64_t count = c10::multiply_integers(batch_of(vectors)), n = vectors.size(-1);
  const at::Tensor work = as_batch(native::cloneBatchedColumnMajor(vectors), batch_of(vectors));
  const at::Tensor found = at::empty({count, n}, values.options());
  const Overwritten result(vectors);
  const TensorView view = result.view();
  symmetric_eigen(stream_of(vectors), view_of(found), compute_vectors ? &view : nullptr,
                  view_of(work), view_of(infos.view({count})), upper);
  values.copy_(found.view(values.sizes()));
  if (compute_vectors) result.finish();
}

// An orthonormal basis [batch, rows, columns] that begins with the directions of orthogonal
// columns. Columns that are 0, or nothing beside the others, are completed: by the reflections of a
// QR factorisation, whose R is diagonal here, and whose signs are taken back.
at::Tensor basis_of(const at::Tensor& orthogonal, int64_t columns) {
  const int64_t count = orthogonal.size(0), rows = orthogonal.size(1), given = orthogonal.size(2);
  const at::Tensor factors = at::empty({count, given}, orthogonal.options());
  Stream& stream = stream_of(orthogonal);
  householder_factor(stream, view_of(orthogonal), view_of(factors));
  at::Tensor basis = at::zeros({count, columns, rows}, orthogonal.options()).mT();
  basis.diagonal(0, -2, -1).fill_(1);
  apply_reflections(stream, view_of(basis), view_of(orthogonal), view_of(factors),
                    /*adjoint=*/false, /*conjugate=*/false, /*to_identity=*/true);
  const at::Tensor diagonal = orthogonal.diagonal(0, -2, -1);
  const at::Tensor real = diagonal.is_complex() ? at::real(diagonal) : diagonal;
  const at::Tensor signs = at::where(real.lt(0), -1, 1).to(orthogonal.scalar_type());
  basis.narrow(-1, 0, given).mul_(signs.unsqueeze(-2));
  return basis;
}

// Of the matrix or, where it is wide, of its adjoint, in which both bases change places.
void svd_stub(const at::Tensor& input, bool full_matrices, bool compute_uv,
              const std::optional<std::string_view>&, const at::Tensor& U, const at::Tensor& S,
              const at::Tensor& Vh, const at::Tensor& info) {
  require_jacobi_kernel(input);
  const bool wide = input.size(-2) < input.size(-1);
  const at::Tensor tall = wide ? input.mH() : input;
  const int64_t count = c10::multiply_integers(batch_of(input));
  const int64_t rows = tall.size(-2), columns = tall.size(-1);
  const at::Tensor work = as_batch(native::cloneBatchedColumnMajor(tall), batch_of(input));
  const at::Tensor values = at::empty({count, columns}, S.options());
  at::Tensor right;
  if (compute_uv) right = at::empty({count, columns, columns}, work.options()).mT();
  const OptionalView right_view(right);
  singular_values(stream_of(input), view_of(values), right_view.get(), view_of(work),
                  view_of(info.view({count})));
  S.copy_(values.view(S.sizes()));
  if (!compute_uv) return;
  const at::Tensor left = basis_of(work, full_matrices ? rows : columns);
  U.copy_((wide ? right : left).reshape(U.sizes()));
  Vh.copy_((wide ? left : right).mH().reshape(Vh.sizes()));
}

// matrices[..., permutation[i], i] = 1, for the first exchanges that pivots hold.
void unpack_permutation(const at::Tensor& matrices, const at::Tensor& pivots, int64_t exchanges) {
  TORCH_CHECK(pivots.dim() + 1 == matrices.dim() && pivots.size(-1) >= exchanges &&
                  pivots.sizes().slice(0, pivots.dim() - 1) == batch_of(matrices),
              "lu_unpack: expected LU_pivots with ", exchanges,
              " numbers for each matrix of a batch ", batch_of(matrices), ", but got the sizes ",
              pivots.sizes());
  const int64_t rows = matrices.size(-1), count = c10::multiply_integers(batch_of(matrices));
  at::DimVector sizes(matrices.sizes());
  sizes[matrices.dim() - 2] = 1;
  const at::Tensor permutation = at::empty({count, rows}, pivots.options().dtype(at::kLong));
  const at::Tensor used = pivots.narrow(-1, 0, exchanges);
  const at::Tensor exchanged = as_batch(used, batch_of(matrices), 1).contiguous();
  permutation_of_pivots(stream_of(pivots), view_of(permutation), view_of(exchanged));
  matrices.zero_();
  matrices.scatter_(-2, permutation.view(sizes), 1);
}

}  // namespace

void GRAFT_STRUCTURED(lu_unpack_out)(const at::Tensor& factors, const at::Tensor& pivots,
                                     bool unpack_data, bool unpack_pivots, const at::Tensor& P,
                                     const at::Tensor& L, const at::Tensor& U) {
  const int64_t k = std::min(factors.size(-2), factors.size(-1));
  if (unpack_pivots) unpack_permutation(P, pivots, k);
  if (!unpack_data) return;
  // L or U may be factors itself, which then has its sizes: the other follows them.
  const at::Tensor lower = factors.narrow(-1, 0, k).tril(-1);
  const at::Tensor upper = factors.narrow(-2, 0, k).triu();
  native::resize_output(L, lower.sizes());
  native::resize_output(U, upper.sizes());
  U.copy_(upper);
  L.copy_(lower);
  L.diagonal(0, -2, -1).fill_(1);
}

// The CPU computes them; its LAPACK ends the process for what is not finite.
at::Tensor GRAFT_OPERATOR(_linalg_eigvals)(const at::Tensor& self) {
  require_finite("linalg.eigvals", self);
  throw_unfilled();
}

at::Tensor& GRAFT_OPERATOR(linalg_eigvals_out)(const at::Tensor& self, at::Tensor&) {
  require_finite("linalg.eigvals", self);
  throw_unfilled();
}

at::Tensor GRAFT_OPERATOR(_cholesky_solve_helper)(const at::Tensor& self, const at::Tensor& A,
                                                  bool upper) {
  require_kernel(A);
  const at::Tensor result = native::cloneBatchedColumnMajor(self);
  solve_with_factor(result, A, upper);
  return result;
}

void fill_linalg_stubs() {
  native::lu_factor_stub.set_privateuse1_dispatch_ptr(&binding::lu_factor_stub);
  native::lu_solve_stub.set_privateuse1_dispatch_ptr(&binding::lu_solve_stub);
  native::triangular_solve_stub.set_privateuse1_dispatch_ptr(&binding::triangular_solve_stub);
  native::cholesky_stub.set_privateuse1_dispatch_ptr(&binding::cholesky_stub);
  native::geqrf_stub.set_privateuse1_dispatch_ptr(&binding::geqrf_stub);
  native::ormqr_stub.set_privateuse1_dispatch_ptr(&binding::ormqr_stub);
  native::linalg_eigh_stub.set_privateuse1_dispatch_ptr(&eigh_stub);
  native::svd_stub.set_privateuse1_dispatch_ptr(&binding::svd_stub);
  native::orgqr_stub.set_privateuse1_dispatch_ptr(&binding::orgqr_stub);
  native::cholesky_inverse_stub.set_privateuse1_dispatch_ptr(&binding::cholesky_inverse_stub);
}

}  // namespace graft::binding

// src/torch/ops/distance.cpp: cdist, pdist and their gradients.
#include "kernels/reduce/distance.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/_euclidean_dist.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/dispatch/stubs.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

// Both operands with their batches expanded to a common one, as [batch, rows, columns].
struct Rows {
  Rows(const at::Tensor& x1, const at::Tensor& x2) {
    const at::IntArrayRef left = x1.sizes().slice(0, static_cast<size_t>(x1.dim() - 2));
    const at::IntArrayRef right = x2.sizes().slice(0, static_cast<size_t>(x2.dim() - 2));
    batch = at::infer_size(left, right);
    product = c10::multiply_integers(batch);
    a = flat(x1);
    b = flat(x2);
  }
  // batch, then these sizes.
  std::vector<int64_t> sizes(int64_t rows, int64_t columns) const {
    std::vector<int64_t> all = batch;
    all.push_back(rows);
    all.push_back(columns);
    return all;
  }

  std::vector<int64_t> batch;
  int64_t product = 1;
  at::Tensor a, b;

 private:
  at::Tensor flat(const at::Tensor& x) const {
    const int64_t rows = x.size(-2), columns = x.size(-1);
    return x.expand(sizes(rows, columns)).reshape({product, rows, columns}).contiguous();
  }
};

// Other dtypes get the CPU's answer, an error.
void require_float(const at::Tensor& x) {
  if (x.scalar_type() != at::kFloat && x.scalar_type() != at::kDouble) throw_unfilled();
}

// Reached by name alone: pdist checks what users give.
void check_points(const at::Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "pdist only supports 2D tensors, got: ", self.dim(), "D");
}

}  // namespace

at::Tensor GRAFT_OPERATOR(_cdist_forward)(const at::Tensor& x1, const at::Tensor& x2, double p,
                                          std::optional<int64_t> compute_mode) {
  TORCH_CHECK(x1.dim() >= 2, "cdist only supports at least 2D tensors, X1 got: ", x1.dim(), "D");
  TORCH_CHECK(x2.dim() >= 2, "cdist only supports at least 2D tensors, X2 got: ", x2.dim(), "D");
  TORCH_CHECK(x1.size(-1) == x2.size(-1),
              "X1 and X2 must have the same number of columns. X1: ", x1.size(-1),
              " X2: ", x2.size(-1));
  require_floating(x1);
  require_same_dtype(x1, x2);
  TORCH_CHECK(p >= 0, "cdist only supports non-negative p values");
  const int64_t mode = compute_mode.value_or(0);
  TORCH_CHECK(mode >= 0 && mode <= 2, "possible modes: 0, 1, 2, but was: ", mode);
  const int64_t n = x1.size(-2), k = x2.size(-2);
  const Rows rows(x1, x2);
  const std::vector<int64_t> sizes = rows.sizes(n, k);
  const bool by_products = mode == 1 || (mode == 0 && (n > 25 || k > 25));
  if (p == 2 && by_products && x1.size(-1) > 0 && rows.product * n * k > 0) {
    return at::_euclidean_dist(rows.a, rows.b).view(sizes);
  }
  require_float(x1);
  at::Tensor output = at::empty({rows.product, n, k}, x1.options());
  cross_distances(stream_of(x1), view_of(output), view_of(rows.a), view_of(rows.b), p);
  return output.view(sizes);
}

at::Tensor GRAFT_OPERATOR(_cdist_backward)(const at::Tensor& grad, const at::Tensor& x1,
                                           const at::Tensor& x2, double p,
                                           const at::Tensor& cdist) {
  const int64_t n = x1.size(-2), k = x2.size(-2), m = x1.size(-1);
  const Rows rows(x1, x2);
  if (rows.product * n * k * m == 0) return at::zeros_like(x1);
  require_float(x1);
  const at::Tensor weights = grad.reshape({rows.product, n, k}).contiguous();
  at::Tensor slopes = at::empty_like(rows.a);
  const at::Tensor distances = cdist.reshape({rows.product, n, k}).contiguous();
  cross_distances_backward(stream_of(x1), view_of(slopes), view_of(weights), view_of(rows.a),
                           view_of(rows.b), view_of(distances), p);
  return slopes.view(rows.sizes(n, m));
}

at::Tensor GRAFT_OPERATOR(_pdist_forward)(const at::Tensor& self, double p) {
  TORCH_CHECK(self.is_contiguous(), "_pdist_forward requires contiguous input");
  check_points(self);
  require_float(self);
  const int64_t n = self.size(0);
  at::Tensor output = at::empty({n * (n - 1) / 2}, self.options());
  pair_distances(stream_of(self), view_of(output), view_of(self), p);
  return output;
}

at::Tensor GRAFT_OPERATOR(_pdist_backward)(const at::Tensor& grad, const at::Tensor& self, double p,
                                           const at::Tensor& pdist) {
  TORCH_CHECK(self.is_contiguous(), "_pdist_backward requires self to be contiguous");
  TORCH_CHECK(pdist.is_contiguous(), "_pdist_backward requires pdist to be contiguous");
  check_points(self);
  require_float(self);
  const int64_t n = self.size(0), pairs = n * (n - 1) / 2;
  TORCH_CHECK(grad.numel() == pairs && pdist.numel() == pairs,
              "_pdist_backward expects a gradient and distances of ", pairs, " pairs, but got ",
              grad.numel(), " and ", pdist.numel());
  require_same_dtype(grad, self);
  require_same_dtype(pdist, self);
  if (n < 2) return at::zeros_like(self);
  at::Tensor slopes = at::empty_like(self);
  pair_distances_backward(stream_of(self), view_of(slopes), view_of(grad.contiguous()),
                          view_of(self), view_of(pdist), p);
  return slopes;
}

}  // namespace graft::binding

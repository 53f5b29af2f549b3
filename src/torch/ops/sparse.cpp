// src/torch/ops/sparse.cpp: sparse tensors: what PyTorch's kernels for them do in CPU or CUDA code.
#include "torch/version/sparse.h"

#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/zeros.h>

#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/stubs.h"
#include "torch/version/stub.h"

namespace graft::binding {
namespace {

// The position of each element within the sparse dimensions, counted row by row.
at::Tensor flatten(const at::Tensor& indices, at::IntArrayRef sizes) {
  at::Tensor flat = indices.select(0, 0);
  for (int64_t d = 1; d < indices.size(0); ++d) {
    flat = flat.mul(sizes[static_cast<size_t>(d)]).add_(indices.select(0, d));
  }
  return flat.contiguous();
}

at::Tensor coo(const at::Tensor& indices, const at::Tensor& values, const at::Tensor& like,
               bool coalesced) {
  return at::_sparse_coo_tensor_unsafe(indices, values, like.sizes(),
                                       values.options().layout(at::kSparse), coalesced);
}

// Positions within the sparse dimensions, row by row, as indices [sparse_dim, count].
at::Tensor unflatten(const at::Tensor& flat, at::IntArrayRef sizes, int64_t sparse_dim) {
  const at::Tensor indices = at::empty({sparse_dim, flat.numel()}, flat.options());
  at::Tensor rest = flat;
  for (int64_t d = sparse_dim - 1; d >= 0; --d) {
    indices.select(0, d).copy_(rest.remainder(sizes[d]));
    rest = rest.floor_divide(sizes[d]);
  }
  return indices;
}

// Equal positions are summed in the order in which they stand: deterministic.
at::Tensor coalesce(const at::Tensor& self) {
  const at::Tensor indices = self._indices(), values = self._values();
  if (self._nnz() < 2) return coo(indices.clone(), values.clone(), self, true);
  const int64_t sparse_dim = self.sparse_dim();
  const at::Tensor flat = at::sparse::flatten_indices(indices, self.sizes());
  const auto [places, inverse, counts] = at::_unique2(flat, true, true, false);
  at::DimVector sizes(values.sizes());
  sizes[0] = places.numel();
  const at::Tensor sums = at::zeros(sizes, values.options());
  sums.index_add_(0, inverse, values);
  return coo(unflatten(places, self.sizes(), sparse_dim), sums, self, true);
}

at::ScalarType sum_type(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  const at::ScalarType common = at::result_type(self, other);
  TORCH_CHECK(at::canCast(common, out.scalar_type()), "Can't convert result type ", common,
              " to output ", out.scalar_type(), " in add operation");
  return common;
}

// out = self + alpha other, where self is dense: other's elements are added to a copy of it.
void add_to_dense(const at::Tensor& out, const at::Tensor& self, const at::Tensor& other,
                  const at::Scalar& alpha) {
  TORCH_CHECK(!out.is_sparse(), "add: the sum of a dense and a sparse tensor is dense, out is not");
  TORCH_CHECK(self.sizes() == other.sizes(),
              "add: expected 'self' and 'other' to have same size, but self has size ",
              self.sizes(), " while other has size ", other.sizes(),
              " (FYI: dense-sparse addition does not currently support broadcasting)");
  const at::ScalarType common = sum_type(self, other, out);
  const int64_t sparse_dim = other.sparse_dim();
  const at::Tensor sum = self.to(common, false, true, at::MemoryFormat::Contiguous);
  if (other._nnz() > 0 && sum.numel() > 0) {
    at::DimVector rows{c10::multiply_integers(sum.sizes().slice(0, sparse_dim))};
    rows.append(sum.sizes().begin() + sparse_dim, sum.sizes().end());
    const at::Tensor flat = at::sparse::flatten_indices(other._indices(), other.sizes());
    sum.view(rows).index_add_(0, flat, other._values().to(common), alpha);
  }
  out.resize_(self.sizes());
  out.copy_(sum);
}

// Both sparse: their elements side by side, which is coalesced again where both were.
void add_sparse(const at::Tensor& out, const at::Tensor& self, const at::Tensor& other,
                const at::Scalar& alpha) {
  TORCH_CHECK(other.is_sparse(),
              "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
  TORCH_CHECK(out.is_sparse(), "add: the sum of sparse tensors is sparse, out is not");
  TORCH_CHECK(self.sizes() == other.sizes(),
              "add: expected sizes of 'self' and 'other' to match, but ", self.sizes(),
              " != ", other.sizes());
  TORCH_CHECK(at::sparse::is_same_density(self, other),
              "add: expected 'self' and 'other' to have same density, but 'self' has ",
              self.sparse_dim(), " sparse dimensions while 'other' has ", other.sparse_dim(),
              " sparse dimensions");
  const at::ScalarType common = sum_type(self, other, out);
  at::Tensor added = other._values().to(common);
  if (!alpha.equal(1)) added = added.mul(alpha);
  const at::Tensor values = at::cat({self._values().to(common), added});
  const bool coalesced = self.is_coalesced() && other.is_coalesced();
  at::Tensor sum = coo(at::cat({self._indices(), other._indices()}, 1), values, self, false);
  if (coalesced) sum = coalesce(sum);
  at::SparseTensorImpl* impl = at::sparse::get_sparse_impl(out);
  impl->raw_resize_(self.sparse_dim(), self.dense_dim(), self.sizes());
  impl->set_indices_and_values_unsafe(sum._indices(), sum._values().to(out.scalar_type()));
  impl->set_coalesced(coalesced);
}

at::Tensor& add_out(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha,
                    at::Tensor& out) {
  if (self.is_sparse()) {
    add_sparse(out, self, other, alpha);
  } else {
    add_to_dense(out, self, other, alpha);
  }
  return out;
}

// beta self + alpha sparse @ dense, one product of a dense row for each element.
at::Tensor& addmm_out(const at::Tensor& self, const at::Tensor& sparse, const at::Tensor& dense,
                      const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  TORCH_CHECK(sparse.is_sparse() && !dense.is_sparse() && !self.is_sparse(),
              "addmm: expected dense, sparse and dense matrices, got layouts ", self.layout(), ", ",
              sparse.layout(), " and ", dense.layout());
  TORCH_CHECK(sparse.sparse_dim() == 2 && sparse.dense_dim() == 0 && dense.dim() == 2,
              "addmm: matrices expected, got ", sparse.sparse_dim(), "D sparse and ", dense.dim(),
              "D dense tensors");
  TORCH_CHECK(sparse.size(1) == dense.size(0), "addmm: Argument #3 (dense): Expected dim 0 size ",
              sparse.size(1), ", got ", dense.size(0));
  const at::Tensor start = self.expand({sparse.size(0), dense.size(1)});
  const bool ignored = beta.equal(0);
  at::Tensor sum = ignored ? at::zeros(start.sizes(), dense.options()) : start.mul(beta);
  const at::Tensor rows = sparse._indices().select(0, 0), columns = sparse._indices().select(0, 1);
  const at::Tensor products = dense.index_select(0, columns).mul_(sparse._values().unsqueeze(1));
  sum.index_add_(0, rows, products, alpha);
  out.resize_(sum.sizes());
  out.copy_(sum);
  return out;
}

at::Tensor addmm(const at::Tensor& self, const at::Tensor& sparse, const at::Tensor& dense,
                 const at::Scalar& beta, const at::Scalar& alpha) {
  at::Tensor out = at::empty({0}, dense.options());
  return addmm_out(self, sparse, dense, beta, alpha, out);
}

at::Tensor& addmm_(at::Tensor& self, const at::Tensor& sparse, const at::Tensor& dense,
                   const at::Scalar& beta, const at::Scalar& alpha) {
  return addmm_out(self, sparse, dense, beta, alpha, self);
}

}  // namespace

// out[row] = how many of the sorted indices lie before the row.
void GRAFT_STRUCTURED(_convert_indices_from_coo_to_csr_out)(const at::Tensor& self, int64_t size,
                                                            bool out_int32, const at::Tensor& out) {
  const at::Tensor rows = at::arange(size + 1, self.options());
  out.copy_(at::searchsorted(self.contiguous(), rows, out_int32));
}

// out [rank, count]: the batch's coordinates, the row and the column of each element; transpose
// changes the last two places. All batches have the same number of elements.
void GRAFT_STRUCTURED(_convert_indices_from_csr_to_coo_out)(const at::Tensor& crow_indices,
                                                            const at::Tensor& col_indices,
                                                            bool out_int32, bool transpose,
                                                            const at::Tensor& out) {
  const int64_t count = col_indices.size(-1), batch_rank = crow_indices.dim() - 1;
  if (out.numel() == 0 || crow_indices.size(-1) == 1) {
    out.zero_();
    return;
  }
  if (batch_rank > 0) {
    const at::IntArrayRef batch = crow_indices.sizes().slice(0, batch_rank);
    const at::Tensor each = at::zeros(batch, crow_indices.options()).eq(0).nonzero();
    out.narrow(0, 0, batch_rank).copy_(each.repeat_interleave(count, 0).transpose(0, 1));
  }
  const at::Tensor places = at::arange(count, crow_indices.options()).expand(col_indices.sizes());
  const at::Tensor rows =
      at::searchsorted(crow_indices.contiguous(), places.contiguous(), out_int32, true).sub_(1);
  out.select(0, batch_rank + (transpose ? 1 : 0)).copy_(rows.reshape({-1}));
  out.select(0, batch_rank + (transpose ? 0 : 1)).copy_(col_indices.reshape({-1}));
}

void fill_sparse_stubs() {
  native::flatten_indices_stub.set_privateuse1_dispatch_ptr(&flatten);
  leave_unfilled(native::mul_sparse_sparse_out_stub);
  leave_unfilled(native::sparse_mask_intersection_out_stub);
  leave_unfilled(native::sparse_mask_projection_out_stub);
}

TORCH_LIBRARY_IMPL(aten, GRAFT_SPARSE_KEY, m) {
  m.impl("_coalesce", TORCH_FN(coalesce));
  m.impl("add.out", TORCH_FN(add_out));
  m.impl("addmm", TORCH_FN(addmm));
  m.impl("addmm_", TORCH_FN(addmm_));
  m.impl("addmm.out", TORCH_FN(addmm_out));
}

}  // namespace graft::binding

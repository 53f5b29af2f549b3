// src/torch/ops/grouped_matmul.cpp: matrix products of groups of rows.
#include <ATen/ops/_grouped_mm_ops.h>
#include <ATen/ops/empty.h>

#include <optional>

#include "kernels/matmul/vendor_products.h"
#include "operators.h"
#include "torch/dispatch/composite.h"
#include "torch/dispatch/guarded.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

bool is_floating_matrix(const at::Tensor& tensor) {
  return at::isFloatingType(tensor.scalar_type()) && (tensor.dim() == 2 || tensor.dim() == 3);
}

// The result's sizes; nothing for what PyTorch's own way is to judge.
std::optional<at::DimVector> sizes_of(const at::Tensor& a, const at::Tensor& b,
                                      const std::optional<at::Tensor>& offsets) {
  if (!is_floating_matrix(a) || !is_floating_matrix(b)) return std::nullopt;
  const bool batches = a.dim() == 3 && b.dim() == 3;
  if (a.device() != b.device()) return std::nullopt;
  if (a.scalar_type() != b.scalar_type() || a.size(-1) != b.size(-2)) return std::nullopt;
  if (batches != !offsets.has_value() || (batches && a.size(0) != b.size(0))) return std::nullopt;
  at::DimVector sizes{a.size(-2), b.size(-1)};
  if (batches) return at::DimVector{a.size(0), sizes[0], sizes[1]};
  if (offsets->dim() != 1 || offsets->scalar_type() != at::kInt) return std::nullopt;
  if (offsets->device() != a.device()) return std::nullopt;
  const int64_t groups = offsets->size(0);
  for (const at::Tensor* one : {&a, &b}) {
    if (one->dim() == 3 && one->size(0) != groups) return std::nullopt;
  }
  if (a.dim() == 2 && b.dim() == 2) sizes.insert(sizes.begin(), groups);
  return sizes;
}

}  // namespace

at::Tensor GRAFT_OPERATOR(_grouped_mm)(const at::Tensor& self, const at::Tensor& mat2,
                                       const std::optional<at::Tensor>& offs,
                                       const std::optional<at::Tensor>& bias,
                                       std::optional<at::ScalarType> out_dtype) {
  const auto sizes = sizes_of(self, mat2, offs);
  const bool plain =
      !bias.has_value() && out_dtype.value_or(self.scalar_type()) == self.scalar_type();
  if (plain && sizes.has_value() && knows_grouped_matmul(stream_of(self))) {
    const at::Tensor out = at::empty(*sizes, self.options());
    const OptionalView groups(offs);
    if (grouped_matmul(stream_of(self), view_of(out), view_of(self), view_of(mat2), groups.get())) {
      return out;
    }
  }
  return composite<at::_ops::_grouped_mm>(self, mat2, offs, bias, out_dtype);
}

}  // namespace graft::binding

// src/torch/ops/foreach_norm.cpp: the _foreach reductions, a launch or two for several tensors.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/Operators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <optional>
#include <vector>

#include "kernels/reduce/reduction_list.h"
#include "torch/dispatch/composite.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/list_route.h"
#include "torch/tensor/operands.h"
#include "torch/version/ops/foreach.h"

namespace graft::binding {
namespace {

using native::can_use_fast_route;
using native::check_foreach_api_restrictions;
using Tensors = std::vector<at::Tensor>;

// The norm with a kernel: 1, 2 and, where it is given, the largest element.
std::optional<ListReduction> norm_of(const at::Scalar& order) {
  if (order.isComplex()) return std::nullopt;
  const double p = order.toDouble();
  if (p == 1) return ListReduction::kNorm1;
  if (p == 2) return ListReduction::kNorm2;
  if (std::isinf(p) && p > 0) return ListReduction::kNormInf;
  return std::nullopt;
}

// Whether the results may have the dtype: PyTorch refuses to narrow.
bool widens(at::ScalarType from, at::ScalarType to) {
  return at::isFloatingType(from) && at::isFloatingType(to) && at::promoteTypes(from, to) == to;
}

// Results of one element each, or false and nothing done. Sums of nothing are 0, where empty says
// that tensors may be empty.
bool reduced(ListReduction reduction, at::TensorList self, at::ScalarType type, bool empty,
             Tensors& results) {
  const auto run = [&] {
    if (!can_use_fast_route(self) || !widens(self[0].scalar_type(), type)) return false;
    const auto options = self[0].options().dtype(type);
    Tensors found, inputs, outputs;
    for (const at::Tensor& tensor : self) {
      if (tensor.numel() == 0 && !empty) return false;
      found.push_back(tensor.numel() == 0 ? at::zeros({}, options) : at::empty({}, options));
      if (tensor.numel() == 0) continue;
      inputs.push_back(tensor);
      outputs.push_back(found.back());
    }
    reduce_list(stream_of(self[0]), reduction, flat_views(outputs), flat_views(inputs));
    results = std::move(found);
    return true;
  };
  return done_by(run, self[0]);
}

Tensors norm_each(at::TensorList self, const at::Scalar& order,
                  std::optional<at::ScalarType> dtype) {
  check_foreach_api_restrictions(self);
  const auto reduction = norm_of(order);
  Tensors results;
  if (reduction.has_value()) {
    const at::ScalarType type = dtype.value_or(self[0].scalar_type());
    const bool sum = *reduction != ListReduction::kNormInf;
    if (reduced(*reduction, self, type, sum, results)) return results;
  }
  return composite<at::_ops::_foreach_norm_Scalar>(self, order, dtype);
}

// The sum of the powers, without the root.
Tensors sum_of_powers_each(at::TensorList self, const at::Scalar& order,
                           std::optional<at::ScalarType> dtype) {
  check_foreach_api_restrictions(self);
  auto reduction = norm_of(order);
  Tensors results;
  if (reduction.has_value() && *reduction != ListReduction::kNormInf) {
    if (*reduction == ListReduction::kNorm2) reduction = ListReduction::kSquares;
    const at::ScalarType type = dtype.value_or(self[0].scalar_type());
    if (reduced(*reduction, self, type, true, results)) return results;
  }
  return composite<at::_ops::_foreach_powsum_Scalar>(self, order, dtype);
}

Tensors max_each(at::TensorList self) {
  check_foreach_api_restrictions(self);
  Tensors results;
  if (reduced(ListReduction::kMax, self, self[0].scalar_type(), false, results)) return results;
  return composite<at::_ops::_foreach_max>(self);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, GRAFT_DISPATCH_KEY, m) {
  implement<at::_ops::_foreach_norm_Scalar, &norm_each>(m);
  implement<at::_ops::_foreach_powsum_Scalar, &sum_of_powers_each>(m);
  implement<at::_ops::_foreach_max, &max_each>(m);
}

}  // namespace graft::binding

// src/torch/ops/stubs_reduction.cpp: kernels of the stubs that reduce or scan.
#include <ATen/Dispatch_v2.h>

#include <limits>

#include "kernels/reduce/reduce.h"
#include "kernels/scan/scan.h"
#include "torch/dispatch/refusal.h"
#include "torch/dispatch/stubs.h"
#include "torch/dispatch/tensor_iterator.h"
#include "torch/tensor/operands.h"
#include "torch/tensor/out_argument.h"
#include "torch/version/ops/pointwise.h"
#include "torch/version/ops/reduction.h"

namespace graft::binding {
namespace {

// Output's view with stride 0 in the dimensions that PyTorch reduces: dim, or all (-1).
TensorView reduced_view(const at::Tensor& output, const at::Tensor& input, int64_t dim,
                        bool keepdim) {
  TensorView view = view_of(input);
  const TensorView kept = view_of(output);
  view.address = kept.address;
  view.dtype = kept.dtype;
  for (int i = 0, from = 0; i < view.rank; ++i) {
    const bool reduced = dim < 0 || i == dim;
    if (!reduced) {
      view.strides[i] = kept.strides[from];
    } else {
      view.strides[i] = 0;
    }
    if (!reduced || (keepdim && dim >= 0)) ++from;
  }
  return view;
}

template <Reduction reduction>
void reduce_stub(at::TensorIterator& iterator) {
  if (iterator.output().numel() == 0) return;
  // Others are written by an out= of their dtype alone.
  if (reduction == Reduction::kMean || reduction == Reduction::kNansum) {
    require(!at::isIntegralType(iterator.dtype(0), true));
  }
  reduce(stream_of(iterator), reduction, operand_view(iterator, 0), operand_view(iterator, 1));
}

template <Extremum extremum>
void arg_stub(at::TensorIterator& iterator) {
  if (iterator.output().numel() == 0) return;
  arg_reduce(stream_of(iterator), extremum, operand_view(iterator, 0), operand_view(iterator, 1));
}

template <Extremum extremum>
void extremum_stub(const at::Tensor& values, const at::Tensor& indices, const at::Tensor& self,
                   int64_t dim, bool keepdim) {
  require_separate(values, {&self});
  require_separate(indices, {&self});
  if (values.numel() == 0) return;
  reduce_with_index(stream_of(self), extremum, reduced_view(values, self, dim, keepdim),
                    reduced_view(indices, self, dim, keepdim), view_of(self));
}

// What no element has beyond it: min.unary_out and max.unary_out give it for an empty input.
template <Reduction reduction>
at::Scalar bound_of(at::ScalarType type) {
  return AT_DISPATCH_V2(
      type, reduction == Reduction::kMin ? "min_all" : "max_all", AT_WRAP([]() -> at::Scalar {
        using Limits = std::numeric_limits<scalar_t>;
        const scalar_t most = Limits::has_infinity ? Limits::infinity() : Limits::max();
        const scalar_t least = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
        return reduction == Reduction::kMin ? most : least;
      }),
      AT_EXPAND(AT_ALL_TYPES), at::kHalf, at::kBFloat16, at::kBool);
}

template <Reduction reduction>
void all_stub(at::Tensor& result, const at::Tensor& self) {
  if (self.numel() == 0) {
    result.fill_(bound_of<reduction>(self.scalar_type()));
    return;
  }
  reduce(stream_of(self), reduction, reduced_view(result, self, -1, false), view_of(self));
}

void aminmax_stub(const at::Tensor& self, int64_t dim, bool keepdim, at::Tensor& minimum,
                  at::Tensor& maximum) {
  require(!self.is_complex());
  require_separate(minimum, {&self});
  require_separate(maximum, {&self});
  if (minimum.numel() == 0) return;
  reduce(stream_of(self), Reduction::kMin, reduced_view(minimum, self, dim, keepdim),
         view_of(self));
  reduce(stream_of(self), Reduction::kMax, reduced_view(maximum, self, dim, keepdim),
         view_of(self));
}

void aminmax_all_stub(const at::Tensor& self, at::Tensor& minimum, at::Tensor& maximum) {
  all_stub<Reduction::kMin>(minimum, self);
  all_stub<Reduction::kMax>(maximum, self);
}

void std_var_stub(at::TensorIterator& iterator, double correction, bool root) {
  if (iterator.output().numel() == 0) return;
  if (iterator.noutputs() == 1) {
    variance(stream_of(iterator), operand_view(iterator, 0), nullptr, operand_view(iterator, 1),
             correction, root);
  } else {
    const TensorView mean = operand_view(iterator, 1);
    variance(stream_of(iterator), operand_view(iterator, 0), &mean, operand_view(iterator, 2),
             correction, root);
  }
}

void norm_stub(at::TensorIterator& iterator, const c10::Scalar& order) {
  if (iterator.output().numel() == 0) return;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double p = order.toDouble();
  const Reduction reduction = p == 0.0          ? Reduction::kNorm0
                              : p == 1.0        ? Reduction::kNorm1
                              : p == 2.0        ? Reduction::kNorm2
                              : p == kInfinity  ? Reduction::kNormInf
                              : p == -kInfinity ? Reduction::kNormNegInf
                                                : Reduction::kNormP;
  reduce(stream_of(iterator), reduction, operand_view(iterator, 0), operand_view(iterator, 1), p);
}

template <auto scan>
void scan_stub(const at::Tensor& result, const at::Tensor& self, int64_t dim) {
  require(result.scalar_type() != at::kBool);  // sums of bools are no bools
  require_in_place_or_separate(result, self);
  if (self.numel() == 0) return;
  scan(stream_of(self), view_of(result), view_of(self), static_cast<int>(dim));
}

}  // namespace

void fill_reduction_stubs() {
  using namespace native;
  sum_stub.set_privateuse1_dispatch_ptr(&reduce_stub<Reduction::kSum>);
  nansum_stub.set_privateuse1_dispatch_ptr(&reduce_stub<Reduction::kNansum>);
  mean_stub.set_privateuse1_dispatch_ptr(&reduce_stub<Reduction::kMean>);
  prod_stub.set_privateuse1_dispatch_ptr(&reduce_stub<Reduction::kProd>);
  and_stub.set_privateuse1_dispatch_ptr(&reduce_stub<Reduction::kAll>);
  or_stub.set_privateuse1_dispatch_ptr(&reduce_stub<Reduction::kAny>);
  max_values_stub.set_privateuse1_dispatch_ptr(&reduce_stub<Reduction::kMax>);
  min_values_stub.set_privateuse1_dispatch_ptr(&reduce_stub<Reduction::kMin>);
  argmax_stub.set_privateuse1_dispatch_ptr(&arg_stub<Extremum::kMax>);
  argmin_stub.set_privateuse1_dispatch_ptr(&arg_stub<Extremum::kMin>);
  max_stub.set_privateuse1_dispatch_ptr(&extremum_stub<Extremum::kMax>);
  min_stub.set_privateuse1_dispatch_ptr(&extremum_stub<Extremum::kMin>);
  max_all_stub.set_privateuse1_dispatch_ptr(&all_stub<Reduction::kMax>);
  min_all_stub.set_privateuse1_dispatch_ptr(&all_stub<Reduction::kMin>);
  native::aminmax_stub.set_privateuse1_dispatch_ptr(&binding::aminmax_stub);
  aminmax_allreduce_stub.set_privateuse1_dispatch_ptr(&aminmax_all_stub);
  native::std_var_stub.set_privateuse1_dispatch_ptr(&binding::std_var_stub);
  native::norm_stub.set_privateuse1_dispatch_ptr(&binding::norm_stub);
  cumsum_stub.set_privateuse1_dispatch_ptr(&scan_stub<&cumulative_sum>);
  cumprod_stub.set_privateuse1_dispatch_ptr(&scan_stub<&cumulative_product>);
}

}  // namespace graft::binding

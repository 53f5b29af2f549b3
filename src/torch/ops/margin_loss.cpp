// src/torch/ops/margin_loss.cpp: the hinge losses of classes.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include "kernels/loss/multilabel_margin.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/tensor/device_assertion.h"
#include "torch/tensor/operands.h"
#include "torch/tensor/out_argument.h"
#include "torch/tensor/reduced_loss.h"
#include "torch/version/ops/loss.h"

namespace graft::binding {
namespace {

using Weight = std::optional<at::Tensor>;

// What forward and backward of multi_margin_loss share.
struct Margins {
  Margins(const at::Tensor& self, const at::Tensor& target, const at::Scalar& p,
          const at::Scalar& margin, const Weight& weight) {
    squared = p.toLong() == 2;
    TORCH_CHECK(squared || p.toLong() == 1, "only p == 1 and p == 2 supported");
    native::multi_margin_loss_shape_check(samples, classes, self.dim(), self, target, weight);
    require_floating(self);
    check_scalar_type(target, at::kLong);
    const at::Tensor scale = binding::or_undefined(weight);
    if (scale.defined()) require_same_dtype(self, scale);
    if (self.scalar_type() == at::kFloat) std::ignore = margin.toFloat();  // refuses what is beyond
    targets = target.reshape({samples, 1});
    const at::Tensor scores = self.reshape({samples, classes});
    gaps = scores - scores.gather(1, targets) + margin;
    gaps.masked_fill_(gaps.gt(0).logical_not_(), 0).scatter_(1, targets, 0);
    if (scale.defined()) {
      factors = scale.reshape({classes}).index_select(0, targets.flatten()).unsqueeze(1);
    }
  }

  int64_t samples = 0, classes = 0;
  bool squared = false;
  at::Tensor targets;  // [samples, 1]
  at::Tensor gaps;     // [samples, classes]: by how much a margin is missed
  at::Tensor factors;  // [samples, 1], or undefined
};

bool per_sample(int64_t reduction, const at::Tensor& target) {
  return reduction_of(reduction) == LossReduction::kNone && target.dim() > 0;
}

// Targets without a dimension have one sample, whose loss is always summed.
at::Tensor reduced_losses(const at::Tensor& losses, int64_t reduction, const at::Tensor& target) {
  if (per_sample(reduction, target)) return losses;
  const bool mean = reduction_of(reduction) == LossReduction::kMean;
  return reduced(losses, mean ? LossReduction::kMean : LossReduction::kSum);
}

// By what a gradient of each gap is multiplied: [samples, 1] or [].
at::Tensor outer_gradient(const at::Tensor& grad_output, int64_t reduction,
                          const at::Tensor& target, int64_t samples, int64_t classes) {
  if (per_sample(reduction, target)) return grad_output.reshape({samples, 1}).div(classes);
  const bool mean = reduction_of(reduction) == LossReduction::kMean;
  return grad_output.reshape({}).div(mean ? samples * classes : classes);
}

}  // namespace

at::Tensor GRAFT_OPERATOR(multi_margin_loss)(const at::Tensor& self, const at::Tensor& target,
                                             const at::Scalar& p, const at::Scalar& margin,
                                             const Weight& weight, int64_t reduction) {
  Margins margins(self, target, p, margin, weight);
  at::Tensor& losses = margins.gaps;
  if (margins.squared) losses.square_();
  if (margins.factors.defined()) losses.mul_(margins.factors);
  return reduced_losses(losses.sum(1).div_(margins.classes), reduction, target);
}

at::Tensor& GRAFT_OPERATOR(multi_margin_loss_out)(const at::Tensor& self, const at::Tensor& target,
                                                  const at::Scalar& p, const at::Scalar& margin,
                                                  const Weight& weight, int64_t reduction,
                                                  at::Tensor& out) {
  require_same_dtype(self, out);
  return store(out, GRAFT_OPERATOR(multi_margin_loss)(self, target, p, margin, weight, reduction));
}

at::Tensor GRAFT_OPERATOR(multi_margin_loss_backward)(const at::Tensor& grad_output,
                                                      const at::Tensor& self,
                                                      const at::Tensor& target, const at::Scalar& p,
                                                      const at::Scalar& margin,
                                                      const Weight& weight, int64_t reduction) {
  Margins margins(self, target, p, margin, weight);
  at::Tensor slopes = margins.squared ? margins.gaps.mul_(2) : margins.gaps.sign_();
  if (margins.factors.defined()) slopes.mul_(margins.factors);
  slopes.scatter_(1, margins.targets, slopes.sum(1, true).neg_());
  slopes.mul_(outer_gradient(grad_output, reduction, target, margins.samples, margins.classes));
  return slopes.reshape(self.sizes());
}

at::Tensor& GRAFT_OPERATOR(multi_margin_loss_backward_grad_input)(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target,
    const at::Scalar& p, const at::Scalar& margin, const Weight& weight, int64_t reduction,
    at::Tensor& grad_input) {
  require_same_dtype(self, grad_input);
  return store(grad_input, GRAFT_OPERATOR(multi_margin_loss_backward)(grad_output, self, target, p,
                                                                      margin, weight, reduction));
}

std::tuple<at::Tensor, at::Tensor> GRAFT_OPERATOR(multilabel_margin_loss_forward)(
    const at::Tensor& self, const at::Tensor& target, int64_t reduction) {
  int64_t samples = 0, classes = 0;
  native::multilabel_margin_loss_shape_check(samples, classes, self.dim(), self, target);
  require_floating(self);
  const at::Tensor scores = self.reshape({samples, classes}).contiguous();
  const at::Tensor labels = target.reshape({samples, classes}).contiguous();
  if (labels.numel() != 0) check_scalar_type(labels, at::kLong);
  require_elements_within(labels, -1, static_cast<double>(classes - 1),
                          "argument #2 'target' is out of range");
  at::Tensor losses = at::empty({samples}, self.options());
  at::Tensor marks = at::empty({samples, classes}, self.options());
  multilabel_margin(stream_of(self), view_of(losses), view_of(marks), view_of(scores),
                    view_of(labels));
  const at::Tensor loss =
      self.dim() == 2 ? reduced_losses(losses, reduction, target) : losses.sum();
  return {loss, marks.reshape(target.sizes())};
}

std::tuple<at::Tensor&, at::Tensor&> GRAFT_OPERATOR(multilabel_margin_loss_forward_output)(
    const at::Tensor& self, const at::Tensor& target, int64_t reduction, at::Tensor& output,
    at::Tensor& is_target) {
  require_same_dtype(self, output);
  require_same_dtype(self, is_target);
  TORCH_CHECK(is_target.sizes() != target.sizes() || is_target.is_contiguous(),
              "is_target must be contiguous");
  const auto [loss, marks] =
      GRAFT_OPERATOR(multilabel_margin_loss_forward)(self, target, reduction);
  return {store(output, loss), store(is_target, marks)};
}

at::Tensor GRAFT_OPERATOR(multilabel_margin_loss_backward)(const at::Tensor& grad_output,
                                                           const at::Tensor& self,
                                                           const at::Tensor& target,
                                                           int64_t reduction,
                                                           const at::Tensor& is_target) {
  int64_t samples = 0, classes = 0;
  native::multilabel_margin_loss_shape_check(samples, classes, self.dim(), self, target);
  require_floating(self);
  const at::Tensor scores = self.reshape({samples, classes}).contiguous();
  const at::Tensor labels = target.reshape({samples, classes}).contiguous();
  const at::Tensor marks = is_target.reshape({samples, classes}).contiguous();
  at::Tensor slopes = at::empty({samples, classes}, self.options());
  multilabel_margin_backward(stream_of(self), view_of(slopes), view_of(scores), view_of(labels),
                             view_of(marks));
  slopes.mul_(outer_gradient(grad_output, reduction, grad_output, samples, classes));
  return slopes.reshape(self.sizes());
}

at::Tensor& GRAFT_OPERATOR(multilabel_margin_loss_backward_grad_input)(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& target,
    int64_t reduction, const at::Tensor& is_target, at::Tensor& grad_input) {
  require_same_dtype(self, grad_input);
  return store(grad_input, GRAFT_OPERATOR(multilabel_margin_loss_backward)(
                               grad_output, self, target, reduction, is_target));
}

}  // namespace graft::binding

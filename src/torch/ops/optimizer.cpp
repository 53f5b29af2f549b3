// src/torch/ops/optimizer.cpp: the fused optimizers, over lists of parameters.
#include "kernels/training/optimizer.h"

#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/tensor/dense_list.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

using Optional = std::optional<at::Tensor>;

// The lists of one call; shorter ones are those that the rule does not have.
struct Lists {
  at::TensorList parameters, gradients;
  std::array<at::TensorList, 3> states;
  at::TensorList steps;
};

void check_one(const at::Tensor& number) {
  TORCH_CHECK(number.numel() == 1, "a Tensor with ", number.numel(),
              " elements cannot be converted to Scalar");
}

// A number that every parameter reads, where it lies on the device.
class Shared {
 public:
  Shared(const Optional& given, const at::Tensor& like, bool keeps_double) {
    if (!given.has_value() || !given->defined()) return;
    check_one(*given);
    const bool stays = keeps_double && given->scalar_type() == at::kDouble;
    tensor_ = given->to(like.device(), stays ? at::kDouble : at::kFloat);
    view_ = flat_view(tensor_);
  }
  const TensorView* get() const { return tensor_.defined() ? &view_ : nullptr; }

 private:
  at::Tensor tensor_;
  TensorView view_;
};

void check(const char* name, size_t parameters, at::TensorList list, const char* what) {
  TORCH_CHECK(list.size() == parameters, name, ": got ", parameters, " parameters and ",
              list.size(), " ", what, "; give one for each");
}

void run(const char* name, const Lists& lists, OptimizerSettings settings, const Optional& rate,
         const Optional& grad_scale, const Optional& found_inf) {
  const size_t size = lists.parameters.size();
  if (size == 0) return;
  const int states = states_of(settings.rule);
  check(name, size, lists.gradients, "gradients");
  for (size_t i = 0; i < static_cast<size_t>(states); ++i) {
    check(name, size, lists.states[i], "states");
  }
  if (counts_steps(settings.rule)) check(name, size, lists.steps, "steps");
  const at::Tensor& first = lists.parameters[0];
  Optional device_rate = rate;
  if (rate.has_value() && rate->is_cpu()) {
    settings.rate = rate->item<double>();
    device_rate.reset();
  }
  const Shared rate_tensor(device_rate, first, true), scale(grad_scale, first, false),
      found(found_inf, first, false);
  settings.rate_tensor = rate_tensor.get();
  settings.gradient_scale = scale.get();
  settings.found_inf = found.get();

  // A first step that is skipped leaves buffers that nobody wrote: PyTorch counts it all the same.
  if (settings.first_step && found_inf.has_value()) {
    for (const at::TensorList states : lists.states) {
      for (const at::Tensor& state : states) state.zero_();
    }
  }
  DenseList dense;
  std::vector<OptimizerTensors> tensors(size);
  for (size_t i = 0; i < size; ++i) {
    std::vector<DenseList::Member> members = {
        {lists.parameters[i], &tensors[i].parameter, true},
        {lists.gradients[i], &tensors[i].gradient, scale.get() != nullptr}};
    for (int s = 0; s < states; ++s) {
      members.push_back({lists.states[static_cast<size_t>(s)][i], &tensors[i].states[s], true});
    }
    dense.add(name, members);
    if (counts_steps(settings.rule)) {
      check_one(lists.steps[i]);
      tensors[i].step = flat_view(dense.keep(lists.steps[i]));
    }
  }
  optimizer_step(stream_of(first), tensors, settings);
  dense.finish();
}

OptimizerSettings adam(double rate, double beta1, double beta2, double weight_decay, double eps,
                       bool amsgrad, bool maximize, bool decoupled) {
  OptimizerSettings settings;
  settings.rule = amsgrad ? OptimizerRule::kAmsgrad : OptimizerRule::kAdam;
  settings.rate = rate;
  settings.beta1 = beta1, settings.beta2 = beta2;
  settings.weight_decay = weight_decay;
  settings.epsilon = eps;
  settings.ascent = maximize;
  settings.decoupled = decoupled;
  return settings;
}

OptimizerSettings sgd(double weight_decay, double momentum, double rate, double dampening,
                      bool nesterov, bool maximize, bool is_first_step, bool has_buffers) {
  OptimizerSettings settings;
  settings.rule = has_buffers ? OptimizerRule::kMomentum : OptimizerRule::kSgd;
  settings.rate = rate;
  settings.momentum = momentum, settings.dampening = dampening;
  settings.nesterov = nesterov, settings.first_step = is_first_step;
  settings.weight_decay = weight_decay;
  settings.ascent = maximize;
  return settings;
}

OptimizerSettings adagrad(double rate, double lr_decay, double weight_decay, double eps,
                          bool maximize) {
  OptimizerSettings settings;
  settings.rule = OptimizerRule::kAdagrad;
  settings.rate = rate, settings.rate_decay = lr_decay;
  settings.weight_decay = weight_decay;
  settings.epsilon = eps;
  settings.ascent = maximize;
  return settings;
}

}  // namespace

void GRAFT_OPERATOR(_fused_sgd_)(at::TensorList self, at::TensorList grads,
                                 at::TensorList momentum_buffer_list, double weight_decay,
                                 double momentum, double lr, double dampening, bool nesterov,
                                 bool maximize, bool is_first_step, const Optional& grad_scale,
                                 const Optional& found_inf) {
  run("_fused_sgd_", {self, grads, {momentum_buffer_list}, {}},
      sgd(weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step,
          !momentum_buffer_list.empty()),
      {}, grad_scale, found_inf);
}

void GRAFT_OPERATOR(_fused_sgd__tensor_lr)(at::TensorList self, at::TensorList grads,
                                           at::TensorList momentum_buffer_list, double weight_decay,
                                           double momentum, const at::Tensor& lr, double dampening,
                                           bool nesterov, bool maximize, bool is_first_step,
                                           const Optional& grad_scale, const Optional& found_inf) {
  run("_fused_sgd_", {self, grads, {momentum_buffer_list}, {}},
      sgd(weight_decay, momentum, 0, dampening, nesterov, maximize, is_first_step,
          !momentum_buffer_list.empty()),
      lr, grad_scale, found_inf);
}

void GRAFT_OPERATOR(_fused_adam_)(at::TensorList self, at::TensorList grads,
                                  at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
                                  at::TensorList max_exp_avg_sqs, at::TensorList state_steps,
                                  double lr, double beta1, double beta2, double weight_decay,
                                  double eps, bool amsgrad, bool maximize,
                                  const Optional& grad_scale, const Optional& found_inf) {
  run("_fused_adam_", {self, grads, {exp_avgs, exp_avg_sqs, max_exp_avg_sqs}, state_steps},
      adam(lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, false), {}, grad_scale,
      found_inf);
}

void GRAFT_OPERATOR(_fused_adam__tensor_lr)(at::TensorList self, at::TensorList grads,
                                            at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
                                            at::TensorList max_exp_avg_sqs,
                                            at::TensorList state_steps, const at::Tensor& lr,
                                            double beta1, double beta2, double weight_decay,
                                            double eps, bool amsgrad, bool maximize,
                                            const Optional& grad_scale, const Optional& found_inf) {
  run("_fused_adam_", {self, grads, {exp_avgs, exp_avg_sqs, max_exp_avg_sqs}, state_steps},
      adam(0, beta1, beta2, weight_decay, eps, amsgrad, maximize, false), lr, grad_scale,
      found_inf);
}

void GRAFT_OPERATOR(_fused_adamw_)(at::TensorList self, at::TensorList grads,
                                   at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
                                   at::TensorList max_exp_avg_sqs, at::TensorList state_steps,
                                   double lr, double beta1, double beta2, double weight_decay,
                                   double eps, bool amsgrad, bool maximize,
                                   const Optional& grad_scale, const Optional& found_inf) {
  run("_fused_adamw_", {self, grads, {exp_avgs, exp_avg_sqs, max_exp_avg_sqs}, state_steps},
      adam(lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, true), {}, grad_scale,
      found_inf);
}

void GRAFT_OPERATOR(_fused_adamw__tensor_lr)(
    at::TensorList self, at::TensorList grads, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
    at::TensorList max_exp_avg_sqs, at::TensorList state_steps, const at::Tensor& lr, double beta1,
    double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
    const Optional& grad_scale, const Optional& found_inf) {
  run("_fused_adamw_", {self, grads, {exp_avgs, exp_avg_sqs, max_exp_avg_sqs}, state_steps},
      adam(0, beta1, beta2, weight_decay, eps, amsgrad, maximize, true), lr, grad_scale, found_inf);
}

void GRAFT_OPERATOR(_fused_adagrad_)(at::TensorList self, at::TensorList grads,
                                     at::TensorList state_sums, at::TensorList state_steps,
                                     double lr, double lr_decay, double weight_decay, double eps,
                                     bool maximize, const Optional& grad_scale,
                                     const Optional& found_inf) {
  run("_fused_adagrad_", {self, grads, {state_sums}, state_steps},
      adagrad(lr, lr_decay, weight_decay, eps, maximize), {}, grad_scale, found_inf);
}

void GRAFT_OPERATOR(_fused_adagrad__tensor_lr)(at::TensorList self, at::TensorList grads,
                                               at::TensorList state_sums,
                                               at::TensorList state_steps, const at::Tensor& lr,
                                               double lr_decay, double weight_decay, double eps,
                                               bool maximize, const Optional& grad_scale,
                                               const Optional& found_inf) {
  run("_fused_adagrad_", {self, grads, {state_sums}, state_steps},
      adagrad(0, lr_decay, weight_decay, eps, maximize), lr, grad_scale, found_inf);
}

}  // namespace graft::binding

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

// A number, or a tensor, which is read at once where it lies on the CPU.
class LearningRate {
 public:
  LearningRate(double number) : number_(number) {}
  LearningRate(const at::Tensor& tensor) : tensor_(tensor) {}
  double number() const {
    return tensor_.has_value() && tensor_->is_cpu() ? tensor_->item<double>() : number_;
  }
  Optional on_device() const {
    return tensor_.has_value() && tensor_->is_cpu() ? std::nullopt : tensor_;
  }

 private:
  double number_ = 0;
  Optional tensor_;
};

void check(const char* name, size_t parameters, at::TensorList list, const char* what) {
  TORCH_CHECK(list.size() == parameters, name, ": got ", parameters, " parameters and ",
              list.size(), " ", what, "; give one for each");
}

void run(const char* name, const Lists& lists, OptimizerSettings settings, const LearningRate& rate,
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
  settings.rate = rate.number();
  const Shared rate_tensor(rate.on_device(), first, true), scale(grad_scale, first, false),
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

OptimizerSettings adam(double beta1, double beta2, double weight_decay, double eps, bool amsgrad,
                       bool maximize, bool decoupled) {
  OptimizerSettings settings;
  settings.rule = amsgrad ? OptimizerRule::kAmsgrad : OptimizerRule::kAdam;
  settings.beta1 = beta1, settings.beta2 = beta2;
  settings.weight_decay = weight_decay;
  settings.epsilon = eps;
  settings.ascent = maximize;
  settings.decoupled = decoupled;
  return settings;
}

OptimizerSettings sgd(double weight_decay, double momentum, double dampening, bool nesterov,
                      bool maximize, bool is_first_step, bool has_buffers) {
  OptimizerSettings settings;
  settings.rule = has_buffers ? OptimizerRule::kMomentum : OptimizerRule::kSgd;
  settings.momentum = momentum, settings.dampening = dampening;
  settings.nesterov = nesterov, settings.first_step = is_first_step;
  settings.weight_decay = weight_decay;
  settings.ascent = maximize;
  return settings;
}

OptimizerSettings adagrad(double lr_decay, double weight_decay, double eps, bool maximize) {
  OptimizerSettings settings;
  settings.rule = OptimizerRule::kAdagrad;
  settings.rate_decay = lr_decay;
  settings.weight_decay = weight_decay;
  settings.epsilon = eps;
  settings.ascent = maximize;
  return settings;
}

}  // namespace

// Optimizers by their names; Rate is double or, for the learning rate as a tensor, that.
#define GRAFT_SGD(step, Rate)                                                               \
  void step(at::TensorList self, at::TensorList grads, at::TensorList momentum_buffer_list, \
            double weight_decay, double momentum, Rate lr, double dampening, bool nesterov, \
            bool maximize, bool is_first_step, const Optional& grad_scale,                  \
            const Optional& found_inf) {                                                    \
    run("_fused_sgd_", {self, grads, {momentum_buffer_list}, {}},                           \
        sgd(weight_decay, momentum, dampening, nesterov, maximize, is_first_step,           \
            !momentum_buffer_list.empty()),                                                 \
        lr, grad_scale, found_inf);                                                         \
  }
#define GRAFT_ADAM(step, name, decoupled, Rate)                                                   \
  void step(at::TensorList self, at::TensorList grads, at::TensorList exp_avgs,                   \
            at::TensorList exp_avg_sqs, at::TensorList max_exp_avg_sqs,                           \
            at::TensorList state_steps, Rate lr, double beta1, double beta2, double weight_decay, \
            double eps, bool amsgrad, bool maximize, const Optional& grad_scale,                  \
            const Optional& found_inf) {                                                          \
    run(name, {self, grads, {exp_avgs, exp_avg_sqs, max_exp_avg_sqs}, state_steps},               \
        adam(beta1, beta2, weight_decay, eps, amsgrad, maximize, decoupled), lr, grad_scale,      \
        found_inf);                                                                               \
  }
#define GRAFT_ADAGRAD(step, Rate)                                                                  \
  void step(at::TensorList self, at::TensorList grads, at::TensorList state_sums,                  \
            at::TensorList state_steps, Rate lr, double lr_decay, double weight_decay, double eps, \
            bool maximize, const Optional& grad_scale, const Optional& found_inf) {                \
    run("_fused_adagrad_", {self, grads, {state_sums}, state_steps},                               \
        adagrad(lr_decay, weight_decay, eps, maximize), lr, grad_scale, found_inf);                \
  }

GRAFT_SGD(GRAFT_OPERATOR(_fused_sgd_), double)
GRAFT_SGD(GRAFT_OPERATOR(_fused_sgd__tensor_lr), const at::Tensor&)
GRAFT_ADAM(GRAFT_OPERATOR(_fused_adam_), "_fused_adam_", false, double)
GRAFT_ADAM(GRAFT_OPERATOR(_fused_adam__tensor_lr), "_fused_adam_", false, const at::Tensor&)
GRAFT_ADAM(GRAFT_OPERATOR(_fused_adamw_), "_fused_adamw_", true, double)
GRAFT_ADAM(GRAFT_OPERATOR(_fused_adamw__tensor_lr), "_fused_adamw_", true, const at::Tensor&)
GRAFT_ADAGRAD(GRAFT_OPERATOR(_fused_adagrad_), double)
GRAFT_ADAGRAD(GRAFT_OPERATOR(_fused_adagrad__tensor_lr), const at::Tensor&)

}  // namespace graft::binding

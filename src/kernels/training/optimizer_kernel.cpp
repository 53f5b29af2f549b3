// src/kernels/training/optimizer_kernel.cpp: the kernel of one optimizer step over a group of
// tensors.
#include "kernels/training/optimizer_kernel.h"

#include <vector>

#include "codegen/ir/builder.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

// Positions in OptimizerNumbers; one place means different things to different rules.
enum Number {
  kRate,
  kWeightDecay,
  kAscent,
  kEpsilon,
  kBeta1,
  kBeta2,
  kDecoupled,
  kSpare,
  kMomentumFactor = kBeta1,
  kDampening = kBeta2,
  kNesterov = kDecoupled,
  kFirstStep = kSpare,
  kRateDecay = kBeta1,
};

class OptimizerWriter {
 public:
  explicit OptimizerWriter(const OptimizerKernel& kernel)
      : kernel_(kernel), b_(kernel.key()), type_(ir::compute_type(kernel.dtype)) {}

  ir::Kernel write() {
    constexpr uint32_t kRead = GRAFT_ACCESS_READ, kUpdate = kRead | GRAFT_ACCESS_WRITE;
    const int states = states_of(kernel_.rule);
    std::vector<GroupList> lists;
    const auto declare = [&](graft_dtype dtype, uint32_t access) {
      lists.emplace_back(b_, dtype, access, kernel_.slots);
    };
    declare(kernel_.dtype, kUpdate);
    declare(kernel_.dtype, kernel_.scaled ? kUpdate : kRead);
    for (int i = 0; i < states; ++i) declare(kernel_.dtype, kUpdate);
    if (counts_steps(kernel_.rule)) declare(GRAFT_FLOAT32, kRead);
    Address rate, scale, found;
    if (kernel_.rate_tensor) rate = b_.read(kernel_.rate_dtype);
    if (kernel_.scaled) scale = b_.read(GRAFT_FLOAT32);
    if (kernel_.guarded) found = b_.read(GRAFT_FLOAT32);
    for (Value& number : numbers_) number = b_.scalar(GRAFT_FLOAT64);
    const GroupShare share(b_, kernel_.slots, kernel_.lanes);
    Slot slot;
    slot.parameter = lists[0].at(share.slot);
    slot.gradient = lists[1].at(share.slot);
    for (int i = 0; i < states; ++i) {
      slot.states[i] = lists[static_cast<size_t>(i) + 2].at(share.slot);
    }
    if (counts_steps(kernel_.rule)) slot.step = lists.back().at(share.slot);
    const auto body = [&] {
      if (kernel_.rate_tensor) numbers_[kRate] = cast(Type::kF64, rate.load(b_.i64(0)));
      if (kernel_.scaled) scale_ = cast(type_, scale.load(b_.i64(0)));
      step(slot, share);
    };
    if (kernel_.guarded) {
      b_.if_(found.load(b_.i64(0)) == 0, body);
    } else {
      body();
    }
    return b_.finish();
  }

 private:
  struct Slot {
    Address parameter, gradient, states[3], step;
  };

  Value number(Number which) const { return cast(type_, numbers_[which]); }
  bool is_adam() const {
    return kernel_.rule == OptimizerRule::kAdam || kernel_.rule == OptimizerRule::kAmsgrad;
  }

  void step(const Slot& slot, const GroupShare& share) {
    rate_ = number(kRate);
    if (counts_steps(kernel_.rule)) prepare(cast(Type::kF64, slot.step.load(b_.i64(0))));
    share.each(b_, [&](Value i) {
      Value gradient = slot.gradient.load(i);
      if (kernel_.scaled) {
        gradient = gradient / scale_;
        slot.gradient.store(i, gradient);
      }
      gradient = select(numbers_[kAscent] != 0, -gradient, gradient);
      const Value parameter = slot.parameter.load(i);
      slot.parameter.store(i, is_adam() ? adam(slot, i, parameter, gradient)
                              : kernel_.rule == OptimizerRule::kAdagrad
                                  ? adagrad(slot, i, parameter, gradient)
                                  : sgd(slot, i, parameter, gradient));
    });
  }

  // What the number of steps changes, once for a work-item, in float64.
  void prepare(Value step) {
    if (!is_adam()) {
      rate_ = cast(type_, numbers_[kRate] / (1 + (step - 1) * numbers_[kRateDecay]));
      return;
    }
    rate_ = cast(type_, numbers_[kRate] / (1 - pow(numbers_[kBeta1], step)));
    unbiased_ = cast(type_, 1 / sqrt(1 - pow(numbers_[kBeta2], step)));
    keep_ = cast(type_, 1 - numbers_[kRate] * numbers_[kWeightDecay]);
    toward1_ = cast(type_, 1 - numbers_[kBeta1]);
    toward2_ = cast(type_, 1 - numbers_[kBeta2]);
  }

  Value decayed(Value parameter, Value gradient) const {
    const Value decay = number(kWeightDecay);
    return select(decay != 0, gradient + decay * parameter, gradient);
  }

  Value sgd(const Slot& slot, Value i, Value parameter, Value gradient) {
    gradient = decayed(parameter, gradient);
    if (kernel_.rule == OptimizerRule::kMomentum) {
      const Value momentum = number(kMomentumFactor);
      const Value moved =
          momentum * slot.states[0].load(i) + cast(type_, 1 - numbers_[kDampening]) * gradient;
      const Value buffer = select(numbers_[kFirstStep] != 0, gradient, moved);
      slot.states[0].store(i, buffer);
      gradient = select(numbers_[kNesterov] != 0, gradient + momentum * buffer, buffer);
    }
    return parameter - rate_ * gradient;
  }

  Value adam(const Slot& slot, Value i, Value parameter, Value gradient) {
    const Value decoupled = numbers_[kDecoupled] != 0;
    gradient = select(decoupled, gradient, decayed(parameter, gradient));
    parameter = select(decoupled, parameter * keep_, parameter);
    Value first = slot.states[0].load(i), second = slot.states[1].load(i);
    first = first + toward1_ * (gradient - first);
    second = number(kBeta2) * second + toward2_ * gradient * gradient;
    slot.states[0].store(i, first);
    slot.states[1].store(i, second);
    if (kernel_.rule == OptimizerRule::kAmsgrad) {
      second = ir::maximum(slot.states[2].load(i), second);
      slot.states[2].store(i, second);
    }
    return parameter - rate_ * first / (sqrt(second) * unbiased_ + number(kEpsilon));
  }

  Value adagrad(const Slot& slot, Value i, Value parameter, Value gradient) {
    gradient = decayed(parameter, gradient);
    const Value sum = slot.states[0].load(i) + gradient * gradient;
    slot.states[0].store(i, sum);
    return parameter - rate_ * gradient / (sqrt(sum) + number(kEpsilon));
  }

  const OptimizerKernel& kernel_;
  Builder b_;
  const Type type_;
  Value numbers_[kOptimizerNumbers];
  Value scale_, rate_, unbiased_, keep_, toward1_, toward2_;
};

}  // namespace

std::string OptimizerKernel::key() const {
  static const char* const kRules[] = {"sgd", "momentum", "adam", "amsgrad", "adagrad"};
  return std::string("optimizer_") + kRules[static_cast<int>(rule)] + "_" + name_of(dtype) +
         (rate_tensor ? std::string("_rate_") + name_of(rate_dtype) : "") +
         (scaled ? "_scaled" : "") + (guarded ? "_guarded" : "") +
         (slots == kGroupSlots ? "" : "_by_" + std::to_string(slots)) + (lanes ? "_lanes" : "");
}

ir::Kernel OptimizerKernel::build() const { return OptimizerWriter(*this).write(); }

OptimizerNumbers optimizer_numbers(const OptimizerSettings& s) {
  OptimizerNumbers numbers{};
  double* const v = numbers.values;
  v[kRate] = s.rate;
  v[kWeightDecay] = s.weight_decay;
  v[kAscent] = s.ascent ? 1 : 0;
  v[kEpsilon] = s.epsilon;
  if (s.rule == OptimizerRule::kMomentum) {
    v[kMomentumFactor] = s.momentum;
    v[kDampening] = s.dampening;
    v[kNesterov] = s.nesterov ? 1 : 0;
    v[kFirstStep] = s.first_step ? 1 : 0;
  } else if (s.rule == OptimizerRule::kAdagrad) {
    v[kRateDecay] = s.rate_decay;
  } else {
    v[kBeta1] = s.beta1;
    v[kBeta2] = s.beta2;
    v[kDecoupled] = s.decoupled ? 1 : 0;
  }
  return numbers;
}

}  // namespace graft

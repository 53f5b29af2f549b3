// tests/kernels/training/optimizer_test.cpp: steps of optimizers against their formulas in double.
#include "kernels/training/optimizer.h"

#include <cmath>
#include <deque>

#include "runtime/driver/dtype.h"
#include "tests/kernels/tensor/device_tensor.h"

// labels of the file: few_parameters
namespace {

using namespace graft;
using namespace graft::test;

using Numbers = std::vector<double>;

// One parameter on the device and the same numbers in double.
struct Subject {
  Subject(int64_t count, unsigned seed, graft_dtype dtype, double step_number)
      : parameter({count}, dtype),
        gradient({count}, dtype),
        first({count}, dtype),
        second({count}, dtype),
        third({count}, dtype),
        step({}, GRAFT_FLOAT32) {
    DeviceTensor* tensors[] = {&parameter, &gradient, &first, &second, &third};
    for (int i = 0; i < 5; ++i) {
      values.push_back(numbers(count, seed + static_cast<unsigned>(i), i < 3 ? -2 : 0.1, 2, dtype));
      tensors[i]->set(values.back());
    }
    step.set({step_number});
  }
  OptimizerTensors tensors(bool sums) const {
    return {parameter, gradient, {sums ? second : first, second, third}, step};
  }

  DeviceTensor parameter, gradient, first, second, third, step;
  std::vector<Numbers> values;
};

// The formulas of torch.optim's documentation for one element; states in s.
double expected(const OptimizerSettings& o, double p, double g, double* s, double step) {
  if (o.ascent) g = -g;
  if (o.decoupled) p -= o.rate * o.weight_decay * p;
  if (!o.decoupled) g += o.weight_decay * p;
  switch (o.rule) {
    case OptimizerRule::kSgd:
      return p - o.rate * g;
    case OptimizerRule::kMomentum:
      s[0] = o.first_step ? g : o.momentum * s[0] + (1 - o.dampening) * g;
      return p - o.rate * (o.nesterov ? g + o.momentum * s[0] : s[0]);
    case OptimizerRule::kAdagrad:
      s[0] += g * g;
      return p - o.rate / (1 + (step - 1) * o.rate_decay) * g / (std::sqrt(s[0]) + o.epsilon);
    default:
      break;
  }
  s[0] = o.beta1 * s[0] + (1 - o.beta1) * g;
  s[1] = o.beta2 * s[1] + (1 - o.beta2) * g * g;
  s[2] = std::max(s[1], s[2]);
  const double second = o.rule == OptimizerRule::kAmsgrad ? s[2] : s[1];
  const double denominator = std::sqrt(second) / std::sqrt(1 - std::pow(o.beta2, step)) + o.epsilon;
  return p - o.rate / (1 - std::pow(o.beta1, step)) * s[0] / denominator;
}

// More tensors than a launch takes, one empty, one longer than a work-item's share.
constexpr int64_t kLengths[] = {5, 1, 0, 20000, 64, 3, 7, 100, 9, 33, 8192, 2, 6, 4, 8, 10, 11, 12};

void check(const OptimizerSettings& settings, graft_dtype dtype, double scale = 1) {
  std::deque<Subject> subjects;
  std::vector<OptimizerTensors> tensors;
  const bool sums = settings.rule == OptimizerRule::kAdagrad;
  for (int64_t length : kLengths) {
    const auto seed = static_cast<unsigned>(subjects.size() * 10);
    subjects.emplace_back(length, seed, dtype, 3.0 + static_cast<double>(subjects.size()));
    tensors.push_back(subjects.back().tensors(sums));
  }
  optimizer_step(stream(), tensors, settings);
  double step = 3;
  for (Subject& subject : subjects) {
    Numbers p = subject.values[0], first = subject.values[sums ? 3 : 2];
    for (size_t i = 0; i < p.size(); ++i) {
      double states[3] = {first[i], subject.values[3][i], subject.values[4][i]};
      p[i] = expected(settings, p[i], subject.values[1][i] / scale, states, step);
      first[i] = states[0];
    }
    const double t = tolerance(dtype);
    EXPECT_TRUE(near(subject.parameter.get(), p, t, t));
    if (states_of(settings.rule) > 0) {
      EXPECT_TRUE(near((sums ? subject.second : subject.first).get(), first, t, t));
    }
    if (scale != 1) {
      Numbers gradient = subject.values[1];
      for (double& g : gradient) g /= scale;
      EXPECT_TRUE(near(subject.gradient.get(), gradient, t, t));
    }
    ++step;
  }
}

OptimizerSettings settings_of(OptimizerRule rule) {
  OptimizerSettings settings;
  settings.rule = rule;
  settings.rate = 0.05;
  settings.weight_decay = 0.1;
  settings.momentum = 0.9, settings.dampening = 0.25;
  settings.beta1 = 0.9, settings.beta2 = 0.99;
  settings.epsilon = 1e-3;
  settings.rate_decay = 0.125;
  return settings;
}

TEST(Optimizer, EveryRuleInEveryDtype) {
  for (auto rule : {OptimizerRule::kSgd, OptimizerRule::kMomentum, OptimizerRule::kAdam,
                    OptimizerRule::kAmsgrad, OptimizerRule::kAdagrad}) {
    for (auto dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64, GRAFT_BFLOAT16, GRAFT_FLOAT16}) {
      SCOPED_TRACE(std::string(name_of(dtype)) + " " + std::to_string(static_cast<int>(rule)));
      check(settings_of(rule), dtype);
    }
  }
}

TEST(Optimizer, TurnsEverySwitch) {
  OptimizerSettings momentum = settings_of(OptimizerRule::kMomentum);
  momentum.nesterov = momentum.ascent = true;
  check(momentum, GRAFT_FLOAT32);
  momentum.first_step = true;
  check(momentum, GRAFT_FLOAT32);
  OptimizerSettings adam = settings_of(OptimizerRule::kAdam);
  adam.decoupled = adam.ascent = true;
  check(adam, GRAFT_FLOAT32);
  adam.weight_decay = 0;
  check(adam, GRAFT_FLOAT32);
}

TEST(Optimizer, TakesRateAndScaleFromTheDevice) {
  for (auto dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64}) {
    DeviceTensor rate({}, dtype), scale({}, GRAFT_FLOAT32), found({}, GRAFT_FLOAT32);
    rate.set({0.05}), scale.set({8}), found.set({0});
    OptimizerSettings settings = settings_of(OptimizerRule::kAdam);
    settings.rate_tensor = &rate.view();
    settings.gradient_scale = &scale.view();
    settings.found_inf = &found.view();
    check(settings, GRAFT_FLOAT32, 8);
    settings.rule = OptimizerRule::kAmsgrad;
    check(settings, GRAFT_FLOAT32, 8);
  }
}

TEST(Optimizer, LeavesAllAloneWhereInfinitiesWereFound) {
  Subject subject(100, 1, GRAFT_FLOAT32, 1);
  DeviceTensor found({}, GRAFT_FLOAT32);
  found.set({1});
  OptimizerSettings settings = settings_of(OptimizerRule::kAdam);
  settings.found_inf = &found.view();
  const OptimizerTensors tensors = subject.tensors(false);
  optimizer_step(stream(), {&tensors, 1}, settings);
  EXPECT_EQ(subject.parameter.get(), subject.values[0]);
  EXPECT_EQ(subject.first.get(), subject.values[2]);
}

TEST(Optimizer, NoWeightDecayKeepsInfiniteParametersOutOfTheGradient) {
  Subject subject(1, 1, GRAFT_FLOAT32, 1);
  subject.parameter.set({INFINITY});
  OptimizerSettings settings = settings_of(OptimizerRule::kMomentum);
  settings.weight_decay = 0;
  const OptimizerTensors tensors = subject.tensors(false);
  optimizer_step(stream(), {&tensors, 1}, settings);
  EXPECT_TRUE(std::isfinite(subject.first.get()[0]));
}

}  // namespace

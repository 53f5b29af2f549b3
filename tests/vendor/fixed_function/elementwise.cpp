// tests/vendor/fixed_function/elementwise.cpp: rows of Graft's table, one formula each, and steps
// of optimizers.
#include <cmath>
#include <cstring>

#include "chip.h"

namespace chip {
namespace {

// Inputs, then scalars.
using Formula = float (*)(const float* x, const float* s);

struct Row {
  const char* name;
  Formula formula;
};

float gelu_slope(float x) {
  const float b = 0.7978845608f, c = 0.044715f;
  const float t = std::tanh(b * (x + c * x * x * x));
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * b * (1 + 3 * c * x * x);
}

constexpr Row kRows[] = {
    {"positive", [](const float* x, const float*) { return x[0]; }},
    {"neg", [](const float* x, const float*) { return -x[0]; }},
    {"sqrt", [](const float* x, const float*) { return std::sqrt(x[0]); }},
    {"rsqrt", [](const float* x, const float*) { return 1 / std::sqrt(x[0]); }},
    {"tanh", [](const float* x, const float*) { return std::tanh(x[0]); }},
    {"relu", [](const float* x, const float*) { return x[0] <= 0 ? 0 : x[0]; }},
    {"clamp_min", [](const float* x, const float* s) { return x[0] < s[0] ? s[0] : x[0]; }},
    {"threshold", [](const float* x, const float* s) { return x[0] <= s[0] ? s[1] : x[1]; }},
    {"gelu_tanh",
     [](const float* x, const float*) {
       return 0.5f * x[0] *
              (1 + std::tanh(0.7978845608f * (x[0] + 0.044715f * x[0] * x[0] * x[0])));
     }},
    {"gelu_tanh_backward", [](const float* x, const float*) { return x[0] * gelu_slope(x[1]); }},
    {"tanh_backward", [](const float* x, const float*) { return x[0] * (1 - x[1] * x[1]); }},
    {"add", [](const float* x, const float* s) { return x[0] + s[0] * x[1]; }},
    {"sub", [](const float* x, const float* s) { return x[0] - s[0] * x[1]; }},
    {"plain_add", [](const float* x, const float*) { return x[0] + x[1]; }},
    {"plain_sub", [](const float* x, const float*) { return x[0] - x[1]; }},
    {"mul", [](const float* x, const float*) { return x[0] * x[1]; }},
    {"div", [](const float* x, const float*) { return x[0] / x[1]; }},
    {"pow_scalar", [](const float* x, const float* s) { return std::pow(x[0], s[0]); }},
    {"square", [](const float* x, const float*) { return x[0] * x[0]; }},
    {"cube", [](const float* x, const float*) { return x[0] * x[0] * x[0]; }},
};

Formula formula_of(const std::string& name) {
  for (const Row& row : kRows) {
    if (name == row.name) return row.formula;
  }
  return nullptr;
}

// Inputs that are numbers are missing tensors; their numbers stand before the row's own.
void run_row(const Run& run) {
  const Formula formula = formula_of(run.plan.operation->name);
  const size_t inputs = run.tensors.size() - 1;
  float x[4] = {}, s[8] = {};
  size_t number = 0;
  for (size_t i = 0; i < inputs; ++i) {
    if (!run[i + 1].given()) x[i] = static_cast<float>(run.scalars[number++]);
  }
  for (size_t i = number; i < run.scalars.size(); ++i) {
    s[i - number] = static_cast<float>(run.scalars[i]);
  }
  const Tensor& output = run[0];
  for (int64_t at = 0, count = output.count(); at < count; ++at) {
    for (size_t i = 0; i < inputs; ++i) {
      if (run[i + 1].given()) x[i] = run[i + 1].at(at);
    }
    output.at(at) = formula(x, s);
  }
}

bool takes_row(const Plan& plan) {
  return plan.integers[0] == GRAFT_FLOAT32 && plan.tensors.size() <= 5;
}

// optimizer_step: parameter, three states, gradient; step, rate, scale, found_inf.
enum Rule { kSgd, kMomentum, kAdam };

bool takes_step(const Plan& plan) {
  const auto missing = [&](size_t i) { return plan.tensors[i].dtype == GRAFT_NO_TENSOR; };
  return plan.integers[0] <= kAdam && missing(6) && missing(7) && missing(8);
}

void run_step(const Run& run) {
  const int64_t rule = run.integer(0);
  const bool ascent = run.integer(1) != 0, nesterov = run.integer(2) != 0;
  const bool first = run.integer(3) != 0, decoupled = run.integer(4) != 0;
  const auto number = [&](size_t i) { return static_cast<float>(run.number(i)); };
  const float decay = number(0), momentum = number(1), dampening = number(2);
  const auto rate = static_cast<float>(run.scalars[0]);
  const double step = rule == kAdam ? run[5].real(0) : 1;
  const double rise1 = 1 - std::pow(run.number(3), step), rise2 = 1 - std::pow(run.number(4), step);
  for (int64_t at = 0, count = run[0].count(); at < count; ++at) {
    float& parameter = run[0].at(at);
    float gradient = ascent ? -run[4].at(at) : run[4].at(at);
    if (rule == kAdam && decoupled) {
      parameter *= 1 - rate * decay;
    } else {
      gradient += decay * parameter;
    }
    if (rule == kMomentum) {
      float& buffer = run[1].at(at);
      buffer = first ? gradient : momentum * buffer + (1 - dampening) * gradient;
      gradient = nesterov ? gradient + momentum * buffer : buffer;
    }
    if (rule != kAdam) {
      parameter -= rate * gradient;
      continue;
    }
    float &mean = run[1].at(at), &square = run[2].at(at);
    mean += (1 - number(3)) * (gradient - mean);
    square = number(4) * square + (1 - number(4)) * gradient * gradient;
    const double divisor = std::sqrt(square) / std::sqrt(rise2) + run.number(5);
    parameter -= static_cast<float>(rate / rise1 * mean / divisor);
  }
}

}  // namespace

std::vector<Operation> elementwise() {
  std::vector<Operation> all;
  for (const Row& row : kRows) all.push_back({row.name, run_row, 0, takes_row});
  all.push_back({"optimizer_step", run_step, 0, takes_step});
  return all;
}

}  // namespace chip

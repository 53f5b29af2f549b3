// tests/kernels/loss/nll_loss_test.cpp: the negative log-likelihood loss against sums on the host.
#include <cmath>

#include "kernels/loss/loss.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

constexpr int64_t kIgnored = 2;

void check(int64_t n, int64_t c, int64_t plane, graft_dtype dtype, bool weighted,
           LossReduction reduction) {
  SCOPED_TRACE(std::string(name_of(dtype)) + " " + std::to_string(n) +
               (weighted ? " weighted" : ""));
  const auto x = numbers(n * c * plane, 1, -5, 0, dtype);
  auto t = numbers(n * plane, 2, 0, static_cast<double>(c) - 0.01, GRAFT_INT64);
  const auto w = weighted ? numbers(c, 3, 0.5, 2, dtype) : std::vector<double>(c, 1.0);
  const auto g = numbers(n * plane, 4, -1, 1, dtype);
  std::vector<double> losses(t.size()), gx(x.size());
  double sum = 0, total = 0;
  auto at = [&](size_t i) {
    const size_t s = static_cast<size_t>(plane);
    return (i / s * static_cast<size_t>(c) + static_cast<size_t>(t[i])) * s + i % s;
  };
  for (size_t i = 0; i < t.size(); ++i) {
    if (t[i] == kIgnored) continue;
    losses[i] = -x[at(i)] * w[static_cast<size_t>(t[i])];
    sum += losses[i];
    total += w[static_cast<size_t>(t[i])];
  }
  for (size_t i = 0; i < t.size(); ++i) {
    if (t[i] == kIgnored) continue;
    const double scale = reduction == LossReduction::kNone ? g[i] : g[0];
    gx[at(i)] = -w[static_cast<size_t>(t[i])] * scale;
    if (reduction == LossReduction::kMean) gx[at(i)] /= total;
  }
  const bool none = reduction == LossReduction::kNone;
  DeviceTensor input({n, c, plane}, dtype), target({n, plane}, GRAFT_INT64), weight({c}, dtype);
  DeviceTensor output(none ? std::vector<int64_t>{n, plane} : std::vector<int64_t>{}, dtype);
  DeviceTensor total_weight({}, dtype), grad_input({n, c, plane}, dtype);
  input.set(x), target.set(t), weight.set(w);
  const TensorView* weights = weighted ? &weight.view() : nullptr;
  nll_loss(stream(), output, total_weight, input, target, weights, reduction, kIgnored);
  const double e = 4 * tolerance(dtype);
  const double mean = reduction == LossReduction::kMean ? sum / total : sum;
  EXPECT_TRUE(near(output.get(), none ? losses : std::vector<double>{mean}, e, e));
  EXPECT_TRUE(near(total_weight.get(), {none ? 0 : total}, e, 0));
  output.set(none ? g : std::vector<double>{g[0]});
  nll_loss_backward(stream(), grad_input, output, target, weights, total_weight, reduction,
                    kIgnored);
  EXPECT_TRUE(near(grad_input.get(), gx, e, e));
}

TEST(NllLoss, EveryReduction) {
  for (auto reduction : {LossReduction::kNone, LossReduction::kMean, LossReduction::kSum}) {
    for (bool weighted : {false, true}) {
      check(8, 10, 1, GRAFT_FLOAT32, weighted, reduction);
      check(300, 4, 1, GRAFT_FLOAT64, weighted, reduction);
      check(2, 5, 63, GRAFT_FLOAT32, weighted, reduction);
      check(9, 10, 1, GRAFT_BFLOAT16, weighted, reduction);
    }
  }
}

TEST(NllLoss, OneRowAndNoRows) {
  DeviceTensor input({3}, GRAFT_FLOAT32), target({}, GRAFT_INT64), output({}, GRAFT_FLOAT32);
  DeviceTensor total({}, GRAFT_FLOAT32);
  input.set({-1, -2, -3}), target.set({1});
  nll_loss(stream(), output, total, input, target, nullptr, LossReduction::kMean, -100);
  EXPECT_EQ(output.get()[0], 2);
  DeviceTensor none({0, 3}, GRAFT_FLOAT32), targets({0}, GRAFT_INT64);
  nll_loss(stream(), output, total, none, targets, nullptr, LossReduction::kMean, -100);
  EXPECT_TRUE(std::isnan(output.get()[0]));
}

TEST(NllLoss, TargetOutOfRangeIsReportedOnce) {
  DeviceTensor input({2, 3}, GRAFT_FLOAT32), target({2}, GRAFT_INT64), output({}, GRAFT_FLOAT32);
  DeviceTensor total({}, GRAFT_FLOAT32);
  input.set({-1, -2, -3, -1, -2, -3}), target.set({1, 7});
  nll_loss(stream(), output, total, input, target, nullptr, LossReduction::kMean, -100);
  try {
    stream().synchronize();
    FAIL() << "the target 7 of 3 classes went unnoticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), GRAFT_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error.what()).find("7"), std::string::npos) << error.what();
  }
  stream().synchronize();
  target.set({0, 2});
  nll_loss(stream(), output, total, input, target, nullptr, LossReduction::kSum, -100);
  EXPECT_EQ(output.get()[0], 4);
}

}  // namespace

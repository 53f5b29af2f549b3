// tests/kernels/norm/batch_norm_test.cpp: batch normalisation and its gradients against double.
#include <cmath>

#include "kernels/norm/normalization.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

constexpr double kEpsilon = 1e-3, kMomentum = 0.1;

// A case [n, c, plane] and the answers in double.
struct Reference {
  int64_t n, c, plane;
  std::vector<double> x, g, weight, bias, running_mean, running_var;
  std::vector<double> mean, invstd, var, y, gx, gw, gb;

  Reference(int64_t images, int64_t channels, int64_t pixels, graft_dtype dtype)
      : n(images), c(channels), plane(pixels) {
    x = numbers(n * c * plane, 1, 2, 5, dtype);
    g = numbers(n * c * plane, 2, -1, 1, dtype);
    weight = numbers(c, 3, 0.5, 2, GRAFT_FLOAT32);
    bias = numbers(c, 4, -1, 1, GRAFT_FLOAT32);
    running_mean = numbers(c, 5, -1, 1, GRAFT_FLOAT32);
    running_var = numbers(c, 6, 0.5, 2, GRAFT_FLOAT32);
  }
  double count() const { return static_cast<double>(n * plane); }
  size_t channel(size_t i) const { return i / static_cast<size_t>(plane) % static_cast<size_t>(c); }

  void statistics() {
    mean.assign(weight.size(), 0), var = invstd = mean;
    for (size_t i = 0; i < x.size(); ++i) mean[channel(i)] += x[i] / count();
    for (size_t i = 0; i < x.size(); ++i) {
      var[channel(i)] += (x[i] - mean[channel(i)]) * (x[i] - mean[channel(i)]) / count();
    }
    for (size_t k = 0; k < var.size(); ++k) invstd[k] = 1 / std::sqrt(var[k] + kEpsilon);
  }
  void given() {
    mean = running_mean;
    var = running_var;
    invstd = var;
    for (size_t k = 0; k < var.size(); ++k) invstd[k] = 1 / std::sqrt(var[k] + kEpsilon);
  }
  void results(bool train) {
    y.assign(x.size(), 0), gx = y, gw.assign(weight.size(), 0), gb = gw;
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t k = channel(i);
      const double hat = (x[i] - mean[k]) * invstd[k];
      y[i] = hat * weight[k] + bias[k];
      gw[k] += g[i] * hat;
      gb[k] += g[i];
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t k = channel(i);
      const double hat = (x[i] - mean[k]) * invstd[k];
      const double centre = train ? (gb[k] + hat * gw[k]) / count() : 0;
      gx[i] = weight[k] * invstd[k] * (g[i] - centre);
    }
  }
};

void check(int64_t n, int64_t c, int64_t h, int64_t w, graft_dtype dtype, bool channels_last,
           bool train) {
  SCOPED_TRACE(std::string(name_of(dtype)) + (channels_last ? " channels last" : "") +
               (train ? " train " : " eval ") + std::to_string(c));
  Reference r(n, c, h * w, dtype);
  const graft_dtype parameter = dtype == GRAFT_FLOAT64 ? GRAFT_FLOAT64 : GRAFT_FLOAT32;
  std::vector<int64_t> sizes{n, c, h, w}, strides{c * h * w, h * w, w, 1};
  if (channels_last) strides = {c * h * w, 1, w * c, c};
  DeviceTensor input(sizes, strides, dtype), output(sizes, strides, dtype);
  DeviceTensor grad(sizes, strides, dtype), grad_input(sizes, strides, dtype);
  DeviceTensor weight({c}, parameter), bias({c}, parameter), mean({c}, parameter);
  DeviceTensor invstd({c}, parameter), running_mean({c}, parameter), running_var({c}, parameter);
  DeviceTensor grad_weight({c}, parameter), grad_bias({c}, parameter);
  input.set(r.x), grad.set(r.g), weight.set(r.weight), bias.set(r.bias);
  running_mean.set(r.running_mean), running_var.set(r.running_var);
  const double t = 4 * tolerance(dtype), tp = 20 * tolerance(parameter);
  const NormGradients gradients{&grad_input.view(), &grad_weight.view(), &grad_bias.view()};
  if (train) {
    r.statistics();
    batch_norm_train(stream(), output, mean, invstd, &running_mean.view(), &running_var.view(),
                     input, &weight.view(), &bias.view(), kMomentum, kEpsilon);
    EXPECT_TRUE(near(mean.get(), r.mean, tp, tp));
    EXPECT_TRUE(near(invstd.get(), r.invstd, tp, tp));
    auto moved = r.running_mean, moved_var = r.running_var;
    for (size_t k = 0; k < moved.size(); ++k) {
      moved[k] += kMomentum * (r.mean[k] - moved[k]);
      moved_var[k] += kMomentum * (r.var[k] * r.count() / (r.count() - 1) - moved_var[k]);
    }
    EXPECT_TRUE(near(running_mean.get(), moved, tp, tp));
    EXPECT_TRUE(near(running_var.get(), moved_var, tp, tp));
  } else {
    r.given();
    batch_norm_inference(stream(), output, input, &weight.view(), &bias.view(), running_mean,
                         running_var, kEpsilon);
  }
  r.results(train);
  EXPECT_TRUE(near(output.get(), r.y, t, 4 * t));
  batch_norm_backward(stream(), gradients, grad, input, &weight.view(),
                      train ? mean.view() : running_mean.view(),
                      train ? invstd.view() : running_var.view(), train, kEpsilon);
  EXPECT_TRUE(near(grad_input.get(), r.gx, t, 4 * t));
  EXPECT_TRUE(near(grad_weight.get(), r.gw, 4 * tp, 40 * tp));
  EXPECT_TRUE(near(grad_bias.get(), r.gb, 4 * tp, 40 * tp));
}

TEST(BatchNorm, TrainAndEvalInBothLayouts) {
  for (bool train : {true, false}) {
    for (bool channels_last : {false, true}) {
      check(4, 5, 6, 7, GRAFT_FLOAT32, channels_last, train);
      check(2, 130, 9, 1, GRAFT_FLOAT32, channels_last, train);
      check(3, 3, 50, 60, GRAFT_FLOAT32, channels_last, train);
      check(4, 5, 6, 7, GRAFT_FLOAT64, channels_last, train);
      check(4, 5, 6, 7, GRAFT_BFLOAT16, channels_last, train);
      check(64, 20, 1, 1, GRAFT_FLOAT32, channels_last, train);
    }
  }
}

TEST(BatchNorm, RunningStatisticsMayMoveElsewhere) {
  Reference r(4, 3, 10, GRAFT_FLOAT32);
  r.statistics();
  DeviceTensor input({4, 3, 10}, GRAFT_FLOAT32), output({4, 3, 10}, GRAFT_FLOAT32);
  DeviceTensor mean({3}, GRAFT_FLOAT32), invstd({3}, GRAFT_FLOAT32);
  DeviceTensor old_mean({3}, GRAFT_FLOAT32), old_var({3}, GRAFT_FLOAT32);
  DeviceTensor new_mean({3}, GRAFT_FLOAT32), new_var({3}, GRAFT_FLOAT32);
  input.set(r.x), old_mean.set(r.running_mean), old_var.set(r.running_var);
  batch_norm_train(stream(), output, mean, invstd, &old_mean.view(), &old_var.view(), input,
                   nullptr, nullptr, kMomentum, kEpsilon, {&new_mean.view(), &new_var.view()});
  EXPECT_TRUE(near(old_mean.get(), r.running_mean, 0, 0));
  EXPECT_TRUE(near(old_var.get(), r.running_var, 0, 0));
  auto moved = r.running_mean, moved_var = r.running_var;
  for (size_t k = 0; k < moved.size(); ++k) {
    moved[k] += kMomentum * (r.mean[k] - moved[k]);
    moved_var[k] += kMomentum * (r.var[k] * r.count() / (r.count() - 1) - moved_var[k]);
  }
  EXPECT_TRUE(near(new_mean.get(), moved, 1e-5, 1e-5));
  EXPECT_TRUE(near(new_var.get(), moved_var, 1e-5, 1e-5));
}

TEST(BatchNorm, WorksWithoutParameters) {
  Reference r(4, 3, 10, GRAFT_FLOAT32);
  r.weight = {1, 1, 1}, r.bias = {0, 0, 0};
  r.statistics();
  r.results(true);
  DeviceTensor input({4, 3, 10}, GRAFT_FLOAT32), output({4, 3, 10}, GRAFT_FLOAT32);
  DeviceTensor mean({3}, GRAFT_FLOAT32), invstd({3}, GRAFT_FLOAT32);
  DeviceTensor grad({4, 3, 10}, GRAFT_FLOAT32), grad_input({4, 3, 10}, GRAFT_FLOAT32);
  input.set(r.x), grad.set(r.g);
  batch_norm_train(stream(), output, mean, invstd, nullptr, nullptr, input, nullptr, nullptr, 0.1,
                   kEpsilon);
  EXPECT_TRUE(near(output.get(), r.y, 1e-5, 1e-5));
  batch_norm_backward(stream(), {&grad_input.view(), nullptr, nullptr}, grad, input, nullptr, mean,
                      invstd, true, kEpsilon);
  EXPECT_TRUE(near(grad_input.get(), r.gx, 1e-5, 1e-5));
}

TEST(BatchNorm, SumsAndFactorsOfChannelsAreStepsOfTheirOwn) {
  for (const bool channels_last : {false, true}) {
    Reference r(3, 5, 2500, GRAFT_FLOAT32);
    r.statistics();
    const std::vector<int64_t> sizes{3, 5, 50, 50};
    std::vector<int64_t> strides{12500, 2500, 50, 1};
    if (channels_last) strides = {12500, 1, 250, 5};
    DeviceTensor input(sizes, strides, GRAFT_FLOAT32), grad(sizes, strides, GRAFT_FLOAT32);
    DeviceTensor output(sizes, strides, GRAFT_FLOAT32), mean({5}, GRAFT_FLOAT32);
    DeviceTensor sum({5}, GRAFT_FLOAT32), along({5}, GRAFT_FLOAT32);
    input.set(r.x), grad.set(r.g), mean.set(r.mean);
    batch_norm_sums(stream(), sum, along, grad, input, mean);
    std::vector<double> sums(5), products(5), expected;
    for (size_t i = 0; i < r.x.size(); ++i) {
      const size_t k = r.channel(i);
      sums[k] += r.g[i], products[k] += r.g[i] * (r.x[i] - r.mean[k]);
    }
    EXPECT_TRUE(near(sum.get(), sums, 1e-4, 1e-2));
    EXPECT_TRUE(near(along.get(), products, 1e-4, 1e-2));
    for (size_t i = 0; i < r.x.size(); ++i) {
      const size_t k = r.channel(i);
      expected.push_back(r.weight[k] * r.g[i] + r.running_var[k] * r.x[i] + r.bias[k]);
    }
    DeviceTensor scale({5}, GRAFT_FLOAT32), slope({5}, GRAFT_FLOAT32), shift({5}, GRAFT_FLOAT32);
    scale.set(r.weight), slope.set(r.running_var), shift.set(r.bias);
    batch_norm_affine(stream(), output, grad, scale, &input.view(), &slope.view(), shift, nullptr);
    EXPECT_TRUE(near(output.get(), expected, 1e-5, 1e-5));
  }
}

TEST(BatchNorm, RefusesOtherLayouts) {
  DeviceTensor input({2, 3, 4}, {1, 2, 6}, GRAFT_FLOAT32), mean({3}, GRAFT_FLOAT32);
  EXPECT_THROW(batch_norm_train(stream(), input, mean, mean, nullptr, nullptr, input, nullptr,
                                nullptr, 0.1, kEpsilon),
               Error);
}

}  // namespace

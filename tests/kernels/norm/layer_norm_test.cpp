// tests/kernels/norm/layer_norm_test.cpp: layer normalisation and its gradients against double.
#include <algorithm>
#include <cmath>

#include "kernels/norm/normalization.h"
#include "runtime/driver/dtype.h"
#include "tests/kernels/tensor/device_tensor.h"

// labels of the file: races
namespace {

using namespace graft;
using namespace graft::test;

void check(int64_t rows, int64_t n, graft_dtype dtype, bool affine) {
  SCOPED_TRACE(std::string(name_of(dtype)) + " " + std::to_string(rows) + " " + std::to_string(n));
  const double epsilon = 1e-5;
  const auto x = numbers(rows * n, 1, 1, 4, dtype), g = numbers(rows * n, 2, -1, 1, dtype);
  const auto w = affine ? numbers(n, 3, 0.5, 2, dtype) : std::vector<double>(n, 1.0);
  const auto b = affine ? numbers(n, 4, -1, 1, dtype) : std::vector<double>(n, 0.0);
  std::vector<double> y(x.size()), gx(x.size()), gw(w.size()), gb(w.size()), means, rstds;
  const double count = static_cast<double>(n);
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    const size_t at = row * w.size();
    double mean = 0, var = 0, s1 = 0, s2 = 0;
    for (size_t i = 0; i < w.size(); ++i) mean += x[at + i] / count;
    for (size_t i = 0; i < w.size(); ++i) var += (x[at + i] - mean) * (x[at + i] - mean) / count;
    const double rstd = 1 / std::sqrt(var + epsilon);
    for (size_t i = 0; i < w.size(); ++i) {
      const double hat = (x[at + i] - mean) * rstd;
      y[at + i] = hat * w[i] + b[i];
      gw[i] += g[at + i] * hat;
      gb[i] += g[at + i];
      s1 += g[at + i] * w[i];
      s2 += g[at + i] * w[i] * hat;
    }
    for (size_t i = 0; i < w.size(); ++i) {
      const double hat = (x[at + i] - mean) * rstd;
      gx[at + i] = rstd * (g[at + i] * w[i] - s1 / count - hat * s2 / count);
    }
    means.push_back(mean), rstds.push_back(rstd);
  }
  const graft_dtype wide = dtype == GRAFT_FLOAT64 ? GRAFT_FLOAT64 : GRAFT_FLOAT32;
  DeviceTensor input({rows, n}, dtype), output({rows, n}, dtype), grad({rows, n}, dtype);
  DeviceTensor grad_input({rows, n}, dtype), weight({n}, dtype), bias({n}, dtype);
  DeviceTensor grad_weight({n}, dtype), grad_bias({n}, dtype), mean({rows}, wide),
      rstd({rows}, wide);
  input.set(x), grad.set(g), weight.set(w), bias.set(b);
  layer_norm(stream(), output, &mean.view(), &rstd.view(), input, affine ? &weight.view() : nullptr,
             affine ? &bias.view() : nullptr, rows, n, epsilon);
  const double t = 4 * tolerance(dtype), tw = 20 * tolerance(wide);
  EXPECT_TRUE(near(output.get(), y, t, 4 * t));
  EXPECT_TRUE(near(mean.get(), means, tw, tw));
  EXPECT_TRUE(near(rstd.get(), rstds, tw, tw));
  layer_norm_backward(stream(), {&grad_input.view(), &grad_weight.view(), &grad_bias.view()}, grad,
                      input, mean, rstd, affine ? &weight.view() : nullptr, rows, n);
  EXPECT_TRUE(near(grad_input.get(), gx, t, 8 * t));
  EXPECT_TRUE(near(grad_weight.get(), gw, t, 40 * t));
  EXPECT_TRUE(near(grad_bias.get(), gb, t, 40 * t));
}

TEST(LayerNorm, ForwardAndBackward) {
  for (bool affine : {true, false}) {
    for (auto dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64, GRAFT_BFLOAT16}) {
      check(1, 1, dtype, affine);
      check(7, 33, dtype, affine);
      check(300, 128, dtype, affine);
      check(3, 1025, dtype, affine);
    }
  }
}

// Rows are exact in float32; what a row of equal elements gives is exact, too.
void check_row(int64_t n, double offset, double spread) {
  SCOPED_TRACE(std::to_string(n) + " elements about " + std::to_string(offset));
  auto x = numbers(n, 7, offset - spread, offset + spread, GRAFT_FLOAT32);
  double mean = 0, squares = 0;
  for (const double value : x) mean += value;  // exact
  mean /= static_cast<double>(n);
  for (const double value : x) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(n) + 1e-5);
  DeviceTensor input({1, n}, GRAFT_FLOAT32), output({1, n}, GRAFT_FLOAT32);
  DeviceTensor middle({1}, GRAFT_FLOAT32), rstd({1}, GRAFT_FLOAT32);
  input.set(x);
  layer_norm(stream(), output, &middle.view(), &rstd.view(), input, nullptr, nullptr, 1, n, 1e-5);
  const double roundoff = 6e-8;
  EXPECT_NEAR(middle.get()[0], mean, 2 * roundoff * std::abs(mean) + 1e-6 * spread);
  EXPECT_NEAR(rstd.get()[0] * deviation, 1, 4e-6);
  // The mean that is saved is rounded.
  const double most = 2 * roundoff * std::abs(mean) / deviation + 1e-5;
  const std::vector<double> y = output.get();
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    worst = std::max(worst, std::abs(y[i] - (x[i] - mean) / deviation));
  }
  EXPECT_LT(worst, most);
}

TEST(LayerNorm, OfLongRowsAndLargeMeans) {
  for (const int64_t n : {1, 63, 4096, 4097, 100352, 300007}) {
    for (const double offset : {0.0, 100.7, 1e7}) {
      check_row(n, offset, 0);
      check_row(n, offset, 2);
    }
  }
}

}  // namespace

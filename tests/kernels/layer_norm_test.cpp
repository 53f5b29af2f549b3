// tests/kernels/layer_norm_test.cpp: layer normalisation and its gradients against double.
#include <cmath>

#include "kernels/normalization.h"
#include "runtime/dtype.h"
#include "tests/kernels/device_tensor.h"

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

}  // namespace

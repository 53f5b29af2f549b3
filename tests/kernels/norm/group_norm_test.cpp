// tests/kernels/norm/group_norm_test.cpp: group normalisation and its gradients against plain
// formulas.
#include "kernels/norm/group_norm.h"

#include <cmath>

#include "runtime/driver/dtype.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

constexpr GroupShape kShape{3, 6, 11, 2};
constexpr int64_t kGroup = kShape.channels / kShape.groups * kShape.length;  // elements

struct Reference {
  std::vector<double> x = numbers(kShape.n * kShape.channels * kShape.length, 1);
  std::vector<double> g = numbers(kShape.n * kShape.channels * kShape.length, 2);
  std::vector<double> weight = numbers(kShape.channels, 3), bias = numbers(kShape.channels, 4);
  std::vector<double> y, dx, dweight, dbias, mean, rstd;

  explicit Reference(graft_dtype dtype, bool affine) : y(x.size()), dx(x.size()) {
    for (auto* values : {&x, &g, &weight, &bias}) {
      for (double& value : *values) value = rounded(value, dtype);
    }
    if (!affine) weight.assign(weight.size(), 1), bias.assign(bias.size(), 0);
    dweight.resize(weight.size()), dbias.resize(weight.size());
    for (size_t begin = 0; begin < x.size(); begin += kGroup) group(begin);
  }
  size_t channel(size_t i) const { return i / kShape.length % kShape.channels; }
  void group(size_t begin) {
    double sum = 0, squares = 0, by_g = 0, by_gx = 0;
    const size_t end = begin + kGroup;
    for (size_t i = begin; i < end; ++i) sum += x[i];
    const double center = sum / kGroup;
    for (size_t i = begin; i < end; ++i) squares += (x[i] - center) * (x[i] - center);
    const double spread = 1 / std::sqrt(squares / kGroup + 1e-5);
    mean.push_back(center), rstd.push_back(spread);
    for (size_t i = begin; i < end; ++i) {
      const double normal = (x[i] - center) * spread, gw = g[i] * weight[channel(i)];
      y[i] = normal * weight[channel(i)] + bias[channel(i)];
      dweight[channel(i)] += g[i] * normal;
      dbias[channel(i)] += g[i];
      by_g += gw, by_gx += gw * normal;
    }
    for (size_t i = begin; i < end; ++i) {
      const double normal = (x[i] - center) * spread;
      dx[i] = spread * (g[i] * weight[channel(i)] - by_g / kGroup - normal * by_gx / kGroup);
    }
  }
};

void check(graft_dtype dtype, bool affine) {
  const Reference r(dtype, affine);
  const std::vector<int64_t> sizes{kShape.n, kShape.channels, kShape.length};
  const graft_dtype statistics = dtype == GRAFT_FLOAT64 ? dtype : GRAFT_FLOAT32;
  DeviceTensor input(sizes, dtype), output(sizes, dtype), gradient(sizes, dtype), dx(sizes, dtype);
  DeviceTensor mean({kShape.n, kShape.groups}, statistics);
  DeviceTensor rstd({kShape.n, kShape.groups}, statistics);
  DeviceTensor weight({kShape.channels}, dtype), bias({kShape.channels}, dtype);
  DeviceTensor dweight({kShape.channels}, dtype), dbias({kShape.channels}, dtype);
  input.set(r.x), gradient.set(r.g), weight.set(r.weight), bias.set(r.bias);
  const TensorView* w = affine ? &weight.view() : nullptr;
  group_norm(stream(), output, mean, rstd, input, w, affine ? &bias.view() : nullptr, kShape, 1e-5);
  const double t = 8 * tolerance(dtype);
  EXPECT_TRUE(near(output.get(), r.y, t, t));
  EXPECT_TRUE(near(mean.get(), r.mean, 1e-5, 1e-5));
  EXPECT_TRUE(near(rstd.get(), r.rstd, 1e-5, 1e-5));
  group_norm_backward(stream(), {&dx.view(), &dweight.view(), &dbias.view()}, gradient, input, mean,
                      rstd, w, kShape);
  EXPECT_TRUE(near(dx.get(), r.dx, t, t));
  EXPECT_TRUE(near(dweight.get(), r.dweight, t, 4 * t));
  EXPECT_TRUE(near(dbias.get(), r.dbias, t, 4 * t));
  DeviceTensor again({kShape.channels}, dtype);
  group_norm_backward(stream(), {nullptr, nullptr, &again.view()}, gradient, input, mean, rstd, w,
                      kShape);
  EXPECT_TRUE(near(again.get(), dbias.get(), 0, 0));
}

TEST(GroupNorm, ValuesAndGradients) {
  for (auto dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64, GRAFT_BFLOAT16}) {
    for (bool affine : {false, true}) check(dtype, affine);
  }
}

// The mean 257.5 lies between two numbers of bfloat16: results must not use the rounded one.
TEST(GroupNorm, StatisticsAreRoundedOnlyWhereTheyAreSaved) {
  const GroupShape shape{1, 1, 4, 1};
  DeviceTensor input({1, 1, 4}, GRAFT_BFLOAT16), output({1, 1, 4}, GRAFT_BFLOAT16);
  DeviceTensor mean({1, 1}, GRAFT_BFLOAT16), rstd({1, 1}, GRAFT_BFLOAT16);
  input.set({256, 256, 258, 260});
  group_norm(stream(), output, mean, rstd, input, nullptr, nullptr, shape, 0);
  const double spread = 1 / std::sqrt(2.75);
  EXPECT_TRUE(
      near(output.get(), {-1.5 * spread, -1.5 * spread, 0.5 * spread, 2.5 * spread}, 4e-3, 0));
  EXPECT_TRUE(near(mean.get(), {258}, 0, 0));
  EXPECT_TRUE(near(rstd.get(), {spread}, 4e-3, 0));
}

}  // namespace

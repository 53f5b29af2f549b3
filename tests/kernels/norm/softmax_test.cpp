// tests/kernels/norm/softmax_test.cpp: softmax and its gradient against double on the host.
#include "kernels/norm/softmax.h"

#include <cmath>
#include <limits>

#include "runtime/driver/dtype.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

// Calls visit(offset of the line's first element) for each line along the middle of the shape.
template <class Visit>
void each_line(int64_t outer, int64_t n, int64_t inner, Visit visit) {
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) visit(o * n * inner + i);
  }
}

std::vector<double> expect(const std::vector<double>& x, int64_t outer, int64_t n, int64_t inner,
                           bool log) {
  std::vector<double> y(x.size());
  each_line(outer, n, inner, [&](int64_t at) {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    auto index = [&](int64_t j) { return static_cast<size_t>(at + j * inner); };
    for (int64_t j = 0; j < n; ++j) largest = std::max(largest, x[index(j)]);
    for (int64_t j = 0; j < n; ++j) sum += std::exp(x[index(j)] - largest);
    for (int64_t j = 0; j < n; ++j) {
      const double shifted = x[index(j)] - largest;
      y[index(j)] = log ? shifted - std::log(sum) : std::exp(shifted) / sum;
    }
  });
  return y;
}

std::vector<double> expect_gradient(const std::vector<double>& g, const std::vector<double>& y,
                                    int64_t outer, int64_t n, int64_t inner, bool log) {
  std::vector<double> x(y.size());
  each_line(outer, n, inner, [&](int64_t at) {
    double sum = 0;
    auto index = [&](int64_t j) { return static_cast<size_t>(at + j * inner); };
    for (int64_t j = 0; j < n; ++j) sum += log ? g[index(j)] : g[index(j)] * y[index(j)];
    for (int64_t j = 0; j < n; ++j) {
      const size_t k = index(j);
      x[k] = log ? g[k] - std::exp(y[k]) * sum : (g[k] - sum) * y[k];
    }
  });
  return x;
}

// labels: races
TEST(Softmax, ForwardAndBackward) {
  const int64_t shapes[][3] = {{5, 33, 1}, {1, 1000, 1}, {3, 17, 70}, {2, 1, 4}, {64, 10, 1}};
  for (auto& s : shapes) {
    for (auto dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64, GRAFT_BFLOAT16, GRAFT_FLOAT16}) {
      for (bool log : {false, true}) {
        SCOPED_TRACE(std::string(name_of(dtype)) + (log ? " log " : " ") + std::to_string(s[1]));
        const int64_t count = s[0] * s[1] * s[2];
        const auto x = numbers(count, 1, -9, 9, dtype), g = numbers(count, 2, -2, 2, dtype);
        DeviceTensor input({s[0], s[1], s[2]}, dtype), output({s[0], s[1], s[2]}, dtype);
        input.set(x);
        softmax(stream(), output, input, 1, log);
        const double t = 3 * tolerance(dtype);
        const auto y = expect(x, s[0], s[1], s[2], log);
        EXPECT_TRUE(near(output.get(), y, t, t * 0.1));

        std::vector<double> stored = y;
        for (double& value : stored) value = rounded(value, dtype);
        DeviceTensor grad({s[0], s[1], s[2]}, dtype), result({s[0], s[1], s[2]}, dtype);
        grad.set(g);
        output.set(stored);
        softmax_backward(stream(), result, grad, output, 1, log);
        EXPECT_TRUE(
            near(result.get(), expect_gradient(g, stored, s[0], s[1], s[2], log), t, 8 * t));
      }
    }
  }
}

TEST(Softmax, MaskedLinesBehaveAsTorch) {
  const double inf = std::numeric_limits<double>::infinity();
  DeviceTensor input({3, 4}, GRAFT_FLOAT32), output({3, 4}, GRAFT_FLOAT32);
  input.set({-inf, -inf, -inf, -inf, 0, -inf, 0, -inf, 0, 1, NAN, 1});
  softmax(stream(), output, input, 1, false);
  const auto y = output.get();
  for (int i : {0, 1, 2, 3, 8, 9, 10, 11}) EXPECT_TRUE(std::isnan(y[static_cast<size_t>(i)])) << i;
  EXPECT_TRUE(near({y[4], y[5], y[6], y[7]}, {0.5, 0, 0.5, 0}, 1e-6, 0));
}

// Lines long enough for several work-items each.
// labels: sub_groups_8
TEST(Softmax, MaskedLongLinesBehaveAsTorch) {
  const double inf = INFINITY;
  const int64_t n = 150;
  DeviceTensor input({3, n}, GRAFT_FLOAT32), output({3, n}, GRAFT_FLOAT32);
  std::vector<double> x(static_cast<size_t>(3 * n), -inf);
  x[static_cast<size_t>(n + 70)] = x[static_cast<size_t>(n + 149)] = 3;
  x[static_cast<size_t>(2 * n + 5)] = NAN;
  input.set(x);
  softmax(stream(), output, input, 1, false);
  const auto y = output.get();
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t line = i / static_cast<size_t>(n);
    if (line != 1) {
      EXPECT_TRUE(std::isnan(y[i])) << i;
    } else {
      EXPECT_EQ(y[i],
                i == static_cast<size_t>(n + 70) || i == static_cast<size_t>(n + 149) ? 0.5 : 0)
          << i;
    }
  }
}

TEST(Softmax, StridedViewsAndScalars) {
  const auto x = numbers(6 * 40, 3, -3, 3, GRAFT_FLOAT32);
  DeviceTensor input({6, 40}, {1, 7}, GRAFT_FLOAT32), output({6, 40}, {80, 2}, GRAFT_FLOAT32);
  input.set(x);
  softmax(stream(), output, input, 1, false);
  EXPECT_TRUE(near(output.get(), expect(x, 6, 40, 1, false), 1e-5, 1e-7));
  DeviceTensor one({}, GRAFT_FLOAT32), result({}, GRAFT_FLOAT32);
  one.set({3});
  softmax(stream(), result, one, 0, false);
  EXPECT_EQ(result.get()[0], 1);
}

}  // namespace

// tests/kernels/weight_only/quantized_weight.h: random weights of small integers, their product in
// float64, and how far a result may be from it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/driver/dtype.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace graft::test {

// A product to check. group 0: one a row.
struct WeightCase {
  int64_t m, n, k, group;
  bool asymmetric;
  graft_dtype dtype, scale_dtype;
  bool decodes;           // the weight's numbers are not rounded to dtype
  bool integers = false;  // a's are, to steps of 1 / 32767 of the largest of their group

  int64_t size() const { return group == 0 ? k : group; }
  int64_t groups() const { return k / size(); }
  std::string text() const {
    return std::string(name_of(dtype)) + " m " + std::to_string(m) + " n " + std::to_string(n) +
           " k " + std::to_string(k) + " group " + std::to_string(group) +
           (asymmetric ? " with zeros" : "") + ", scales of " + name_of(scale_dtype);
  }
};

// The numbers of a case: a [m, k], integers [n, k], scales and zeros [k / group, n].
struct WeightNumbers {
  std::vector<double> a, integers, scales, zeros;

  // low, high: of the integers. In zeros: what is in the unit of the scales is `zeros_are_numbers`.
  WeightNumbers(const WeightCase& of, int low, int high, bool zeros_are_numbers) {
    const auto count = static_cast<size_t>(of.groups() * of.n);
    a = numbers(of.m * of.k, 1, -2, 2, of.dtype);
    integers = numbers(of.n * of.k, 2, low, high + 1);
    for (double& integer : integers) integer = std::floor(integer);
    scales = numbers(of.groups() * of.n, 3, 0.001, 0.02, of.scale_dtype);
    if (!of.asymmetric) {
      zeros.assign(count, 0);
    } else if (zeros_are_numbers) {
      zeros = numbers(of.groups() * of.n, 4, -0.05, 0.05, of.scale_dtype);
    } else {
      zeros = numbers(of.groups() * of.n, 4, -16, 17);
      for (double& zero : zeros) zero = std::floor(zero);
    }
  }
};

// The product in float64, and of each element the sum of the magnitudes that met; in largest the
// sum of the weight's, each with the largest of a's group.
struct WeightProduct {
  std::vector<double> values, magnitudes, largest;

  // number(integer, scale, zero): what the weight stands for.
  template <class Number, class Magnitude>
  WeightProduct(const WeightCase& of, const WeightNumbers& from, const Number& number,
                const Magnitude& magnitude) {
    const std::vector<double> of_groups = largest_of_groups(of, from);
    for (int64_t i = 0; i < of.m; ++i) {
      for (int64_t j = 0; j < of.n; ++j) {
        double sum = 0, met = 0, most = 0;
        for (int64_t p = 0; p < of.k; ++p) {
          const double x = from.a[static_cast<size_t>(i * of.k + p)];
          const double integer = from.integers[static_cast<size_t>(j * of.k + p)];
          const auto at = static_cast<size_t>(p / of.size() * of.n + j);
          sum += x * number(integer, from.scales[at], from.zeros[at]);
          met += std::abs(x) * magnitude(from.scales[at], from.zeros[at]);
          most += of_groups[static_cast<size_t>(i * of.groups() + p / of.size())] *
                  std::abs(number(integer, from.scales[at], from.zeros[at]));
        }
        values.push_back(sum);
        magnitudes.push_back(met);
        largest.push_back(most);
      }
    }
  }

 private:
  // Of each row's groups.
  static std::vector<double> largest_of_groups(const WeightCase& of, const WeightNumbers& from) {
    std::vector<double> most(static_cast<size_t>(of.m * of.groups()));
    for (size_t i = 0; of.integers && i < from.a.size(); ++i) {
      double& largest = most[i / static_cast<size_t>(of.size())];
      largest = std::max(largest, std::abs(from.a[i]));
    }
    return most;
  }
};

// Half of the distance of 1 to the next number.
inline double unit_of(graft_dtype dtype) {
  switch (dtype) {
    case GRAFT_FLOAT64:
      return std::ldexp(1.0, -53);
    case GRAFT_FLOAT16:
      return std::ldexp(1.0, -11);
    case GRAFT_BFLOAT16:
      return std::ldexp(1.0, -8);
    default:
      return std::ldexp(1.0, -24);
  }
}

// The bound of product.h: sums of k terms in float32 (float64 of float64), each term rounded a few
// times; the result, and without decoding each number of the weight, rounded to dtype.
inline ::testing::AssertionResult within(const WeightCase& of, const std::vector<double>& actual,
                                         const WeightProduct& expected) {
  const double u = of.dtype == GRAFT_FLOAT64 ? unit_of(GRAFT_FLOAT64) : unit_of(GRAFT_FLOAT32);
  const double terms = static_cast<double>(of.k) + 32;
  const double weight = of.decodes ? 0 : 2 * unit_of(of.dtype);
  const double least = of.dtype == GRAFT_FLOAT16 ? std::ldexp(1.0, -24) : 0;  // below it: its steps
  for (size_t i = 0; i < actual.size(); ++i) {
    const double bound = (terms * u + weight) * expected.magnitudes[i] +
                         expected.largest[i] / 65534 +
                         2 * unit_of(of.dtype) * std::abs(expected.values[i]) + least;
    if (!(std::abs(actual[i] - expected.values[i]) <= bound)) {
      return ::testing::AssertionFailure()
             << "element " << i << ": got " << actual[i] << ", expected " << expected.values[i]
             << " within " << bound;
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace graft::test

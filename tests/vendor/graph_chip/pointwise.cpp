// tests/vendor/graph_chip/pointwise.cpp: what is computed element by element.
#include <algorithm>
#include <cmath>

#include "call.h"

namespace chip {

namespace {

constexpr double kRootHalf = 0.70710678118654752440, kRootPi = 1.12837916709551257390;
constexpr double kBeta = kRootHalf * kRootPi, kCubic = 0.044715;

// The element of an argument: of a tensor, or the number for all.
double element(const Call& call, size_t position, const Sizes& index) {
  const Tensor* given = call.tensor(position);
  return given != nullptr ? given->get(given->at(index)) : call.number(position, "", 0);
}

Kernel unary(double (*f)(double)) {
  return [f](const Call& call) {
    const Tensor& out = call.result();
    each(out.sizes, [&](const Sizes& i) { out.set(out.at(i), f(element(call, 0, i))); });
  };
}

Kernel binary(double (*f)(double, double)) {
  return [f](const Call& call) {
    const Tensor& out = call.result();
    const double alpha = call.number(2, "alpha", 1);
    each(out.sizes, [&](const Sizes& i) {
      out.set(out.at(i), f(element(call, 0, i), alpha * element(call, 1, i)));
    });
  };
}

Kernel ternary(double (*f)(double, double, double)) {
  return [f](const Call& call) {
    const Tensor& out = call.result();
    each(out.sizes, [&](const Sizes& i) {
      out.set(out.at(i), f(element(call, 0, i), element(call, 1, i), element(call, 2, i)));
    });
  };
}

double gelu(double x) { return 0.5 * x * (1 + std::erf(x * kRootHalf)); }
double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(kBeta * (x + kCubic * x * x * x))); }
double gelu_slope(double x) {
  return 0.5 * (1 + std::erf(x * kRootHalf)) + x * std::exp(-0.5 * x * x) * kBeta / 2;
}
double gelu_tanh_slope(double x) {
  const double t = std::tanh(kBeta * (x + kCubic * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kBeta * (1 + 3 * kCubic * x * x);
}

bool by_tanh(const Call& call, size_t position) {
  const Literal* given = call.find(position, "approximate");
  return given != nullptr && given->text == "tanh";
}

void run_gelu(const Call& call) { unary(by_tanh(call, 1) ? gelu_tanh : gelu)(call); }

double times_slope(double g, double x) { return g * gelu_slope(x); }
double times_tanh_slope(double g, double x) { return g * gelu_tanh_slope(x); }
void run_gelu_backward(const Call& call) {
  const bool tanh = by_tanh(call, 2);
  const Tensor& out = call.result();
  each(out.sizes, [&](const Sizes& i) {
    const double g = element(call, 0, i), x = element(call, 1, i);
    out.set(out.at(i), tanh ? times_tanh_slope(g, x) : times_slope(g, x));
  });
}

void clamp(const Call& call) {
  const Tensor& out = call.result();
  const double low = call.number(1, "min", -INFINITY), high = call.number(2, "max", INFINITY);
  each(out.sizes, [&](const Sizes& i) {
    out.set(out.at(i), std::min(std::max(element(call, 0, i), low), high));
  });
}

#define CHIP_UNARY(F) unary([](double x) -> double { return F; })
#define CHIP_BINARY(F) binary([](double x, double y) -> double { return F; })

}  // namespace

void add_pointwise(Kernels* kernels) {
  Kernels& all = *kernels;
  const std::pair<const char*, Kernel> both[] = {
      {"add", CHIP_BINARY(x + y)}, {"sub", CHIP_BINARY(x - y)}, {"mul", CHIP_BINARY(x * y)},
      {"div", CHIP_BINARY(x / y)}, {"eq", CHIP_BINARY(x == y)}, {"ne", CHIP_BINARY(x != y)},
      {"lt", CHIP_BINARY(x < y)},  {"le", CHIP_BINARY(x <= y)}, {"gt", CHIP_BINARY(x > y)},
      {"ge", CHIP_BINARY(x >= y)}};
  for (const auto& [name, kernel] : both) {
    all["aten." + std::string(name) + ".Tensor"] = kernel;
    all["aten." + std::string(name) + ".Scalar"] = kernel;
  }
  all["aten.pow.Tensor_Scalar"] = binary(std::pow);
  all["aten.maximum.default"] = CHIP_BINARY(x > y || x != x ? x : y);
  all["aten.minimum.default"] = CHIP_BINARY(x < y || x != x ? x : y);
  all["aten.bitwise_and.Tensor"] =
      CHIP_BINARY(static_cast<double>(static_cast<int64_t>(x) & static_cast<int64_t>(y)));
  all["aten.logical_and.default"] = CHIP_BINARY(x != 0 && y != 0);
  all["aten.logical_not.default"] = CHIP_UNARY(x == 0);
  all["aten.relu.default"] = CHIP_UNARY(x < 0 ? 0 : x);
  all["aten.neg.default"] = CHIP_UNARY(-x);
  all["aten.abs.default"] = unary(std::fabs);
  all["aten.exp.default"] = unary(std::exp);
  all["aten.log.default"] = unary(std::log);
  all["aten.sqrt.default"] = unary(std::sqrt);
  all["aten.rsqrt.default"] = CHIP_UNARY(1 / std::sqrt(x));
  all["aten.tanh.default"] = unary(std::tanh);
  all["aten.sigmoid.default"] = CHIP_UNARY(1 / (1 + std::exp(-x)));
  all["aten.silu.default"] = CHIP_UNARY(x / (1 + std::exp(-x)));
  all["aten.tanh_backward.default"] = CHIP_BINARY(x * (1 - y * y));
  all["aten.sigmoid_backward.default"] = CHIP_BINARY(x * y * (1 - y));
  all["aten.threshold_backward.default"] =
      ternary([](double g, double x, double t) -> double { return x <= t ? 0 : g; });
  all["aten.where.self"] =
      ternary([](double c, double x, double y) -> double { return c != 0 ? x : y; });
  all["aten.masked_fill.Scalar"] =
      ternary([](double x, double c, double y) -> double { return c != 0 ? y : x; });
  all["aten.clamp.default"] = clamp;
  all["aten.gelu.default"] = run_gelu;
  all["aten.gelu_backward.default"] = run_gelu_backward;
}

}  // namespace chip

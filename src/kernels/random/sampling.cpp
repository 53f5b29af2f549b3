// src/kernels/random/sampling.cpp: samples of distributions with a parameter for each element.
#include "kernels/random/sampling.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <string>

#include "kernels/launch/arguments.h"
#include "kernels/move/staging.h"
#include "kernels/operation/offer.h"
#include "kernels/random/philox.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

enum class Sampler { kPoisson, kBinomial, kGamma };

// No sampler here rejects as many as half of its attempts.
constexpr int64_t kAttempts = 128;
// Expectations below this one are inverted, which takes about as many steps.
constexpr double kInverted = 10;
constexpr int64_t kSteps = 1024;

struct Uniforms {
  Value first, second;  // in (0, 1)
};

// The uniforms of one element.
class Source {
 public:
  Source(const PhiloxWriter& philox, Value element, Type type)
      : philox_(philox), element_(element), type_(type) {}
  // Of 53 bits, or of the upper 23 of these.
  Uniforms draw(Value attempt) const {
    const PhiloxWords words = philox_.words({element_}, cast(Type::kU32, attempt))[0];
    if (type_ == Type::kF32) {
      return {unit_float(words[1], 23) + 0x1p-24, unit_float(words[3], 23) + 0x1p-24};
    }
    const auto wide = wide_words(words);
    return {unit_double(wide[0]) + 0x1p-54, unit_double(wide[1]) + 0x1p-54};
  }
  Type type() const { return type_; }

 private:
  const PhiloxWriter& philox_;
  const Value element_;
  const Type type_;
};

// Runs attempt(number, accept) until one calls accept(value) with a true condition.
template <class Attempt>
Value first_accepted(Builder& b, Type type, Attempt attempt) {
  const Variable result(b.constant(type, 0.0));
  b.loop(b.i64(0), b.i64(kAttempts), [&](Value number) {
    const auto [accepted, value] = attempt(number);
    result = select(accepted, value, result.get());
    b.break_if(accepted);
  });
  return result;
}

// The first k at which the sum of the probabilities exceeds a uniform: start is that of 0,
// next(k) what leads from that of k to that of k + 1.
template <class Next>
Value inverted(Builder& b, Value uniform, Value start, Value mean, Next next) {
  const Variable probability(start), sum(start), result(b.constant(Type::kF64, 0.0));
  b.loop(b.i64(0), b.i64(kSteps), [&](Value step) {
    const Value k = cast(Type::kF64, step);
    b.break_if((uniform < sum.get()) | ((k > mean) & (probability.get() < 1e-18)));
    result = k + 1.0;
    probability = probability * next(k);
    sum = sum + probability;
  });
  return result;
}

// What both of Hoermann's rejections share: a hat of two parameters.
struct Hat {
  Value a, b, fast;

  struct Point {
    Value k, height, at_once, near_end;
  };
  Point point(const Uniforms& uniforms, Value centre) const {
    const Value u = uniforms.first - 0.5, v = uniforms.second;
    const Value rest = 0.5 - abs(u);
    const Value k = floor((2.0 * a / rest + b) * u + centre);
    return {k, v / (a / (rest * rest) + b), (rest >= 0.07) & (v <= fast),
            (rest < 0.013) & (v > rest)};
  }
};

struct Attempt {
  Value accepted, value;
};

Value poisson_sample(Builder& b, const Source& source, Value rate) {
  const Variable result(b.constant(Type::kF64, 0.0));
  b.if_(
      rate < kInverted,
      [&] {
        const Value uniform = source.draw(b.i64(0)).first;
        result = inverted(b, uniform, exp(-rate), rate, [&](Value k) { return rate / (k + 1.0); });
      },
      [&] {
        const Value width = 0.931 + 2.53 * sqrt(rate);
        const Hat hat{-0.059 + 0.02483 * width, width, 0.9277 - 3.6224 / (width - 2.0)};
        const Value scale = 1.1239 + 1.1328 / (width - 3.4), log_rate = log(rate);
        result = first_accepted(b, source.type(), [&](Value number) -> Attempt {
          const Hat::Point at = hat.point(source.draw(number), rate + 0.43);
          const Value density = at.k * log_rate - rate - lgamma(select(at.k < 0, 0, at.k) + 1.0);
          const Value under = (at.k >= 0) & !at.near_end & (log(at.height * scale) <= density);
          return {at.at_once | under, at.k};
        });
      });
  return result;
}

Value binomial_sample(Builder& b, const Source& source, Value count, Value chance) {
  const Value n = select(count > 0, count, 0);
  const Value bounded = select(chance > 0, select(chance < 1, chance, 1), like(chance, 0));
  const Value q = ir::minimum(bounded, 1.0 - bounded), odds = q / (1.0 - q), mean = n * q;
  const Variable result(b.constant(Type::kF64, 0.0));
  b.if_(
      mean < kInverted,
      [&] {
        const Value uniform = source.draw(b.i64(0)).first;
        result = inverted(b, uniform, exp(n * log1p(-q)), mean,
                          [&](Value k) { return (n - k) / (k + 1.0) * odds; });
      },
      [&] {
        const Value deviation = sqrt(mean * (1.0 - q)), width = 1.15 + 2.53 * deviation;
        const Hat hat{-0.0873 + 0.0248 * width + 0.01 * q, width, 0.92 - 4.2 / width};
        const Value scale = (2.83 + 5.1 / width) * deviation, mode = floor((n + 1.0) * q);
        const Value at_mode = lgamma(mode + 1.0) + lgamma(n - mode + 1.0), slope = log(odds);
        result = first_accepted(b, source.type(), [&](Value number) -> Attempt {
          const Hat::Point at = hat.point(source.draw(number), mean + 0.5);
          const Value inside = (at.k >= 0) & (at.k <= n), k = select(inside, at.k, mode);
          const Value density =
              at_mode - lgamma(k + 1.0) - lgamma(n - k + 1.0) + (k - mode) * slope;
          const Value under = inside & (log(at.height * scale) <= density);
          return {(at.at_once & inside) | under, k};
        });
      });
  const Value successes = select(bounded > 0.5, n - result, result.get());
  return select(is_nan(count) | is_nan(chance), like(count, std::nan("")), successes);
}

Value gamma_sample(Builder& b, const Source& source, Value shape) {
  const Value small = shape < 1;
  const Value d = select(small, shape + 1.0, shape) - 1.0 / 3, c = 1.0 / sqrt(9.0 * d);
  const Value sample = first_accepted(b, source.type(), [&](Value number) -> Attempt {
    const Uniforms normal = source.draw(number * 2 + 1), test = source.draw(number * 2 + 2);
    const Value radius = sqrt(-2.0 * log(normal.first));
    const Value x = radius * cos(2 * std::numbers::pi * normal.second);
    const Value root = 1.0 + c * x, v = root * root * root;
    const Value bound = 0.5 * x * x + d - d * v + d * log(select(root > 0, v, 1));
    return {(root > 0) & (log(test.first) < bound), d * v};
  });
  return select(small, sample * pow(source.draw(b.i64(0)).first, 1.0 / shape), sample);
}

// Half types have the exponents of float32 or are clamped by their rounding.
double smallest(graft_dtype dtype) {
  if (dtype == GRAFT_FLOAT64) return std::numeric_limits<double>::min();
  return dtype == GRAFT_FLOAT16 ? 0x1p-14 : std::numeric_limits<float>::min();
}

struct SampleKernel {
  Sampler sampler;
  graft_dtype dtype;
  Type type = Type::kF64;  // what is computed in

  std::string key() const {
    static const char* const kNames[] = {"poisson", "binomial", "gamma"};
    return std::string("sample_") + kNames[static_cast<int>(sampler)] + "_" + name_of(dtype) +
           (type == Type::kF32 ? "_narrow" : "");
  }
  ir::Kernel build() const {
    Builder b(key());
    const Address output = b.write(dtype), first = b.read(dtype), second = b.read(dtype);
    const PhiloxWriter philox(b);
    const Value begin = b.item() * kPhiloxBlocks;
    b.loop(begin, ir::minimum(begin + kPhiloxBlocks, philox.count()), [&](Value i) {
      const Source source(philox, i, type);
      const Value parameter = cast(type, first.load(i));
      output.store(i, cast(ir::compute_type(dtype), sample(b, source, parameter, second, i)));
    });
    return b.finish();
  }
  Value sample(Builder& b, const Source& source, Value parameter, const Address& second,
               Value i) const {
    if (sampler == Sampler::kPoisson) return poisson_sample(b, source, parameter);
    if (sampler == Sampler::kBinomial) {
      return binomial_sample(b, source, parameter, cast(Type::kF64, second.load(i)));
    }
    const Value value = gamma_sample(b, source, parameter);
    return select(value < smallest(dtype), like(value, smallest(dtype)), value);
  }
};

// parameters: one, or the first and the second.
void draw(Stream& stream, Operation id, Sampler sampler, const TensorView& output, Philox philox,
          std::span<const TensorView> parameters) {
  if (offer(stream, id, writes(output), reads(parameters), draws(philox))) return;
  const int64_t count = output.count();
  if (count == 0) return;
  // The densities of the other two cancel too much in float32.
  const bool narrow =
      sampler == Sampler::kGamma && output.dtype != GRAFT_FLOAT64 && !has_float64(stream.device());
  const SampleKernel kernel{sampler, output.dtype, narrow ? Type::kF32 : Type::kF64};
  StagedOutput to(stream, output);
  StagedInput one(stream, parameters.front()), two(stream, parameters.back());
  Arguments arguments;
  arguments.write(to.view()).read(one.view()).read(two.view());
  const int64_t grid = append_philox(arguments, philox, count, 1);
  launch_kernel(stream, kernel, grid, arguments);
  to.finish();
}

}  // namespace

void poisson(Stream& stream, const TensorView& output, Philox philox, const TensorView& rates) {
  draw(stream, Operation::poisson, Sampler::kPoisson, output, philox, {&rates, 1});
}

void binomial(Stream& stream, const TensorView& output, Philox philox, const TensorView& counts,
              const TensorView& chances) {
  const TensorView parameters[] = {counts, chances};
  draw(stream, Operation::binomial, Sampler::kBinomial, output, philox, parameters);
}

void standard_gamma(Stream& stream, const TensorView& output, Philox philox,
                    const TensorView& shapes) {
  draw(stream, Operation::standard_gamma, Sampler::kGamma, output, philox, {&shapes, 1});
}

}  // namespace graft

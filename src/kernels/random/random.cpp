// src/kernels/random/random.cpp: fills tensors with random numbers.
#include "kernels/random/random.h"

#include <cmath>
#include <numbers>
#include <optional>

#include "codegen/cache/program_cache.h"
#include "codegen/math/formulas.h"
#include "kernels/move/fill.h"
#include "kernels/move/staging.h"
#include "kernels/operation/offer.h"
#include "kernels/random/philox.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;
using Values = std::vector<Value>;

enum class Distribution {
  kUniform,
  kNormal,
  kExponential,
  kCauchy,
  kLogNormal,
  kGeometric,
  kBernoulli,
  kBernoulliEach,
  kInteger,
  kWideInteger
};

// Random bits of a unit uniform: exact in the storage type.
int unit_bits(graft_dtype dtype) {
  return dtype == GRAFT_BFLOAT16 ? 8 : dtype == GRAFT_FLOAT16 ? 11 : 24;
}

struct RandomKernel {
  Distribution distribution;
  graft_dtype output;
  graft_dtype probability = GRAFT_FLOAT32;
  bool narrow = false;  // counts that go to integers are computed in float32

  // float64 and wide integers take two words an element.
  bool wide() const {
    return distribution == Distribution::kWideInteger || (real() && type() == Type::kF64);
  }
  bool real() const { return distribution <= Distribution::kGeometric; }
  // What real numbers are computed in.
  Type type() const {
    return is_floating(output) ? ir::compute_type(output) : narrow ? Type::kF32 : Type::kF64;
  }
  int64_t per_block() const { return wide() ? 2 : 4; }
  std::string key() const;
  ir::Kernel build() const;

 private:
  Values real_values(const PhiloxWords& words, Value a, Value b) const;
};

std::string RandomKernel::key() const {
  static const char* const kNames[] = {"uniform",    "normal",      "exponential", "cauchy",
                                       "log_normal", "geometric",   "bernoulli",   "bernoulli_each",
                                       "integer",    "wide_integer"};
  std::string key = std::string("random_") + kNames[static_cast<int>(distribution)] + "_";
  key += name_of(output);
  if (narrow) key += "_narrow";
  if (distribution != Distribution::kBernoulliEach) return key;
  return key + "_" + name_of(probability);
}

struct Circle {
  Value cosine, sine;
};

// The point after turns (in [0, 1)) of a full circle. Turns minus the nearest quarter is exact in
// float32; the polynomials are Cephes' sinf and cosf, within 1 ULP of the radius.
Circle circle(Value turns) {
  if (turns.type() == Type::kF64) {
    const Value angle = turns * (2 * std::numbers::pi);
    return {cos(angle), sin(angle)};
  }
  const Value quarter = cast(Type::kI32, turns * 4.0 + 0.5);
  const Value x = (turns - cast(Type::kF32, quarter) * 0.25) * (2 * std::numbers::pi);
  const Value z = x * x;
  const Value s = x + x * z * ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1);
  const Value c =
      1.0 - 0.5 * z +
      z * z * ((2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2);
  const Value odd = (quarter & 1) != 0;
  auto signed_by = [](Value value, Value quarters) {
    const Value sign = bitcast(Type::kU32, (quarters & 2) << 30);
    return bitcast(Type::kF32, bitcast(Type::kU32, value) ^ sign);
  };
  return {signed_by(select(odd, s, c), quarter + 1), signed_by(select(odd, c, s), quarter)};
}

// -2 log(x) for x in 2^-24 .. 1, where log() would care for zeros, infinities and subnormals, too.
// x = m 2^e with sqrt(1/2) <= m < sqrt(2); the polynomial is log()'s.
Value minus_two_log(Value x) {
  if (x.type() == Type::kF64) return -2.0 * log(x);
  const Value bits = bitcast(Type::kI32, x);
  const Value exponent = (bits - 0x3f3504f3) >> 23;
  const Value f = bitcast(Type::kF32, bits - (exponent << 23)) - 1.0;
  const Value p =
      ir::polynomial(f, {0.33333331180030048, -0.24999996957950882, 0.20000715748892102,
                         -0.16667802319501254, 0.1424905764569748, -0.12425687331451106,
                         0.11685419923486739, -0.11479733846637636, 0.069716114714511778});
  const Value whole = cast(Type::kF32, exponent) * (-2 * std::numbers::ln2);
  return whole - 2.0 * (f + f * f * (f * p - 0.5));
}

// Box-Muller: two uniforms give two normals. 1 - u is in (0, 1], so the logarithm is finite.
void append_normals(Values& values, Value u, Value v, Value mean, Value deviation) {
  const Value radius = sqrt(minus_two_log(1.0 - u)) * deviation;
  const Circle point = circle(v);
  values.push_back(mean + radius * point.cosine);
  values.push_back(mean + radius * point.sine);
}

// The value at which a distribution reaches u, for u in (0, 1).
Value inverted(Distribution distribution, Value u, Value a, Value b) {
  if (distribution == Distribution::kExponential) return -log(u) / a;
  if (distribution == Distribution::kGeometric) {
    const Value trials = ceil(log(u) / a);
    return select(trials < 1, 1, trials);
  }
  // Cauchy: the tangent from the nearer end, where u is exact.
  const Value middle = u - 0.5;
  const Value tail = 1 / tan((0.5 - abs(middle)) * std::numbers::pi);
  return a + b * copysign(tail, middle);
}

Values RandomKernel::real_values(const PhiloxWords& words, Value a, Value b) const {
  const bool normal =
      distribution == Distribution::kNormal || distribution == Distribution::kLogNormal;
  Values units, values;
  if (wide()) {
    for (const Value& word : wide_words(words)) units.push_back(unit_double(word));
  } else {
    const int bits = distribution == Distribution::kUniform ? unit_bits(output) : normal ? 24 : 23;
    for (const Value& word : words) units.push_back(unit_float(word, bits));
  }
  for (size_t k = 0; k < units.size(); ++k) {
    const Value u = units[k];
    if (distribution == Distribution::kUniform) {
      const Value value = a + u * (b - a);
      values.push_back(select(value < b, value, a));
    } else if (normal) {
      if (k % 2 == 0) append_normals(values, u, units[k + 1], a, b);
    } else {
      // The middle of its interval: never 0, never 1.
      values.push_back(inverted(distribution, u + (wide() ? 0x1p-54 : 0x1p-24), a, b));
    }
  }
  if (distribution == Distribution::kLogNormal) {
    for (Value& value : values) value = exp(value);
  }
  return values;
}

ir::Kernel RandomKernel::build() const {
  Builder b(key());
  const Address to = b.write(output);
  std::optional<Address> each;
  if (distribution == Distribution::kBernoulliEach) each = b.read(probability);
  const PhiloxWriter philox(b);
  auto store = [&](Value element, Value value) { to.store(element, value); };
  if (real()) {
    const Value first = cast(type(), b.scalar(GRAFT_FLOAT64));
    const Value second = cast(type(), b.scalar(GRAFT_FLOAT64));
    philox.each(
        per_block(), type(),
        [&](const PhiloxWords& words) { return real_values(words, first, second); }, store);
    return b.finish();
  }
  if (distribution == Distribution::kBernoulli || distribution == Distribution::kBernoulliEach) {
    const Value threshold = b.index();
    auto draw = [](const PhiloxWords& words) { return words; };
    philox.each(per_block(), Type::kU32, draw, [&](Value element, Value word) {
      Value hit = cast(Type::kI64, word) < threshold;
      if (each) {
        const Value p = each->load(element);
        hit = cast(p.type(), unit_float(word)) < p;
      }
      to.store(element, select(hit, b.constant(Type::kI32, 1), b.constant(Type::kI32, 0)));
    });
    return b.finish();
  }
  const Value range = bitcast(Type::kU64, b.index()), base = b.index();
  auto shifted = [&](Value word) { return bitcast(Type::kI64, word) + base; };
  if (wide()) {
    philox.each(
        per_block(), Type::kU64, [](const PhiloxWords& words) { return wide_words(words); },
        [&](Value element, Value word) {
          to.store(element, shifted(select(range == 0, word, word % range)));
        });
  } else {
    philox.each(
        per_block(), Type::kU32, [](const PhiloxWords& words) { return words; },
        [&](Value element, Value word) {
          to.store(element, shifted(cast(Type::kU64, word) % range));
        });
  }
  return b.finish();
}

// Launches on contiguous memory; append adds what the distribution takes.
template <class Append>
void draw(Stream& stream, const RandomKernel& kernel, const TensorView& output,
          const TensorView* probabilities, Philox philox, Append append) {
  const int64_t count = output.count();
  if (count == 0) return;
  StagedOutput to(stream, output);
  const TensorView& p = probabilities != nullptr ? *probabilities : output;
  StagedInput each(stream, p, probabilities != nullptr && !p.contiguous());
  Arguments arguments;
  arguments.write(to.view());
  if (probabilities != nullptr) arguments.read(each.view());
  const int64_t grid = append_philox(arguments, philox, count, kernel.per_block());
  append(arguments);
  launch_kernel(stream, kernel, grid, arguments);
  to.finish();
}

// A distribution of real numbers: given are the numbers of the vendor's call, first and second the
// kernel's.
void draw_real(Stream& stream, Operation id, Distribution distribution, const TensorView& output,
               Philox philox, std::initializer_list<double> given, double first, double second) {
  const auto words = [&](VendorCall& to) { to.numbers(given); };
  if (offer(stream, id, writes(output), words, draws(philox))) return;
  const bool narrow = !is_floating(output.dtype) && !has_float64(stream.device());
  const RandomKernel kernel{distribution, output.dtype, GRAFT_FLOAT32, narrow};
  draw(stream, kernel, output, nullptr, philox, [&](Arguments& arguments) {
    arguments.scalar(Scalar::of(first), sizeof(first)).scalar(Scalar::of(second), sizeof(second));
  });
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  for (auto distribution :
       {Distribution::kUniform, Distribution::kNormal, Distribution::kBernoulli}) {
    for (graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_BFLOAT16}) {
      PackEntry::put(add, RandomKernel{distribution, dtype});
    }
  }
  for (graft_dtype dtype : {GRAFT_INT64, GRAFT_INT32}) {
    PackEntry::put(add, RandomKernel{Distribution::kInteger, dtype});
  }
  for (auto distribution : {Distribution::kExponential, Distribution::kBernoulliEach}) {
    PackEntry::put(add, RandomKernel{distribution, GRAFT_FLOAT32});
  }
});

}  // namespace

void uniform(Stream& stream, const TensorView& output, Philox philox, double from, double to) {
  draw_real(stream, Operation::uniform, Distribution::kUniform, output, philox, {from, to}, from,
            to);
}

void normal(Stream& stream, const TensorView& output, Philox philox, double mean,
            double deviation) {
  draw_real(stream, Operation::normal, Distribution::kNormal, output, philox, {mean, deviation},
            mean, deviation);
}

void exponential(Stream& stream, const TensorView& output, Philox philox, double lambda) {
  draw_real(stream, Operation::exponential, Distribution::kExponential, output, philox, {lambda},
            lambda, 0.0);
}

void cauchy(Stream& stream, const TensorView& output, Philox philox, double median, double sigma) {
  draw_real(stream, Operation::cauchy, Distribution::kCauchy, output, philox, {median, sigma},
            median, sigma);
}

void log_normal(Stream& stream, const TensorView& output, Philox philox, double mean,
                double deviation) {
  draw_real(stream, Operation::log_normal, Distribution::kLogNormal, output, philox,
            {mean, deviation}, mean, deviation);
}

void geometric(Stream& stream, const TensorView& output, Philox philox, double p) {
  draw_real(stream, Operation::geometric, Distribution::kGeometric, output, philox, {p},
            std::log1p(-p), 0.0);
}

void bernoulli(Stream& stream, const TensorView& output, Philox philox, double p) {
  if (offer(stream, Operation::bernoulli, writes(output), reads(nullptr), numbers(p),
            draws(philox)))
    return;
  draw(stream, {Distribution::kBernoulli, output.dtype}, output, nullptr, philox,
       [&](Arguments& arguments) { arguments.index(static_cast<int64_t>(p * 0x1p32)); });
}

void bernoulli(Stream& stream, const TensorView& output, Philox philox,
               const TensorView& probabilities) {
  if (offer(stream, Operation::bernoulli, writes(output), reads(probabilities), numbers(0),
            draws(philox)))
    return;
  draw(stream, {Distribution::kBernoulliEach, output.dtype, probabilities.dtype}, output,
       &probabilities, philox, [](Arguments& arguments) { arguments.index(0); });
}

void random_integers(Stream& stream, const TensorView& output, Philox philox, uint64_t range,
                     int64_t base) {
  if (offer(stream, Operation::random_integers, writes(output), integers(range, base),
            draws(philox)))
    return;
  const bool wide = range == 0 || range > (uint64_t{1} << 32);
  const Distribution distribution = wide ? Distribution::kWideInteger : Distribution::kInteger;
  draw(stream, {distribution, output.dtype}, output, nullptr, philox,
       [&](Arguments& arguments) { arguments.index(static_cast<int64_t>(range)).index(base); });
}

}  // namespace graft

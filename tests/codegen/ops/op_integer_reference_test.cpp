// tests/codegen/ops/op_integer_reference_test.cpp: what the rows of the op table should give for
// integers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "codegen/ops/op_table.h"
#include "tests/codegen/ops/op_reference.h"

namespace graft {
namespace {

using I = const Integers&;

int64_t wrap(uint64_t x) { return static_cast<int64_t>(x); }
uint64_t u(int64_t x) { return static_cast<uint64_t>(x); }
int64_t quotient(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? wrap(0 - u(a)) : a / b; }
int64_t rest(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 != 0 ? -1 : 1) : 0;
  uint64_t result = 1, square = u(base);
  for (; exponent != 0; exponent /= 2, square *= square) {
    if (exponent % 2 != 0) result *= square;
  }
  return wrap(result);
}

const IntegerReference kIntegerReferences[] = {
    {"add", [](I x, I s) { return wrap(u(x[0]) + u(s[0]) * u(x[1])); }, {3}},
    {"sub", [](I x, I s) { return wrap(u(x[0]) - u(s[0]) * u(x[1])); }, {3}},
    {"plain_add", [](I x, I) { return wrap(u(x[0]) + u(x[1])); }},
    {"plain_sub", [](I x, I) { return wrap(u(x[0]) - u(x[1])); }},
    {"mul", [](I x, I) { return wrap(u(x[0]) * u(x[1])); }},
    {"div_trunc", [](I x, I) { return quotient(x[0], x[1]); }},
    {"div_floor",
     [](I x, I) {
       const bool down = rest(x[0], x[1]) != 0 && (x[0] < 0) != (x[1] < 0);
       return quotient(x[0], x[1]) - down;
     }},
    {"remainder",
     [](I x, I) {
       const int64_t m = rest(x[0], x[1]);
       return m != 0 && (m < 0) != (x[1] < 0) ? m + x[1] : m;
     }},
    {"fmod", [](I x, I) { return rest(x[0], x[1]); }},
    {"pow", [](I x, I) { return integer_power(x[0], x[1]); }},
    {"pow_scalar", [](I x, I s) { return integer_power(x[0], s[0]); }, {5}},
    {"maximum", [](I x, I) { return std::max(x[0], x[1]); }},
    {"minimum", [](I x, I) { return std::min(x[0], x[1]); }},
    {"fmax", [](I x, I) { return std::max(x[0], x[1]); }},
    {"fmin", [](I x, I) { return std::min(x[0], x[1]); }},
    {"heaviside", [](I x, I) { return x[0] == 0 ? x[1] : int64_t{x[0] > 0}; }},
    {"bitwise_and", [](I x, I) { return x[0] & x[1]; }},
    {"bitwise_or", [](I x, I) { return x[0] | x[1]; }},
    {"bitwise_xor", [](I x, I) { return x[0] ^ x[1]; }},
    {"shift_left", [](I x, I) { return x[1] < 0 || x[1] > 63 ? 0 : wrap(u(x[0]) << x[1]); }},
    {"shift_right", [](I x, I) { return x[0] >> (x[1] < 0 || x[1] > 63 ? 63 : x[1]); }},
    {"logical_and", [](I x, I) { return int64_t{x[0] != 0 && x[1] != 0}; }},
    {"logical_or", [](I x, I) { return int64_t{x[0] != 0 || x[1] != 0}; }},
    {"logical_xor", [](I x, I) { return int64_t{(x[0] != 0) != (x[1] != 0)}; }},
    {"eq", [](I x, I) { return int64_t{x[0] == x[1]}; }},
    {"ne", [](I x, I) { return int64_t{x[0] != x[1]}; }},
    {"lt", [](I x, I) { return int64_t{x[0] < x[1]}; }},
    {"le", [](I x, I) { return int64_t{x[0] <= x[1]}; }},
    {"gt", [](I x, I) { return int64_t{x[0] > x[1]}; }},
    {"ge", [](I x, I) { return int64_t{x[0] >= x[1]}; }},
    {"positive", [](I x, I) { return x[0]; }},
    {"to_bool", [](I x, I) { return int64_t{x[0] != 0}; }},
    {"conj", [](I x, I) { return x[0]; }},
    {"neg", [](I x, I) { return wrap(0 - u(x[0])); }},
    {"abs", [](I x, I) { return x[0] < 0 ? wrap(0 - u(x[0])) : x[0]; }},
    {"angle", [](I x, I) { return int64_t{x[0] < 0}; }},
    {"square", [](I x, I) { return wrap(u(x[0]) * u(x[0])); }},
    {"cube", [](I x, I) { return wrap(u(x[0]) * u(x[0]) * u(x[0])); }},
    {"sign", [](I x, I) { return int64_t{x[0] > 0} - int64_t{x[0] < 0}; }},
    {"sgn", [](I x, I) { return int64_t{x[0] > 0} - int64_t{x[0] < 0}; }},
    {"signbit", [](I x, I) { return int64_t{x[0] < 0}; }},
    {"isnan", [](I, I) { return int64_t{0}; }},
    {"isinf", [](I, I) { return int64_t{0}; }},
    {"bitwise_not", [](I x, I) { return ~x[0]; }},
    {"logical_not", [](I x, I) { return int64_t{x[0] == 0}; }},
    {"where", [](I x, I) { return x[0] != 0 ? x[1] : x[2]; }},
    {"masked_fill", [](I x, I s) { return x[1] != 0 ? s[0] : x[0]; }, {-9}},
    {"clamp", [](I x, I) { return std::min(std::max(x[0], x[1]), x[2]); }},
    {"clamp_scalar", [](I x, I s) { return std::min(std::max(x[0], s[0]), s[1]); }, {-2, 5}},
    {"clamp_min", [](I x, I s) { return std::max(x[0], s[0]); }, {-2}},
    {"clamp_max", [](I x, I s) { return std::min(x[0], s[0]); }, {5}},
    {"addcmul", [](I x, I s) { return wrap(u(x[0]) + u(s[0]) * u(x[1]) * u(x[2])); }, {3}},
    {"addr",
     [](I x, I s) { return wrap(u(s[0]) * u(x[0]) + u(s[1]) * u(x[1]) * u(x[2])); },
     {3, -2}},
    {"cross_term", [](I x, I) { return wrap(u(x[0]) * u(x[1]) - u(x[2]) * u(x[3])); }},
    {"relu", [](I x, I) { return std::max<int64_t>(x[0], 0); }},
    {"threshold", [](I x, I s) { return x[0] <= s[0] ? s[1] : x[1]; }, {2, 9}},
};

TEST(IntegerReference, BelongsToARow) {
  for (const IntegerReference& reference : kIntegerReferences) {
    EXPECT_NE(find_op(reference.name), nullptr) << reference.name;
  }
}

}  // namespace

const IntegerReference* find_integer_reference(std::string_view name) {
  for (const IntegerReference& reference : kIntegerReferences) {
    if (name == reference.name) return &reference;
  }
  return find_special_integer_reference(name);
}

}  // namespace graft

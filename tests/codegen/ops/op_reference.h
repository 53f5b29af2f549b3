// tests/codegen/ops/op_reference.h: what every row of the op table should give.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace graft {

using Doubles = std::vector<double>;
using Integers = std::vector<int64_t>;

// In float64, for float32 kernels: tolerance is absolute below 1 and relative above.
struct Reference {
  const char* name;
  Doubles (*compute)(const Doubles& x, const Doubles& s);
  Doubles scalars = {};
  double tolerance = 4e-6;
};

// Exact, in int64.
struct IntegerReference {
  const char* name;
  int64_t (*compute)(const Integers& x, const Integers& s);
  Integers scalars = {};
};

// The rows of op_table_special.cpp; null for others.
const Reference* find_special_reference(std::string_view name);
const IntegerReference* find_special_integer_reference(std::string_view name);

// Gradients of samples, rows of op_table_special.cpp, too; null for others.
const Reference* find_gradient_reference(std::string_view name);

// The rows of op_table_quantization.cpp; null for others.
const Reference* find_quantization_reference(std::string_view name);

// Null when there is none.
const Reference* find_reference(std::string_view name);
const IntegerReference* find_integer_reference(std::string_view name);

}  // namespace graft

// src/codegen/ops/op_table.h: the elementwise operations, one row each.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/ir/builder.h"
#include "runtime/driver/export.h"

namespace graft {

// What an operation gives back and in which types it computes; bits of Op::types.
inline constexpr uint8_t kBoolType = 1;
inline constexpr uint8_t kIntegerTypes = 2;
inline constexpr uint8_t kFloatTypes = 4;
inline constexpr uint8_t kComplexTypes = 8;
inline constexpr uint8_t kNoHalfTypes = 16;  // beside kFloatTypes: PyTorch has it for no half type
inline constexpr uint8_t kGivesBool = 32;    // the operands alone decide what it is computed in
inline constexpr uint8_t kNumbers = kIntegerTypes | kFloatTypes;
inline constexpr uint8_t kRealTypes = kBoolType | kNumbers;

// One or several results of a row, so that a lambda may return either.
struct Results : std::vector<ir::Value> {
  Results(ir::Value value) : std::vector<ir::Value>{value} {}
  Results(std::initializer_list<ir::Value> values) : std::vector<ir::Value>(values) {}
};

// The formula of a row: from the inputs and the scalars to the results.
using In = std::span<const ir::Value>;
class Formula {
 public:
  Formula() = default;
  // Any captureless lambda of (In inputs, In scalars).
  template <class Lambda>
  constexpr Formula(Lambda) : call_([](In x, In s) -> Results { return Lambda{}(x, s); }) {}
  explicit operator bool() const { return call_ != nullptr; }
  Results operator()(In inputs, In scalars) const { return call_(inputs, scalars); }

 private:
  Results (*call_)(In, In) = nullptr;
};

// How many values a function takes.
template <class Result, class... Values>
constexpr size_t arity(Result (*)(Values...)) {
  return sizeof...(Values);
}

// The formula that calls a function of values with the inputs, then the scalars, in their order.
template <auto function>
constexpr Formula calls() {
  return [](In x, In s) {
    return [&]<size_t... i>(std::index_sequence<i...>)->Results {
      return function((i < x.size() ? x[i] : s[i - x.size()])...);
    }
    (std::make_index_sequence<arity(function)>());
  };
}

// One elementwise operation. Inputs are loaded and converted to the type that is computed in, but
// conditions to kBool. Scalars come in the type that is computed in.
// Results are converted to the dtype of the output that they are stored to, so comparisons, which
// give kBool, go to outputs of any dtype.
struct Op {
  const char* name;  // unique, also in kernel names: letters, digits, '_'
  uint8_t inputs;
  uint8_t scalars;
  uint8_t outputs;
  uint8_t types;       // what it computes in: kBoolType ...
  uint8_t conditions;  // bit i: input i is a condition: it is loaded as kBool, whatever its dtype
  // What of ATen's this row computes, words separated by spaces. Without a dot: a DispatchStub,
  // whose further arguments are the row's scalars, in order. With one: an overload, for compiled
  // graphs: "add.Tensor"; "." and ".Tensor" have the row's own name, "." is ".default". Its
  // arguments, where more than their order matters, follow in parentheses: "other" feeds the
  // operand of its place (inputs, then scalars), "1:self" operand 1, "alpha=1" may be left out,
  // "=0" is a number that no argument brings. Behind the operands, "approximate=none" must be that
  // or be left out, "approximate==tanh" must be that.
  const char* aten;
  Formula formula;
  // The same for complex numbers: inputs, scalars and results are pairs, real part first; one value
  // alone is a real result.
  Formula complex_formula = {};
  // The same on the bits of a half type, as i16, for rows that need no conversion to f32 and back.
  Formula half_formula = {};
  uint16_t id = 0;  // position in the table; set by the table
};

// The families of rows, one file each (op_table_<family>.cpp).
std::span<const Op> binary_ops();
std::span<const Op> unary_ops();
std::span<const Op> activation_ops();
std::span<const Op> ternary_ops();
std::span<const Op> special_ops();
std::span<const Op> quantization_ops();

// All rows, in an order that is stable within a version. Static storage, any thread.
GRAFT_EXPORT std::span<const Op> op_table();

// The row of a name, null when there is none. A hash lookup: keep the pointer.
GRAFT_EXPORT const Op* find_op(std::string_view name);

// The words of Op::aten; overloads with their whole name.
std::vector<std::string> stubs_of(const Op& op);
GRAFT_EXPORT std::vector<std::string> overloads_of(const Op& op);

// The table for programs that read it: [{"name", "inputs", "scalars", "outputs", "types": [...],
// "conditions": [...], "aten": [stubs], "overloads": [...]}, ...].
GRAFT_EXPORT std::string op_table_json();

}  // namespace graft

// src/compiler/graph/size.h: symbolic whole numbers: the sizes, strides and offsets of a graph.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/driver/export.h"

namespace graft::compiler {

class Size;

// What a product multiplies: a symbol, or a function of two sizes.
struct SizeFactor {
  enum class Kind : uint8_t { kSymbol, kFloorDiv, kMod, kMax, kMin };

  Kind kind = Kind::kSymbol;
  std::string text;                    // canonical; of a symbol its name
  std::shared_ptr<const Size> a, b{};  // operands of a function

  bool operator==(const SizeFactor& other) const { return text == other.text; }
  bool operator<(const SizeFactor& other) const { return text < other.text; }
};

// A polynomial of symbols with whole coefficients, always in its canonical form: terms by falling
// degree, then by name, none of them 0. Two sizes are equal exactly when their texts are; unequal
// ones may still have equal values. A value type. Arithmetic throws Error INVALID_ARGUMENT when a
// coefficient leaves 64 bits, or a sum would have more than 1024 terms or a term more than 64
// factors.
class GRAFT_EXPORT Size {
 public:
  struct Term {
    int64_t coefficient = 0;
    std::vector<SizeFactor> factors;  // sorted; none: the constant
    bool operator==(const Term&) const = default;
  };
  // The value of a symbol; throws what it likes for a name it does not know.
  using Lookup = std::function<int64_t(std::string_view symbol)>;

  Size() = default;  // 0
  Size(int64_t constant);
  static Size symbol(std::string name);

  const std::vector<Term>& terms() const { return terms_; }
  bool is_constant() const;
  bool is(int64_t constant) const { return is_constant() && constant_part() == constant; }
  int64_t constant_part() const;  // the constant term; 0 when there is none

  // What the symbols make of it. Floor division rounds down, mod has the divisor's sign; by 0 both
  // throw Error INVALID_ARGUMENT.
  int64_t evaluate(const Lookup& lookup) const;

  // "2*s0*s1 + floordiv(s0, 4) - 1".
  std::string text() const;

  // Calls visit with the name of every symbol inside, repeated ones too.
  void symbols(const std::function<void(const std::string&)>& visit) const;

  friend Size operator+(const Size& a, const Size& b);
  friend Size operator-(const Size& a, const Size& b);
  friend Size operator*(const Size& a, const Size& b);
  friend bool operator==(const Size& a, const Size& b) { return a.terms_ == b.terms_; }

  // Constants are computed; multiples of a constant divisor leave the function.
  static Size floor_div(const Size& a, const Size& b);
  static Size mod(const Size& a, const Size& b);
  static Size max(const Size& a, const Size& b);
  static Size min(const Size& a, const Size& b);

 private:
  static Size of(std::vector<Term> terms);
  static Size function(SizeFactor::Kind kind, const Size& a, const Size& b);

  std::vector<Term> terms_;
};

// The functions of two numbers behind the factors, as in Python.
int64_t floor_div(int64_t a, int64_t b);
int64_t floor_mod(int64_t a, int64_t b);

// The product of sizes; 1 of none.
Size product(const std::vector<Size>& sizes);

}  // namespace graft::compiler

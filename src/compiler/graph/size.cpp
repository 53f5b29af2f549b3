// src/compiler/graph/size.cpp: symbolic whole numbers: the sizes, strides and offsets of a graph.
#include "compiler/graph/size.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/driver/error.h"

namespace graft::compiler {

namespace {

using Kind = SizeFactor::Kind;

[[noreturn]] void overflow() {
  throw Error(GRAFT_INVALID_ARGUMENT,
              "a symbolic size does not fit 64 bits: give the symbols smaller ranges");
}

// More than any model has; products of sums grow without end in a few lines of text.
constexpr size_t kMostTerms = 1024, kMostFactors = 64;

[[noreturn]] void too_long() {
  throw Error(GRAFT_INVALID_ARGUMENT,
              "a symbolic size has more than 1024 terms or 64 factors: give it a symbol");
}

[[noreturn]] void divided_by_zero() {
  throw Error(GRAFT_INVALID_ARGUMENT,
              "a symbolic size is divided by 0: give the divisor's symbols a range above 0");
}

int64_t add(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) overflow();
  return sum;
}

int64_t multiply(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) overflow();
  return result;
}

struct Function {
  const char* name;
  int64_t (*apply)(int64_t a, int64_t b);
};

const Function& function_of(Kind kind) {
  static constexpr Function kFunctions[] = {
      {"floordiv", floor_div},
      {"mod", floor_mod},
      {"max", [](int64_t a, int64_t b) { return std::max(a, b); }},
      {"min", [](int64_t a, int64_t b) { return std::min(a, b); }}};
  return kFunctions[static_cast<size_t>(kind) - static_cast<size_t>(Kind::kFloorDiv)];
}

bool before(const Size::Term& a, const Size::Term& b) {
  if (a.factors.size() != b.factors.size()) return a.factors.size() > b.factors.size();
  return a.factors < b.factors;
}

std::string term_text(const Size::Term& term) {
  const uint64_t bits = static_cast<uint64_t>(term.coefficient);
  const uint64_t magnitude = term.coefficient < 0 ? 0 - bits : bits;
  std::string text;
  if (magnitude != 1 || term.factors.empty()) text = fmt::format("{}", magnitude);
  for (const SizeFactor& factor : term.factors) {
    if (!text.empty()) text += '*';
    text += factor.text;
  }
  return text;
}

}  // namespace

int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) divided_by_zero();
  if (b == -1) return multiply(a, -1);
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0) divided_by_zero();
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Size::Size(int64_t constant) {
  if (constant != 0) terms_.push_back({constant, {}});
}

Size Size::symbol(std::string name) {
  Size size;
  size.terms_.push_back({1, {{Kind::kSymbol, std::move(name), nullptr, nullptr}}});
  return size;
}

Size Size::of(std::vector<Term> terms) {
  std::sort(terms.begin(), terms.end(), before);
  Size size;
  for (Term& term : terms) {
    const bool same = !size.terms_.empty() && size.terms_.back().factors == term.factors;
    if (same) {
      size.terms_.back().coefficient = add(size.terms_.back().coefficient, term.coefficient);
    } else {
      size.terms_.push_back(std::move(term));
    }
    if (size.terms_.back().coefficient == 0) size.terms_.pop_back();
  }
  return size;
}

bool Size::is_constant() const {
  return terms_.empty() || (terms_.size() == 1 && terms_[0].factors.empty());
}

int64_t Size::constant_part() const {
  return terms_.empty() || !terms_.back().factors.empty() ? 0 : terms_.back().coefficient;
}

Size operator+(const Size& a, const Size& b) {
  if (a.terms_.size() + b.terms_.size() > kMostTerms) too_long();
  std::vector<Size::Term> terms = a.terms_;
  terms.insert(terms.end(), b.terms_.begin(), b.terms_.end());
  return Size::of(std::move(terms));
}

Size operator-(const Size& a, const Size& b) { return a + Size(-1) * b; }

Size operator*(const Size& a, const Size& b) {
  if (a.terms_.size() * b.terms_.size() > kMostTerms) too_long();
  std::vector<Size::Term> terms;
  for (const Size::Term& x : a.terms_) {
    for (const Size::Term& y : b.terms_) {
      if (x.factors.size() + y.factors.size() > kMostFactors) too_long();
      Size::Term term{multiply(x.coefficient, y.coefficient), x.factors};
      term.factors.insert(term.factors.end(), y.factors.begin(), y.factors.end());
      std::sort(term.factors.begin(), term.factors.end());
      terms.push_back(std::move(term));
    }
  }
  return Size::of(std::move(terms));
}

Size Size::function(Kind kind, const Size& a, const Size& b) {
  SizeFactor factor{kind, fmt::format("{}({}, {})", function_of(kind).name, a.text(), b.text()),
                    std::make_shared<const Size>(a), std::make_shared<const Size>(b)};
  Size size;
  size.terms_.push_back({1, {std::move(factor)}});
  return size;
}

Size Size::floor_div(const Size& a, const Size& b) {
  if (!b.is_constant()) return a == Size() ? Size() : function(Kind::kFloorDiv, a, b);
  const int64_t divisor = b.constant_part();
  if (divisor == 0) throw Error(GRAFT_INVALID_ARGUMENT, "a symbolic size is divided by 0");
  if (a.is_constant()) return compiler::floor_div(a.constant_part(), divisor);
  std::vector<Term> whole, rest;
  for (const Term& term : a.terms_) {
    if (term.coefficient % (divisor == -1 ? 1 : divisor) == 0) {
      whole.push_back({compiler::floor_div(term.coefficient, divisor), term.factors});
    } else {
      rest.push_back(term);
    }
  }
  const Size quotient = of(std::move(whole)), left = of(std::move(rest));
  if (left.is_constant()) return quotient + compiler::floor_div(left.constant_part(), divisor);
  return quotient + function(Kind::kFloorDiv, left, b);
}

Size Size::mod(const Size& a, const Size& b) {
  if (!b.is_constant()) return a == b || a == Size() ? Size() : function(Kind::kMod, a, b);
  const int64_t divisor = b.constant_part();
  if (a.is_constant()) return floor_mod(a.constant_part(), divisor);
  std::vector<Term> rest;
  for (const Term& term : a.terms_) {
    rest.push_back({floor_mod(term.coefficient, divisor), term.factors});
  }
  const Size left = of(std::move(rest));
  return left.is_constant() ? Size(floor_mod(left.constant_part(), divisor))
                            : function(Kind::kMod, left, b);
}

Size Size::max(const Size& a, const Size& b) {
  const Size difference = a - b;
  if (difference.is_constant()) return difference.constant_part() >= 0 ? a : b;
  return a.text() < b.text() ? function(Kind::kMax, a, b) : function(Kind::kMax, b, a);
}

Size Size::min(const Size& a, const Size& b) {
  const Size difference = a - b;
  if (difference.is_constant()) return difference.constant_part() <= 0 ? a : b;
  return a.text() < b.text() ? function(Kind::kMin, a, b) : function(Kind::kMin, b, a);
}

int64_t Size::evaluate(const Lookup& lookup) const {
  int64_t sum = 0;
  for (const Term& term : terms_) {
    int64_t value = term.coefficient;
    for (const SizeFactor& factor : term.factors) {
      const bool symbol = factor.kind == Kind::kSymbol;
      value = multiply(value,
                       symbol ? lookup(factor.text)
                              : function_of(factor.kind)
                                    .apply(factor.a->evaluate(lookup), factor.b->evaluate(lookup)));
    }
    sum = add(sum, value);
  }
  return sum;
}

std::string Size::text() const {
  if (terms_.empty()) return "0";
  std::string text;
  for (const Term& term : terms_) {
    const bool negative = term.coefficient < 0;
    if (text.empty()) {
      text = negative ? "-" : "";
    } else {
      text += negative ? " - " : " + ";
    }
    text += term_text(term);
  }
  return text;
}

void Size::symbols(const std::function<void(const std::string&)>& visit) const {
  for (const Term& term : terms_) {
    for (const SizeFactor& factor : term.factors) {
      if (factor.kind == Kind::kSymbol) {
        visit(factor.text);
      } else {
        factor.a->symbols(visit);
        factor.b->symbols(visit);
      }
    }
  }
}

Size product(const std::vector<Size>& sizes) {
  Size result = 1;
  for (const Size& size : sizes) result = result * size;
  return result;
}

}  // namespace graft::compiler

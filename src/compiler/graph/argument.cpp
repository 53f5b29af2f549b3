// src/compiler/graph/argument.cpp: an argument of a node.
#include "compiler/graph/argument.h"

#include <bit>

namespace graft::compiler {

Argument Argument::of_sizes(const std::vector<Size>& sizes) {
  std::vector<Argument> list;
  for (const Size& size : sizes) list.push_back(of_integer(size));
  return of_list(std::move(list));
}

Argument Argument::named(std::string keyword) && {
  name = std::move(keyword);
  return std::move(*this);
}

bool Argument::operator==(const Argument& other) const {
  const bool nan = number != number && other.number != other.number;
  const bool numbers =
      nan || std::bit_cast<uint64_t>(number) == std::bit_cast<uint64_t>(other.number);
  return kind == other.kind && truth == other.truth && value == other.value && numbers &&
         integer == other.integer && text == other.text && name == other.name && list == other.list;
}

bool number_of(const Argument& argument, double* out) {
  switch (argument.kind) {
    case Argument::Kind::kFloat:
      *out = argument.number;
      return true;
    case Argument::Kind::kBool:
      *out = argument.truth ? 1 : 0;
      return true;
    case Argument::Kind::kInteger: {
      // Larger ones do not pass through a double unharmed.
      const int64_t whole = argument.integer.constant_part();
      const int64_t limit = int64_t{1} << 53;
      *out = static_cast<double>(whole);
      return argument.integer.is_constant() && whole >= -limit && whole <= limit;
    }
    default:
      return false;
  }
}

bool integers_of(const Argument& argument, size_t count, int64_t* out) {
  if (argument.kind != Argument::Kind::kList) return false;
  if (argument.list.size() != 1 && argument.list.size() != count) return false;
  for (size_t i = 0; i < count; ++i) {
    const Argument& one = argument.list[argument.list.size() == 1 ? 0 : i];
    if (one.kind != Argument::Kind::kInteger || !one.integer.is_constant()) return false;
    out[i] = one.integer.constant_part();
  }
  return true;
}

}  // namespace graft::compiler

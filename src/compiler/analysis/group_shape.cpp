// src/compiler/analysis/group_shape.cpp: which shapes go together in one kernel.
#include "compiler/analysis/group_shape.h"

namespace graft::compiler {

namespace {

template <class Fits>
bool each_dimension(const std::vector<Size>& from, const std::vector<Size>& to, Fits fits) {
  if (from.size() > to.size()) return false;
  for (size_t i = 0; i < from.size(); ++i) {
    const Size& a = from[from.size() - 1 - i];
    if (!a.is(1) && !fits(a, to[to.size() - 1 - i])) return false;
  }
  return true;
}

}  // namespace

bool broadcasts(const std::vector<Size>& from, const std::vector<Size>& to) {
  return each_dimension(from, to, [](const Size& a, const Size& b) {
    return a == b || !a.is_constant() || !b.is_constant();
  });
}

bool surely_broadcasts(const std::vector<Size>& from, const std::vector<Size>& to) {
  return each_dimension(from, to, [](const Size& a, const Size& b) { return a == b; });
}

}  // namespace graft::compiler

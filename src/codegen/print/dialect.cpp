// src/codegen/print/dialect.cpp: the register of dialects.
#include "codegen/print/dialect.h"

namespace graft::ir {

namespace {

std::vector<const Dialect*>& dialects() {
  static std::vector<const Dialect*> all;
  return all;
}

}  // namespace

Dialect::Dialect(const char* name, Family family) : name_(name), family_(family) {
  dialects().push_back(this);
}

std::string Dialect::bitcast(Type to, Type from, const std::string& value) const {
  return std::string("((union { ") + name_of(from) + " from; " + name_of(to) + " to; }){" + value +
         "}).to";
}

const std::vector<const Dialect*>& all_dialects() { return dialects(); }

const Dialect* find_dialect(std::string_view name) {
  for (const Dialect* dialect : dialects()) {
    if (name == dialect->name()) return dialect;
  }
  return nullptr;
}

}  // namespace graft::ir

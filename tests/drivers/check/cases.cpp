// tests/drivers/check/cases.cpp: holds the registered cases.
#include "check/cases.h"

namespace graft::check {

std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

std::vector<std::string> omitted_slots(const graft_driver_table& table) {
  std::vector<std::string> names;
#define GRAFT_OMITTED(presence, name, parameters) \
  if (table.name == nullptr) names.push_back(#name);
  GRAFT_DRIVER_SLOTS(GRAFT_OMITTED)
#undef GRAFT_OMITTED
  return names;
}

}  // namespace graft::check

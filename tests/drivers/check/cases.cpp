// tests/drivers/check/cases.cpp: holds the registered cases.
#include "check/cases.h"

#include "graft/extensions.h"

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

std::vector<std::string> omitted_extensions(const graft_driver_table& table) {
  std::vector<std::string> names;
  const void* found = nullptr;
#define GRAFT_OMITTED(extension_name, version, SLOTS)                                  \
  if (table.extension == nullptr ||                                                    \
      table.extension("graft." #extension_name, version, &found) == GRAFT_NOT_FOUND) { \
    names.push_back("graft." #extension_name);                                         \
  }
  GRAFT_EXTENSIONS(GRAFT_OMITTED)
#undef GRAFT_OMITTED
  return names;
}

}  // namespace graft::check

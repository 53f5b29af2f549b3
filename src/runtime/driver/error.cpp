// src/runtime/driver/error.cpp: the one exception of the core, and the texts of statuses.
#include "runtime/driver/error.h"

#include <cstdio>

namespace graft {

Error::Error(graft_status status, const std::string& text)
    : std::runtime_error(text), status_(status) {}

Error::~Error() = default;

const char* status_name(graft_status status) noexcept {
  switch (status) {
#define GRAFT_CASE(name, value, text) \
  case GRAFT_##name:                  \
    return #name;
    GRAFT_STATUSES(GRAFT_CASE)
#undef GRAFT_CASE
  }
  return "UNKNOWN_STATUS";
}

const char* status_text(graft_status status) noexcept {
  switch (status) {
#define GRAFT_CASE(name, value, text) \
  case GRAFT_##name:                  \
    return text;
    GRAFT_STATUSES(GRAFT_CASE)
#undef GRAFT_CASE
  }
  return "a number that graft/driver.h does not know";
}

std::string bytes_text(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return std::to_string(bytes) + " bytes";
  double amount = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (amount >= 1024 && unit + 1 < std::size(kUnits)) {
    amount /= 1024;
    ++unit;
  }
  char text[64];
  std::snprintf(text, sizeof(text), "%.2f %s", amount, kUnits[unit]);
  return text;
}

}  // namespace graft

// tests/drivers/check/cases.h: the list of cases; each file of cases registers its own.
#ifndef GRAFT_TESTS_DRIVERS_CHECK_CASES_H_
#define GRAFT_TESTS_DRIVERS_CHECK_CASES_H_

#include <string>
#include <vector>

#include "check/session.h"

namespace graft::check {

// In what state the driver is when a case begins.
enum class Setting {
  kOpen,       // device 0 is open
  kLoaded,     // the table is filled, no device is open
  kLateError,  // device 0 is open and the second copy will fail late; needs --late-error
};

// One thing that a driver must do right.
struct Case {
  const char* name;               // "copy keeps to its range"
  const char* slots;              // optional slots that it needs, separated by spaces; "" for none
  void (*run)(Session& session);  // throws Failure when the contract is broken
  Setting setting;
};

// All registered cases, in the order of their names' groups.
std::vector<Case>& cases();

// Optional slots that table leaves empty, in the order of the slot list.
std::vector<std::string> omitted_slots(const graft_driver_table& table);

// The extensions that the driver lacks, "graft.blas", in the order of their list.
std::vector<std::string> omitted_extensions(const graft_driver_table& table);

// Registers a case at start-up; use DRIVER_CASE.
struct Registration {
  explicit Registration(const Case& one) { cases().push_back(one); }
};

}  // namespace graft::check

// Registers a case; its body follows. slots as in Case; setting without its k.
#define DRIVER_CASE(id, name, slots, setting)                \
  static void id(::graft::check::Session& session);          \
  static const ::graft::check::Registration id##_registered{ \
      {name, slots, id, ::graft::check::Setting::setting}};  \
  static void id([[maybe_unused]] ::graft::check::Session& session)

#endif  // GRAFT_TESTS_DRIVERS_CHECK_CASES_H_

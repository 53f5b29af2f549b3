// tests/drivers/trace/variant.h: another driver made unusual, or faulty; GRAFT_VARIANT names which.
#ifndef GRAFT_TESTS_DRIVERS_TRACE_VARIANT_H_
#define GRAFT_TESTS_DRIVERS_TRACE_VARIANT_H_

#include <span>

#include "graft/driver.h"

namespace graft::driver_test {

// One change of the base driver's table.
struct Variant {
  const char* name;
  void (*apply)(graft_driver_table& table);
  const char* rule;  // of the trace layer, which finds it; "" for a driver that is right
};

// The driver that each variant stands in front of, loaded before apply is called.
extern graft_driver_table base;

std::span<const Variant> unusual_handles();
std::span<const Variant> unusual_commands();
std::span<const Variant> faulty_variants();
std::span<const Variant> faulty_answers();

#define GRAFT_VARIANT_ROW(name, rule, what) {#name, name, rule},

}  // namespace graft::driver_test

#endif  // GRAFT_TESTS_DRIVERS_TRACE_VARIANT_H_

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
  // Of the trace layer, which finds it; "-": it shows beside serial runs alone; "": it is right.
  const char* rule;
};

// The driver that each variant stands in front of, loaded before apply is called.
extern graft_driver_table base;

std::span<const Variant> unusual_handles();
std::span<const Variant> unusual_commands();
std::span<const Variant> faulty_variants();
std::span<const Variant> faulty_answers();
std::span<const Variant> faulty_order();

#define GRAFT_VARIANT_ROW(name, rule, what) {#name, name, rule},

}  // namespace graft::driver_test

#endif  // GRAFT_TESTS_DRIVERS_TRACE_VARIANT_H_

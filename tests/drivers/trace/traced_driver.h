// tests/drivers/trace/traced_driver.h: a driver with a fresh trace layer in front of it, for one
// test.
#ifndef GRAFT_TESTS_DRIVERS_TRACE_TRACED_DRIVER_H_
#define GRAFT_TESTS_DRIVERS_TRACE_TRACED_DRIVER_H_

#include <cstdint>
#include <string>

#include "graft/driver.h"
#include "graft/driver_trace.h"

namespace graft::driver_test {

// A copy of the layer's library of its own, so that no test sees another's layers; ends the test
// program if it does not load.
class TracedDriver {
 public:
  // Puts the layer in front of query's driver. settings: as GRAFT_DRIVER_TRACE; findings go to a
  // file. status and text are graft_trace_front's.
  TracedDriver(graft_driver_query_function query, const std::string& settings);
  ~TracedDriver();
  TracedDriver(const TracedDriver&) = delete;
  TracedDriver& operator=(const TracedDriver&) = delete;

  // The names of the broken rules, in their order, with spaces between.
  std::string rules() const;
  // The lines of the findings.
  std::string report() const;
  // How many findings there are: of the drivers and of the callers.
  uint64_t count(uint32_t culprit) const;
  // Ends the layer: what it suspects becomes a finding.
  void finish();

  graft_driver_table table{};
  graft_status status = GRAFT_INTERNAL;
  std::string text;

 private:
  void* library_ = nullptr;
  std::string folder_;
};

// graft_driver_query of a fresh copy of the library at path.
graft_driver_query_function fresh_query(const std::string& path);

}  // namespace graft::driver_test

#endif  // GRAFT_TESTS_DRIVERS_TRACE_TRACED_DRIVER_H_

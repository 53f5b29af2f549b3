// drivers/trace/settings.h: what a text such as "log=calls.json,fail=copy:3" asks of the layer.
#ifndef GRAFT_DRIVERS_TRACE_SETTINGS_H_
#define GRAFT_DRIVERS_TRACE_SETTINGS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "graft/driver.h"

namespace graft::trace {

enum class FaultKind { kFail, kLate, kDrop, kDelay };

// One planted fault: what happens to which calls of a slot.
struct FaultRule {
  FaultKind kind = FaultKind::kFail;
  std::vector<size_t> slots;             // ids, see tables.h
  uint64_t call = 0;                     // the call that it strikes, counted from 1; 0: by share
  bool onward = false;                   // and every later call
  double share = 0;                      // of the calls, if call is 0
  graft_status status = GRAFT_INTERNAL;  // of kFail and kLate
  int64_t nanoseconds = 0;               // of kDelay
};

// docs/drivers/trace.md describes each.
struct TraceSettings {
  bool rules = true;
  bool probe = true;       // the layer queues small copies that show when work is done
  bool strict = false;     // a finding fails the call
  bool summary = true;     // a line at the end of the process
  bool serial = false;     // each command ends before the next one is queued
  bool verify_new = true;  // the first copies and fills of each kind are verified at once
  double verify = 0;       // and this share of all, and of the launches' arguments
  uint64_t seed = 1;
  std::string log;      // a file for the calls; "": none
  std::string results;  // a file for what the host gets; "": none
  std::string report;   // a file for the findings; "": standard error
  std::string driver;   // the library behind, if the layer is loaded as a driver
  std::vector<FaultRule> faults;
  bool drops_launches = false;
};

// Reads text. Returns "" or what is wrong and what to write.
std::string parse_settings(const char* text, TraceSettings* out);

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_SETTINGS_H_

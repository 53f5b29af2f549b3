// drivers/trace/objects/witness.h: reads back what a copy or a fill wrote, and what is beside it.
#ifndef GRAFT_DRIVERS_TRACE_OBJECTS_WITNESS_H_
#define GRAFT_DRIVERS_TRACE_OBJECTS_WITNESS_H_

#include <cstdint>
#include <vector>

#include "call/call.h"

namespace graft::trace {

// A copy or fill of the call's stream. It waits for the stream, so what it sees is certain; it
// looks only while no other stream of the device has work, so what it sees is the command's.
class CopyWitness {
 public:
  // Before the call: reads what must not change. kind: graft_copy_kind. pattern: of a fill, else
  // empty. Ranges were checked.
  CopyWitness(TraceCall& call, uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind,
              std::vector<uint8_t> pattern);

  // After the call returned OK: compares, and reports.
  void compare(TraceCall& call);

 private:
  void compare_device(TraceCall& call);
  void compare_host(TraceCall& call);

  uint64_t to_, from_, bytes_;
  uint32_t kind_;
  bool looks_ = false;
  std::vector<uint8_t> expected_;        // of the range; empty: read from from_
  std::vector<uint8_t> before_, after_;  // beside the range
  uint64_t commands_ = 0;                // of the device
};

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_OBJECTS_WITNESS_H_

// drivers/trace/objects/rows_witness.h: reads back what a copy of rows wrote, and what is between
// them.
#ifndef GRAFT_DRIVERS_TRACE_OBJECTS_ROWS_WITNESS_H_
#define GRAFT_DRIVERS_TRACE_OBJECTS_ROWS_WITNESS_H_

#include <cstdint>
#include <vector>

#include "call/call.h"

namespace graft::trace {

// Bytes from the first byte of the rows to the end of the last one. strides: of copy.
uint64_t extent_of(const graft_strided_copy& copy, const uint64_t (&strides)[3]);

// As CopyWitness (objects/witness.h), of a copy of rows.
class RowsWitness {
 public:
  // Before the call. Ranges were checked.
  RowsWitness(TraceCall& call, const graft_strided_copy& copy);

  // After the call returned OK: compares, and reports.
  void compare(TraceCall& call);

 private:
  // Whether the caller's memory has the rows.
  void compare_given(TraceCall& call);
  // got: what is there now, in the place of expected_.
  void report(TraceCall& call, std::vector<uint8_t> got);

  graft_strided_copy copy_;
  bool looks_ = false;
  uint64_t commands_ = 0;  // of the device
  uint64_t before_ = 0;    // bytes of expected_ before the extent
  std::vector<uint8_t> expected_, rows_;
};

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_OBJECTS_ROWS_WITNESS_H_

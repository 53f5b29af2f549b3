// drivers/trace/objects/readback.h: reads device memory behind the call's stream.
#ifndef GRAFT_DRIVERS_TRACE_OBJECTS_READBACK_H_
#define GRAFT_DRIVERS_TRACE_OBJECTS_READBACK_H_

#include <cstdint>
#include <string>

#include "call/call.h"

namespace graft::trace {

// Copies bytes at from to host memory and waits for the stream. False if that failed: the stream
// then owes the error to its caller.
bool read_back(TraceCall& call, void* to, graft_address from, uint64_t bytes);

// Whether no other stream of the call's device has work, and the call's stream waits for no
// function of the caller, which may need what the calling thread holds.
bool is_quiet(TraceCall& call);

// Commands of all streams of the call's device so far.
uint64_t commands_so_far(TraceCall& call);

// Bytes beside a range of device memory that belong to the same allocation; 0 if it is not known.
struct Margin {
  uint64_t before = 0, after = 0;
};
constexpr uint64_t kMostMargin = 16;
Margin margin_around(TraceCall& call, graft_address to, uint64_t bytes);

// Byte place of a range of bytes is wrong.
void report_wrong_byte(TraceCall& call, uint64_t place, uint64_t bytes);
// Bytes that the command does not own changed. where: "before the range".
void report_overrun(TraceCall& call, const std::string& where);

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_OBJECTS_READBACK_H_

// drivers/trace/objects/guard.h: memory that a slot may read during its call only.
//
// A guard is closed memory once the driver's slot has returned. A driver that reads it later is
// found: the memory opens again, the read goes on, and the next call of any slot reports it.
#ifndef GRAFT_DRIVERS_TRACE_OBJECTS_GUARD_H_
#define GRAFT_DRIVERS_TRACE_OBJECTS_GUARD_H_

#include <cstddef>
#include <cstdint>

#include "call/call.h"

namespace graft::trace {

// Whether this call's arguments are guarded. A call is asked once.
bool wants_guards(TraceCall& call);

// Fresh memory that closes when the driver's slot returns; null if there is none.
char* guarded_room(TraceCall& call, size_t bytes);

// A guarded copy of bytes at data, or data if there is no room or the call wants no guards.
const void* guarded_bytes(TraceCall& call, const void* data, size_t bytes);

// Likewise of a text and its zero byte, of a page at most.
const char* guarded_text(TraceCall& call, const char* text);

// Likewise of launch and its arguments.
const graft_launch* guarded_launch(TraceCall& call, const graft_launch* launch);

// Reports reads of closed memory since the last call.
void report_late_reads(TraceCall& call);

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_OBJECTS_GUARD_H_

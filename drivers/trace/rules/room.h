// drivers/trace/rules/room.h: rules of slots that fail for want of memory. Each locks the layer's
// mutex.
#ifndef GRAFT_DRIVERS_TRACE_RULES_ROOM_H_
#define GRAFT_DRIVERS_TRACE_RULES_ROOM_H_

#include <functional>

#include "call/call.h"

namespace graft::trace {

// Before the slot: notes how much memory of the device is free, unless probes are off.
void note_free(TraceCall& call, graft_device device);

// The driver had no memory for bytes. That is a flaw if it states a lot as free, or if the caller
// has freed nearly all that it once held.
void check_room(TraceCall& call, graft_device device, uint64_t bytes);

// After the same failure: what is free is what note_free noted. If it is less, again tries the slot
// a second time, and gives back what it gets: another process may have taken memory once.
void check_kept(TraceCall& call, graft_device device, const std::function<graft_status()>& again);

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_RULES_ROOM_H_

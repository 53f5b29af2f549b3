// drivers/trace/objects/waiting.h: waits of the layer's own. The stream owes its caller an error
// that one of them takes from the driver.
#ifndef GRAFT_DRIVERS_TRACE_OBJECTS_WAITING_H_
#define GRAFT_DRIVERS_TRACE_OBJECTS_WAITING_H_

#include <string_view>

#include "call/call.h"

namespace graft::trace {

// Waits for the call's stream. False: it has failed.
bool wait_for_stream(TraceCall& call);

// Whether a serial run ends a command of this slot before the next one. Not if it may wait for what
// its caller does later: a function, an event, another rank.
bool ends_alone(const TraceCall& call);

// The call's command has ended, or has not for two seconds. Waits only for the caller's own
// functions and events if the driver has stream_synchronize_within.
void end_command(TraceCall& call);

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_OBJECTS_WAITING_H_

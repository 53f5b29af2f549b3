// drivers/trace/rules/checks.h: what the rules of several slots share. Each locks the layer's
// mutex.
#ifndef GRAFT_DRIVERS_TRACE_RULES_CHECKS_H_
#define GRAFT_DRIVERS_TRACE_RULES_CHECKS_H_

#include <cstdint>
#include <string>

#include "call/call.h"

namespace graft::trace {

// An address, as findings show it: "0x7f10".
std::string hex(uint64_t value);

// The call is on this stream: it must be alive, and no other thread may be inside. queues: the slot
// queues a command.
void enter_stream(TraceCall& call, graft_stream handle, bool queues);
// The call has returned; a command that was refused uses nothing.
void leave_stream(TraceCall& call, graft_status status);

// The call is about this device, which must be open.
void enter_device(TraceCall& call, graft_device handle);

// The range is inside one allocation of the device. The call's command, if any, uses it. name: of
// the parameter.
void use_range(TraceCall& call, graft_device device, graft_address address, uint64_t bytes,
               const char* name);

// The handle of a plan, graph, group or executable is alive. what: "plan".
void check_other(TraceCall& call, const void* handle, const char* what);
void add_other(TraceCall& call, const void* handle, const char* what, uint64_t workspace_bytes);
void remove_other(TraceCall& call, const void* handle, const char* what);
uint64_t workspace_of(TraceCall& call, const void* plan);

// The execution's addresses.
void use_execution(TraceCall& call, graft_plan plan, const graft_execution* execution);

// A launch's shape and arguments.
void check_launch(TraceCall& call, const graft_launch* launch);

// The driver had no memory for bytes. That is a flaw if it states a lot as free, or if the caller
// has freed nearly all that it once held.
void check_room(TraceCall& call, graft_device device, uint64_t bytes);

// Whether the machine lets a thread sleep much longer than it asked for.
bool machine_is_crowded();

// A slot that never waits returned at once.
void check_prompt(TraceCall& call);

// Rules of every slot: the status, and what the driver says of it.
void check_status(TraceCall& call, graft_status status, const std::string& text);

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_RULES_CHECKS_H_

// drivers/trace/rules/checks.h: what the rules of several slots share. Each locks the layer's
// mutex.
#ifndef GRAFT_DRIVERS_TRACE_RULES_CHECKS_H_
#define GRAFT_DRIVERS_TRACE_RULES_CHECKS_H_

#include <cstdint>
#include <functional>
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

// Whether the machine lets a thread sleep much longer than it asked for.
bool machine_is_crowded();

// A slot that never waits returned at once.
void check_prompt(TraceCall& call);

// A wait with a timeout, which began at call.began_ns, has returned: no later than it may.
void check_in_time(TraceCall& call, uint64_t timeout_ns);

// Whether a trial may run now: the device is open, the layer may queue probes, and first, which is
// asked under the layer's mutex, says that it has not run yet.
bool may_try(TraceCall& call, graft_device device,
             const std::function<bool(DeviceRecord& device)>& first);
// What a trial found, "" for nothing, is a finding of a slot, and its failures are not the
// caller's.
void note_trial(TraceCall& call, const char* slot, const Finding& found);

// A query has said BUSY of the device's work since busy_ns: if that is long, a trial shows whether
// queries alone let commands finish.
void check_sent(TraceCall& call, graft_device device, uint64_t busy_ns);

// Rules of every slot: the status, and what the driver says of it.
void check_status(TraceCall& call, graft_status status, const std::string& text);

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_RULES_CHECKS_H_

// drivers/trace/objects/launch_probe.h: a kernel of the layer's that counts the work-items of a
// launch.
#ifndef GRAFT_DRIVERS_TRACE_OBJECTS_LAUNCH_PROBE_H_
#define GRAFT_DRIVERS_TRACE_OBJECTS_LAUNCH_PROBE_H_

#include "call/call.h"

namespace graft::trace {

// Launches that kernel in launch's shape behind the call's command and waits: each work-item must
// run once. Looks at launches of one dimension on devices whose dialect it knows.
void probe_launch(TraceCall& call, const graft_launch& launch);

// The kernel for the call's device: it takes the address of an int32 for each work-item. Compiles
// it once. Null if the device has none.
graft_kernel probe_kernel(TraceCall& call);

// Unloads the device's kernel; before device_close.
void unload_probe(TraceLayer& layer, graft_device device);

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_OBJECTS_LAUNCH_PROBE_H_

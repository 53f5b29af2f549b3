// drivers/trace/objects/watch.h: a thread that looks at what no call shows: calls that do not
// return, and when marks are passed.
#ifndef GRAFT_DRIVERS_TRACE_OBJECTS_WATCH_H_
#define GRAFT_DRIVERS_TRACE_OBJECTS_WATCH_H_

#include "layer.h"

namespace graft::trace {

// Watches the layer from now on. Starts the process's thread, once; it ends with the process.
void watch(TraceLayer& layer);

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_OBJECTS_WATCH_H_

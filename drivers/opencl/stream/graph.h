// drivers/opencl/stream/graph.h: lists of commands that take one call (graft.graphs).
#ifndef GRAFT_DRIVERS_OPENCL_STREAM_GRAPH_H_
#define GRAFT_DRIVERS_OPENCL_STREAM_GRAPH_H_

#include "graft/extensions.h"

namespace graft::opencl {

// The extension graft.graphs. A launch is one task of the stream's backlog; its kernels are the
// graph's own, so that they keep what no launch changes among their arguments.
const graft_graphs_table& graphs_table();

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_STREAM_GRAPH_H_

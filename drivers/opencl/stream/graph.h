// drivers/opencl/stream/graph.h: lists of commands that take one call (graft.graphs).
#ifndef GRAFT_DRIVERS_OPENCL_STREAM_GRAPH_H_
#define GRAFT_DRIVERS_OPENCL_STREAM_GRAPH_H_

#include "graft/extensions.h"

namespace graft::opencl {

// Slots of graft.graphs. A launch is one task of the stream's backlog; its kernels are the graph's
// own, so that they keep what no launch changes among their arguments.
struct GraphSlots {
  static graft_status graph_create(graft_device device, const graft_command* commands,
                                   uint32_t count, graft_graph* out_graph);
  static graft_status graph_launch(graft_stream stream, graft_graph graph,
                                   const graft_address* bases, uint32_t base_count);
  static graft_status graph_destroy(graft_graph graph);
};

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_STREAM_GRAPH_H_

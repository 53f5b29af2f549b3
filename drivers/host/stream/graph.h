// drivers/host/stream/graph.h: lists of commands that are launched as one.
#ifndef GRAFT_DRIVERS_HOST_STREAM_GRAPH_H_
#define GRAFT_DRIVERS_HOST_STREAM_GRAPH_H_

#include "graft/extensions.h"

namespace graft::host {

// Slots of graft.graphs. A launch gives the commands to the stream one after the other.
struct GraphSlots {
  static graft_status graph_create(graft_device device, const graft_command* commands,
                                   uint32_t count, graft_graph* out_graph);
  static graft_status graph_launch(graft_stream stream, graft_graph graph,
                                   const graft_address* bases, uint32_t base_count);
  static graft_status graph_destroy(graft_graph graph);
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_STREAM_GRAPH_H_

// drivers/host/stream/graph.h: lists of commands that are launched as one.
#ifndef GRAFT_DRIVERS_HOST_STREAM_GRAPH_H_
#define GRAFT_DRIVERS_HOST_STREAM_GRAPH_H_

#include "graft/extensions.h"

namespace graft::host {

// The table of graft.graphs. A launch gives the commands to the stream one after the other.
extern const graft_graphs_table kGraphs;

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_STREAM_GRAPH_H_

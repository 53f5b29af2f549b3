// drivers/trace/slots.h: puts the layer's slots into tables, made from the lists of the headers.
#ifndef GRAFT_DRIVERS_TRACE_SLOTS_H_
#define GRAFT_DRIVERS_TRACE_SLOTS_H_

#include "layer.h"

namespace graft::trace {

// Drivers of one process that can have a layer: a slot has no context, so each has its own.
constexpr size_t kMostLayers = 8;

// Replaces the driver's slots in table by the layer's; null stays null. Returns false if the
// process has kMostLayers already.
bool put_in_front(TraceLayer* layer, graft_driver_table* table);

// Ends each layer: prints its summary.
void finish_layers();

// The layers of this process, in the order of their drivers; null behind the last.
TraceLayer* layer_at(size_t place);

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_SLOTS_H_

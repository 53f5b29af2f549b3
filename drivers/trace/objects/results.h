// drivers/trace/objects/results.h: what the host gets from the device, for the setting results.
//
// A copy to the host is a result when its stream's waits, queries or callbacks have shown that it
// is done: then the host may read it, and no later. What a collective gives every rank is one, too.
#ifndef GRAFT_DRIVERS_TRACE_OBJECTS_RESULTS_H_
#define GRAFT_DRIVERS_TRACE_OBJECTS_RESULTS_H_

#include "call/call.h"

namespace graft::trace {

// The call has queued a copy to the host. Results that it overwrites are none.
void expect_result(TraceCall& call, uint64_t to, uint64_t bytes);

// The call has queued a collective after which each rank of group has the same bytes at address:
// queues a copy of them, to memory of the layer's own.
void expect_same(TraceCall& call, graft_group group, graft_address address, uint64_t bytes);

// The block is freed. REQUIRES: the layer's mutex is held.
void forget_results(ObjectLedger& ledger, uint64_t begin, uint64_t bytes);

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_OBJECTS_RESULTS_H_

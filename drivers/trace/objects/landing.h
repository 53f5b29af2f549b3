// drivers/trace/objects/landing.h: signs in pinned memory, which show whether a copy has written
// it.
//
// A copy to pinned memory overwrites the signs. If a slot says that the copy is done and a sign is
// still there, the copy has not landed. Tickets do not show that: a driver may move large copies by
// another engine, for which later commands wait.
#ifndef GRAFT_DRIVERS_TRACE_OBJECTS_LANDING_H_
#define GRAFT_DRIVERS_TRACE_OBJECTS_LANDING_H_

#include "call/call.h"

namespace graft::trace {

// Before a copy to the host is queued: puts signs into the range, if it is pinned and nothing else
// may read it before the copy has landed. REQUIRES: the layer's mutex is held.
void put_signs(TraceCall& call, uint64_t to, uint64_t bytes);

// The copy was refused: the range gets back what it had.
void take_signs_back(TraceCall& call);

// Whether the copies of stream up to number have landed. Forgets them. REQUIRES: the layer's mutex
// is held.
bool have_landed(StreamRecord& stream, uint64_t number);

// The block is freed. REQUIRES: the layer's mutex is held.
void forget_signs(ObjectLedger& ledger, uint64_t begin, uint64_t bytes);

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_OBJECTS_LANDING_H_

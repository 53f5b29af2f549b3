// drivers/trace/objects/probes.h: tickets, small copies that the layer queues to see when work is
// done.
//
// A ticket is a copy of its number, from a table in device memory to a word of the stream in host
// memory. Commands of a stream run in order: if a wait returns before its ticket arrived, the wait
// was too short.
#ifndef GRAFT_DRIVERS_TRACE_OBJECTS_PROBES_H_
#define GRAFT_DRIVERS_TRACE_OBJECTS_PROBES_H_

#include "call/call.h"

namespace graft::trace {

// Fills the device's table by the fresh stream, once, and gives the stream its word.
void prepare_tickets(TraceLayer& layer, graft_device device, graft_stream handle);

// Frees the device's table; before device_close.
void free_tickets(TraceLayer& layer, graft_device device);

// Queues a ticket on the call's stream, behind its commands. Returns its number, 0 if there is
// none.
uint32_t queue_ticket(TraceCall& call);

// As queue_ticket, but returns the last ticket if no command was queued since, or if another thread
// queued the last one: a ticket of this thread would hide a driver that waits for each thread's own
// commands.
uint32_t latest_ticket(TraceCall& call);

// Queues a ticket behind the first, second, fourth, ... command that is not known to be done, so
// that other threads' waits have one.
void queue_between(TraceCall& call);

// Whether a ticket has arrived; true if nothing can be said.
bool has_arrived(const StreamRecord& stream, uint32_t ticket);

// What a slot's OK says of the commands before it.
enum class Answer {
  kDone,    // they have ended; an error is not told
  kMarked,  // likewise, and an error before the mark would have been told
  kWhole    // likewise of the whole stream
};

// A slot said that the commands up to number, and with them the ticket, are done. REQUIRES: the
// layer's mutex is held.
void note_done(TraceCall& call, StreamRecord& stream, uint64_t number, uint32_t ticket,
               Answer answer);

// A slot reported an error of the stream: what it queued has ended, and may not have run.
// REQUIRES: the layer's mutex is held.
void note_failed(TraceCall& call, StreamRecord& stream, uint64_t number);

// The driver reported the error, by a slot that waits for the whole stream: holds it against what
// other waits said. REQUIRES: the layer's mutex is held.
void check_error(TraceCall& call, StreamRecord& stream);

// Notes which timed marks are passed. REQUIRES: the layer's mutex is held.
void settle_marks(ObjectLedger& ledger);

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_OBJECTS_PROBES_H_

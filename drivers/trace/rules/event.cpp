// drivers/trace/rules/event.cpp: rules of events.
#include <algorithm>

#include "objects/probes.h"
#include "rules/checks.h"
#include "rules/hooks.h"

namespace graft::trace {

// The event's record; null, and a finding, if it is not alive. REQUIRES: the mutex is held.
static EventRecord* find_event(TraceCall& call, graft_event handle) {
  const auto found = call.layer.ledger.events.find(handle);
  if (found != call.layer.ledger.events.end()) {
    call.device = found->second.device;
    return &found->second;
  }
  call.caller_broke("dead-event", std::string("the event ") + call.layer.ledger.fate_of(handle),
                    "Use an event between event_create and event_destroy.");
  return nullptr;
}

static void check_event(TraceCall& call, graft_event handle) {
  const std::lock_guard lock(call.layer.mutex);
  find_event(call, handle);
}

// The record of an event that is alone behind its handle: what is known of its mark is certain.
static EventRecord* lone_event(TraceCall& call, graft_event handle) {
  const auto found = call.layer.ledger.events.find(handle);
  const bool alone = found != call.layer.ledger.events.end() && found->second.count == 1;
  return alone ? &found->second : nullptr;
}

void EventAfter::event_create(TraceCall& call, graft_status status, graft_device device,
                              uint32_t timed, graft_event* out) {
  if (status != GRAFT_OK) return;
  const std::lock_guard lock(call.layer.mutex);
  EventRecord& event = call.layer.ledger.events[*out];
  event.device = device;
  event.timed = timed != 0;
  event.mark = {};
  ++event.count;
  call.layer.ledger.ended.erase(*out);
}

void EventBefore::event_destroy(TraceCall& call, graft_event handle) {
  const std::lock_guard lock(call.layer.mutex);
  EventRecord* const event = find_event(call, handle);
  if (event == nullptr || --event->count != 0) return;
  call.layer.ledger.events.erase(handle);
  call.layer.ledger.ended.insert(handle);
}

void EventBefore::event_record(TraceCall& call, graft_event handle, graft_stream) {
  call.ticket = latest_ticket(call);
  call.began_ns = steady_ns();
  check_event(call, handle);
}

void EventAfter::event_record(TraceCall& call, graft_status status, graft_event handle,
                              graft_stream) {
  if (status != GRAFT_OK || call.stream == nullptr) return;
  const std::lock_guard lock(call.layer.mutex);
  EventRecord* const event = lone_event(call, handle);
  if (event == nullptr) return;
  const StreamRecord& stream = *call.stream;
  event->mark = {.set = true,
                 .place = {stream.id, stream.queued},
                 .ticket = call.ticket,
                 .asked_ns = call.began_ns,
                 .done_before = stream.done,
                 .done_ns = stream.done_ns};
}

void EventBefore::event_query(TraceCall& call, graft_event handle) { check_event(call, handle); }

void EventBefore::event_synchronize(TraceCall& call, graft_event handle) {
  check_event(call, handle);
}

void EventBefore::event_synchronize_within(TraceCall& call, graft_event handle, uint64_t) {
  check_event(call, handle);
}

// A slot has answered whether the event's mark is passed. began: the mark when it was asked cannot
// have changed since, or another thread records, whose call then decides.
static void answered(TraceCall& call, graft_status status, graft_event handle) {
  const std::lock_guard lock(call.layer.mutex);
  EventRecord* const event = lone_event(call, handle);
  if (event == nullptr) return;
  Mark& mark = event->mark;
  if (status == GRAFT_BUSY && (!mark.set || mark.passed)) {
    call.driver_broke("busy-again",
                      mark.set ? "BUSY after the mark was passed" : "BUSY though it has no mark",
                      "Return OK once the mark is passed, or if it was never set.");
  }
  if (!mark.set || status == GRAFT_BUSY) return;
  const auto stream = call.layer.ledger.stream_ids.find(mark.place.stream);
  if (stream == call.layer.ledger.stream_ids.end()) {
    mark.passed = true;
    return;
  }
  if (status == GRAFT_OK) {
    if (!mark.passed) note_done(call, *stream->second, mark.place.number, mark.ticket, false);
    mark.passed = true;
  } else {
    note_failed(call, *stream->second, mark.place.number);
  }
}

void EventAfter::event_query(TraceCall& call, graft_status status, graft_event handle) {
  answered(call, status, handle);
}

void EventAfter::event_synchronize(TraceCall& call, graft_status status, graft_event handle) {
  answered(call, status, handle);
}

void EventAfter::event_synchronize_within(TraceCall& call, graft_status status, graft_event handle,
                                          uint64_t) {
  answered(call, status, handle);
}

void EventBefore::event_elapsed(TraceCall& call, graft_event start, graft_event end, int64_t*) {
  const std::lock_guard lock(call.layer.mutex);
  for (const graft_event handle : {start, end}) {
    const EventRecord* const event = find_event(call, handle);
    if (event == nullptr || event->count != 1) continue;
    if (!event->timed) {
      call.caller_broke("untimed", "an event was made with timed 0", "Make it with timed 1.");
    } else if (!event->mark.set) {
      call.caller_broke("no-mark", "an event was never recorded", "Record both events.");
    }
  }
}

// Holds the time between two marks of one stream against the host's clock: start was set after
// event_record was called for it, and passed before what a wait showed when end was recorded.
void EventAfter::event_elapsed(TraceCall& call, graft_status status, graft_event start,
                               graft_event end, int64_t* out_ns) {
  if (status != GRAFT_OK) return;
  const std::lock_guard lock(call.layer.mutex);
  const EventRecord* const first = lone_event(call, start);
  const EventRecord* const last = lone_event(call, end);
  if (first == nullptr || last == nullptr || !first->mark.set || !last->mark.set) return;
  const Mark &from = first->mark, &to = last->mark;
  if (from.place.stream != to.place.stream || to.asked_ns < from.asked_ns) return;
  constexpr uint64_t kLeast = 2'000'000;  // shorter times say little
  const uint64_t most = steady_ns() - from.asked_ns;
  const bool passed = to.done_before >= from.place.number && to.done_ns >= from.asked_ns;
  const uint64_t least = passed && to.asked_ns > to.done_ns ? to.asked_ns - to.done_ns : 0;
  const auto elapsed = static_cast<uint64_t>(std::max<int64_t>(*out_ns, 0));
  if (elapsed > 2 * most + kLeast || (least > kLeast && elapsed < least / 4)) {
    call.driver_broke("impossible",
                      std::to_string(*out_ns) + " ns between marks that are between " +
                          std::to_string(least) + " and " + std::to_string(most) + " ns apart",
                      "Count in nanoseconds.");
  }
}

void EventBefore::stream_wait_event(TraceCall& call, graft_stream, graft_event handle) {
  check_event(call, handle);
}

void EventAfter::stream_wait_event(TraceCall& call, graft_status status, graft_stream,
                                   graft_event handle) {
  if (status != GRAFT_OK || call.stream == nullptr) return;
  StreamWait wait;
  {
    const std::lock_guard lock(call.layer.mutex);
    const EventRecord* const event = lone_event(call, handle);
    if (event == nullptr || !event->mark.set) return;
    if (event->mark.place.stream == call.stream->id) return;
    wait.mark = event->mark.place;
    wait.mark_ticket = event->mark.ticket;
  }
  wait.command = call.command;
  wait.ticket = queue_ticket(call);
  const std::lock_guard lock(call.layer.mutex);
  call.stream->waits.push_back(wait);
}

}  // namespace graft::trace

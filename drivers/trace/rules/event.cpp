// drivers/trace/rules/event.cpp: rules of events.
#include <algorithm>
#include <utility>

#include "objects/probes.h"
#include "objects/trials.h"
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

// A live event was given again. That is right if all events of a kind are one, which has no marks
// of its own; it is wrong if others have a handle of their own.
static void check_shared(TraceCall& call, graft_event handle, const EventRecord& event,
                         bool timed) {
  const auto& events = call.layer.ledger.events;
  const bool alone = std::none_of(events.begin(), events.end(), [&](const auto& row) {
    return row.first != handle && row.second.device == event.device &&
           (row.second.timed == timed || event.timed != timed);
  });
  if (alone) return;
  call.driver_broke("given-twice",
                    "gave an event that the caller still has, and other events are not shared",
                    "Give an event again only after its event_destroy.");
}

// The first event of a device: what marks say of copies in front of them shows in a trial, before
// the caller's own mark can be late for it.
static void check_first_event(TraceCall& call, graft_device handle) {
  const auto first = [](DeviceRecord& device) { return !std::exchange(device.tried_marks, true); };
  if (!may_try(call, handle, first)) return;
  note_trial(call, "event_query",
             {Culprit::kDriver, "early", "event_query()", try_marks(call.layer.driver(), handle),
              "Set the mark behind the stream's earlier commands."});
}

void EventAfter::event_create(TraceCall& call, graft_status status, graft_device device,
                              uint32_t timed, graft_event* out) {
  if (status != GRAFT_OK) return;
  {
    const std::lock_guard lock(call.layer.mutex);
    EventRecord& event = call.layer.ledger.events[*out];
    if (event.count != 0) check_shared(call, *out, event, timed != 0);
    event.device = device;
    event.timed = timed != 0;
    event.mark = {};
    ++event.count;
    call.layer.ledger.ended.erase(*out);
  }
  check_first_event(call, device);
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
  bool timed = false;
  {
    const std::lock_guard lock(call.layer.mutex);
    EventRecord* const event = lone_event(call, handle);
    if (event == nullptr) return;
    const StreamRecord& stream = *call.stream;
    event->mark = {.set = true,
                   .place = {stream.id, stream.queued},
                   .ticket = call.ticket,
                   .asked_ns = call.began_ns};
    timed = event->timed;
  }
  if (!timed) return;
  const uint32_t behind = queue_ticket(call);
  const std::lock_guard lock(call.layer.mutex);
  EventRecord* const event = lone_event(call, handle);
  if (event == nullptr) return;
  event->mark.ticket_behind = behind;
  call.layer.ledger.timed_marks.push_back(handle);
}

void EventBefore::event_query(TraceCall& call, graft_event handle) {
  check_event(call, handle);
  call.prompt = true;
}

// A wait for a mark that was never set or is passed returns at once.
void EventBefore::event_synchronize(TraceCall& call, graft_event handle) {
  const std::lock_guard lock(call.layer.mutex);
  if (find_event(call, handle) == nullptr) return;
  const EventRecord* const event = lone_event(call, handle);
  if (event == nullptr) return;
  call.prompt = !event->mark.set || event->mark.passed;
  call.awaited_stream = event->mark.place.stream;
  call.awaited_ticket = event->mark.ticket;
}

void EventBefore::event_synchronize_within(TraceCall& call, graft_event handle, uint64_t) {
  check_event(call, handle);
  call.began_ns = steady_ns();
}

// A slot has answered whether the event's mark is passed. began: the mark when it was asked cannot
// have changed since, or another thread records, whose call then decides.
static void answered(TraceCall& call, graft_status status, graft_event handle, Answer answer) {
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
    if (!mark.passed) note_done(call, *stream->second, mark.place.number, mark.ticket, answer);
    mark.passed = true;
  } else {
    StreamRecord& failed = *stream->second;
    const bool last = failed.queued == mark.place.number && failed.tickets == mark.ticket;
    if (last && !call.planted && status != GRAFT_DEVICE_LOST) check_error(call, failed);
    note_failed(call, failed, mark.place.number);
  }
}

void EventAfter::event_query(TraceCall& call, graft_status status, graft_event handle) {
  answered(call, status, handle, Answer::kDone);
  if (status != GRAFT_BUSY) return;
  uint64_t since = 0;
  {
    const std::lock_guard lock(call.layer.mutex);
    EventRecord* const event = lone_event(call, handle);
    if (event == nullptr) return;
    if (event->mark.busy_ns == 0) event->mark.busy_ns = steady_ns();
    since = event->mark.busy_ns;
  }
  check_sent(call, call.device, since);
}

void EventAfter::event_synchronize(TraceCall& call, graft_status status, graft_event handle) {
  answered(call, status, handle, Answer::kMarked);
}

void EventAfter::event_synchronize_within(TraceCall& call, graft_status status, graft_event handle,
                                          uint64_t timeout_ns) {
  if (status == GRAFT_OK || status == GRAFT_BUSY) check_in_time(call, timeout_ns);
  answered(call, status, handle, Answer::kMarked);
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

// Holds the time between two marks against the host's clock: start was set after
// event_record was called for it, and was known to be passed some time before end was recorded.
void EventAfter::event_elapsed(TraceCall& call, graft_status status, graft_event start,
                               graft_event end, int64_t* out_ns) {
  if (status != GRAFT_OK) return;
  const std::lock_guard lock(call.layer.mutex);
  const EventRecord* const first = lone_event(call, start);
  const EventRecord* const last = lone_event(call, end);
  if (first == nullptr || last == nullptr || !first->mark.set || !last->mark.set) return;
  const Mark &from = first->mark, &to = last->mark;
  for (const Mark* const mark : {&from, &to}) {
    const auto stream = call.layer.ledger.stream_ids.find(mark->place.stream);
    if (stream == call.layer.ledger.stream_ids.end() ||
        stream->second->done >= mark->place.number) {
      continue;
    }
    if (!has_arrived(*stream->second, mark->ticket)) {
      call.driver_broke("early", "gave a time although a mark is not passed", "Return BUSY.");
      return;
    }
  }
  if (to.asked_ns < from.asked_ns) return;
  constexpr int64_t kLeast = 2'000'000;  // shorter times say little
  const uint64_t now = steady_ns();
  const auto most = static_cast<int64_t>(now - from.asked_ns);
  // The marks of one stream are in order; of two, the first may be the one that is passed later.
  const bool ordered = from.place.stream == to.place.stream;
  const int64_t below = ordered ? 0 : 2 * static_cast<int64_t>(now - to.asked_ns);
  const bool passed = from.passed_ns != 0 && from.passed_ns < to.asked_ns;
  const auto least = passed ? static_cast<int64_t>(to.asked_ns - from.passed_ns) : 0;
  const bool short_time = least > kLeast && *out_ns < least / 4;
  if (*out_ns < -below - kLeast || *out_ns > 2 * most + kLeast || short_time) {
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

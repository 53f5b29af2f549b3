// drivers/trace/rules/stream.cpp: rules of streams and callbacks.
#include <algorithm>

#include "objects/landing.h"
#include "objects/probes.h"
#include "objects/trials.h"
#include "rules/checks.h"
#include "rules/extension.h"
#include "rules/hooks.h"

namespace graft::trace {

namespace {

// A caller's function, which shows that the commands before it have ended.
struct Callback {
  void (*function)(void* context);
  void* context;
  TraceLayer* layer;
  uint64_t stream, command;
  uint32_t ticket = 0;                  // before it
  std::atomic<uint32_t> ticket_behind;  // 0: none
  std::atomic<uint32_t> calls{0};
};

void report_callback(const Callback& callback, const char* rule, const char* text) {
  callback.layer->findings.add("host_callback",
                               {Culprit::kDriver, rule, "host_callback()", text,
                                "Call the function once, after the earlier commands and before "
                                "the later ones."});
}

// Where the callback is in its stream, by the tickets around it.
void check_place(const Callback& callback, const StreamRecord& stream, bool returned) {
  if (!returned && !has_arrived(stream, callback.ticket)) {
    report_callback(callback, "early", "the function was called before the earlier commands ran");
  }
  const uint32_t behind = callback.ticket_behind;
  if (returned && behind > stream.untrusted && has_arrived(stream, behind)) {
    report_callback(callback, "unordered", "later commands ran before the function had returned");
  }
}

void run_callback(void* context) {
  auto* const callback = static_cast<Callback*>(context);
  TraceLayer& layer = *callback->layer;
  if (callback->calls++ != 0) report_callback(*callback, "repeated", "called the function again");
  const auto with_stream = [&](const auto& f) {
    const std::lock_guard lock(layer.mutex);
    const auto stream = layer.ledger.stream_ids.find(callback->stream);
    if (stream != layer.ledger.stream_ids.end()) f(*stream->second);
  };
  with_stream([&](const StreamRecord& stream) { check_place(*callback, stream, false); });
  callback->function(callback->context);
  with_stream([&](StreamRecord& stream) {
    check_place(*callback, stream, true);
    ++stream.callbacks_done;
    layer.ledger.complete(stream, callback->command);
  });
}

}  // namespace

void StreamBefore::stream_create(TraceCall& call, graft_device handle, int32_t priority,
                                 graft_stream*) {
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(handle);
  if (device == call.layer.ledger.devices.end()) return;
  const graft_device_properties& properties = device->second.properties;
  if (priority > properties.priority_lowest || priority < properties.priority_highest) {
    call.caller_broke("priority", "the priority is outside of the device's range",
                      "Keep to priority_highest and priority_lowest.");
  }
}

static void add_stream(TraceCall& call, graft_device device, graft_stream handle, bool wrapped) {
  {
    const std::lock_guard lock(call.layer.mutex);
    ObjectLedger& ledger = call.layer.ledger;
    std::shared_ptr<StreamRecord>& stream = ledger.streams[handle];
    if (stream == nullptr) {
      stream = std::make_shared<StreamRecord>();
      stream->id = ledger.next_stream++;
      stream->handle = handle;
      stream->device = device;
      stream->wrapped = wrapped;
      ledger.stream_ids[stream->id] = stream;
    }
    ++stream->count;
    ledger.ended.erase(handle);
  }
  call.layer.held.forget(handle);
  prepare_tickets(call.layer, device, handle);
}

// A device got its second stream: whether two keep their copies apart shows in a trial.
static void check_second_stream(TraceCall& call, graft_device handle) {
  const auto second = [](DeviceRecord& device) { return ++device.streams_made == 2; };
  if (!may_try(call, handle, second)) return;
  note_trial(
      call, "copy",
      {Culprit::kDriver, "wrong-bytes", "copy()", try_two_streams(call.layer.driver(), handle),
       "Give each stream a staging buffer, or wait until one is free."});
}

void StreamAfter::stream_create(TraceCall& call, graft_status status, graft_device device, int32_t,
                                graft_stream* out) {
  if (status == GRAFT_INVALID_ARGUMENT && !call.broken_by_caller && !call.planted) {
    call.driver_broke("refused", "refused a priority of its range with INVALID_ARGUMENT",
                      "Accept every priority that the properties state.");
  }
  if (status != GRAFT_OK) return;
  add_stream(call, device, *out, false);
  check_second_stream(call, device);
}

void StreamAfter::stream_wrap(TraceCall& call, graft_status status, graft_device device, uint64_t,
                              graft_stream* out) {
  if (status == GRAFT_OK) add_stream(call, device, *out, true);
}

void StreamBefore::stream_destroy(TraceCall& call, graft_stream handle) {
  call.ticket = latest_ticket(call);
  if (call.stream == nullptr) return;
  const std::lock_guard lock(call.layer.mutex);
  ObjectLedger& ledger = call.layer.ledger;
  if (--call.stream->count != 0) return;
  // Gone before the driver ends it: another thread may get the handle at once.
  ledger.streams.erase(handle);
  ledger.ended.insert(handle);
}

void StreamAfter::stream_destroy(TraceCall& call, graft_status status, graft_stream handle) {
  if (call.stream == nullptr || call.stream->count != 0) return;
  const std::lock_guard lock(call.layer.mutex);
  StreamRecord& stream = *call.stream;
  const bool owes = call.layer.held.take(handle).status != GRAFT_OK;
  const bool landed = have_landed(stream, stream.queued);
  if (status == GRAFT_OK && !owes && (!landed || !has_arrived(stream, call.ticket))) {
    call.driver_broke("dropped", "the stream ended before its commands had run",
                      "Wait for the stream's commands, then destroy it.");
  }
  stream.suspicions.clear();
  call.layer.ledger.complete(stream, stream.queued);
  call.layer.ledger.stream_ids.erase(stream.id);
  const auto device = call.layer.ledger.devices.find(stream.device);
  if (device != call.layer.ledger.devices.end() && stream.has_native_handle) {
    device->second.native_handles.erase(stream.native_handle);
  }
}

// What must have happened when a wait for the whole stream says OK. REQUIRES: the mutex is held.
static void check_whole(TraceCall& call, StreamRecord& stream) {
  const bool shared = stream.count != 1 || stream.thread != calling_thread();
  if (!shared && stream.callbacks_done < stream.callbacks) {
    call.driver_broke("early", "OK before a function of host_callback had returned",
                      "Wait for every earlier command of the stream.");
    stream.callbacks_done = stream.callbacks.load();
  }
  if (!shared) check_records(call, stream);
}

// A wait for the whole stream has returned.
static void waited(TraceCall& call, graft_status status, Answer answer) {
  if (call.stream == nullptr || status == GRAFT_BUSY) return;
  const std::lock_guard lock(call.layer.mutex);
  StreamRecord& stream = *call.stream;
  if (status == GRAFT_OK && answer == Answer::kWhole) check_whole(call, stream);
  if (status == GRAFT_OK) return note_done(call, stream, stream.queued, call.ticket, answer);
  if (!call.planted && status != GRAFT_DEVICE_LOST) check_error(call, stream);
  note_failed(call, stream, stream.queued);
}

// The slot waits for what the stream has queued so far.
static void await_all(TraceCall& call) {
  call.ticket = latest_ticket(call);
  if (call.stream == nullptr || call.stream->ticketed != call.stream->queued) return;
  call.awaited_stream = call.stream->id;
  call.awaited_ticket = call.ticket;
}

void StreamBefore::stream_synchronize(TraceCall& call, graft_stream) { await_all(call); }

void StreamAfter::stream_synchronize(TraceCall& call, graft_status status, graft_stream) {
  waited(call, status, Answer::kWhole);
}

void StreamBefore::stream_synchronize_within(TraceCall& call, graft_stream, uint64_t) {
  await_all(call);
  call.began_ns = steady_ns();
}

void StreamAfter::stream_synchronize_within(TraceCall& call, graft_status status, graft_stream,
                                            uint64_t timeout_ns) {
  if (status == GRAFT_OK || status == GRAFT_BUSY) check_in_time(call, timeout_ns);
  waited(call, status, Answer::kWhole);
}

void StreamBefore::stream_query(TraceCall& call, graft_stream) { call.prompt = true; }

// Since when the queries of a stream, which got no command since, say BUSY; 0: they do not.
static uint64_t busy_since(TraceCall& call, graft_status status) {
  const std::lock_guard lock(call.layer.mutex);
  StreamRecord& stream = *call.stream;
  const bool goes_on = stream.busy_ns != 0 && stream.busy_queued == stream.queued;
  if (status != GRAFT_BUSY) return stream.busy_ns = 0;
  if (!goes_on) stream.busy_ns = steady_ns();
  stream.busy_queued = stream.queued;
  return stream.busy_ns;
}

void StreamAfter::stream_query(TraceCall& call, graft_status status, graft_stream) {
  if (call.stream == nullptr) return;
  if (status == GRAFT_BUSY && call.stream->queued == 0 && call.stream->tickets == 0) {
    call.driver_broke("busy-idle", "BUSY on a stream that never had a command",
                      "Return OK if the stream is idle.");
  }
  call.ticket = call.stream->tickets;
  waited(call, status, Answer::kDone);
  check_sent(call, call.device, busy_since(call, status));
}

// The command that failed may be one of a stream that this one waited for, or of a graph: their
// tags are kAnyTag.
void StreamAfter::stream_error(TraceCall& call, graft_status status, graft_stream,
                               uint32_t* out_tag, char*, size_t) {
  if (status != GRAFT_OK || call.stream == nullptr || *out_tag == 0) return;
  const std::lock_guard lock(call.layer.mutex);
  const std::vector<uint32_t>& tags = call.stream->failed_tags;
  const auto is_it = [&](uint32_t tag) { return tag == kAnyTag || tag == *out_tag; };
  if (tags.empty() || call.stream->count != 1 || std::any_of(tags.begin(), tags.end(), is_it)) {
    return;
  }
  call.driver_broke("other-tag",
                    "the tag " + std::to_string(*out_tag) +
                        " is of no command that this stream queued since it was known to be good",
                    "Report the tag of the command that failed.");
}

void StreamBefore::host_callback(TraceCall& call, graft_stream, void (*&function)(void* context),
                                 void*& context) {
  if (call.stream == nullptr) return;
  const auto callback = std::make_shared<Callback>();
  callback->function = function;
  callback->context = context;
  callback->layer = &call.layer;
  callback->stream = call.stream->id;
  callback->command = call.command;
  callback->ticket = latest_ticket(call);
  const std::lock_guard lock(call.layer.mutex);
  call.layer.ledger.lent.push_back(callback);
  call.stream->last_callback = call.command;
  call.witness = callback;
  context = callback.get();
  function = run_callback;
}

void StreamAfter::host_callback(TraceCall& call, graft_status status, graft_stream,
                                void (*)(void* context), void*) {
  if (status != GRAFT_OK || call.planted || call.witness == nullptr) return;
  ++call.stream->callbacks;
  static_cast<Callback*>(call.witness.get())->ticket_behind = queue_ticket(call);
}

void StreamAfter::stream_native_handle(TraceCall& call, graft_status status, graft_stream,
                                       uint64_t* out_handle) {
  if (status != GRAFT_OK || call.stream == nullptr || call.stream->count != 1) return;
  if (call.stream->wrapped) return;
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(call.stream->device);
  if (device == call.layer.ledger.devices.end()) return;
  const auto [found, fresh] =
      device->second.native_handles.emplace(*out_handle, call.stream_handle);
  if (call.stream->has_native_handle && call.stream->native_handle != *out_handle) {
    call.driver_broke("changed", "the stream's native handle is another one than before",
                      "Keep one queue for the life of a stream.");
  }
  if (!fresh && found->second != call.stream_handle) {
    call.driver_broke("one-handle", "two live streams have one native handle",
                      "Give each stream the handle of its queue.");
  }
  call.stream->native_handle = *out_handle;
  call.stream->has_native_handle = true;
}

}  // namespace graft::trace

// drivers/trace/rules/stream.cpp: rules of streams, copies, fills and callbacks.
#include <chrono>
#include <thread>

#include "objects/guard.h"
#include "objects/probes.h"
#include "objects/witness.h"
#include "rules/checks.h"
#include "rules/hooks.h"

namespace graft::trace {

namespace {

constexpr uint64_t kPatience = 250'000'000;  // how much later than its timeout a wait may return

bool is_range(uint64_t bytes) { return bytes != 0; }

// A caller's function, which shows that the commands before it have ended.
struct Callback {
  void (*function)(void* context);
  void* context;
  TraceLayer* layer;
  uint64_t stream, command;
};

void run_callback(void* context) {
  const auto* const callback = static_cast<const Callback*>(context);
  callback->function(callback->context);
  const std::lock_guard lock(callback->layer->mutex);
  const auto stream = callback->layer->ledger.stream_ids.find(callback->stream);
  if (stream != callback->layer->ledger.stream_ids.end()) {
    callback->layer->ledger.complete(*stream->second, callback->command);
  }
}

void use_host(TraceCall& call, uint64_t pointer) {
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(call.device);
  if (device == call.layer.ledger.devices.end() || call.command == 0) return;
  const auto block = device->second.host.find(pointer);
  if (block != device->second.host.end()) {
    call.layer.ledger.use(block->second.uses, {call.stream->id, call.command});
  }
}

// Whether the machine lets a thread sleep much longer than it asked for.
bool is_crowded() {
  constexpr uint64_t kNap = 2'000'000;
  for (int i = 0; i < 3; ++i) {
    const uint64_t begin = steady_ns();
    std::this_thread::sleep_for(std::chrono::nanoseconds(kNap));
    if (steady_ns() - begin > 5 * kNap) return true;
  }
  return false;
}

void check_in_time(TraceCall& call, graft_status status, uint64_t timeout_ns) {
  if (timeout_ns > UINT64_MAX / 4 || status == GRAFT_OK) return;
  const uint64_t took = steady_ns() - call.began_ns;
  if (took < timeout_ns + std::max(kPatience, timeout_ns) || is_crowded()) return;
  call.driver_broke(
      "overdue",
      "returned " + std::to_string((took - timeout_ns) / 1'000'000) + " ms after its timeout",
      "Return BUSY when timeout_ns has passed.");
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

void StreamAfter::stream_create(TraceCall& call, graft_status status, graft_device device, int32_t,
                                graft_stream* out) {
  if (status == GRAFT_INVALID_ARGUMENT && !call.broken_by_caller && !call.planted) {
    call.driver_broke("refused", "refused a priority of its range with INVALID_ARGUMENT",
                      "Accept every priority that the properties state.");
  }
  if (status == GRAFT_OK) add_stream(call, device, *out, false);
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
  if (status == GRAFT_OK && !owes && !has_arrived(stream, call.ticket)) {
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

// A wait for the whole stream has returned.
static void waited(TraceCall& call, graft_status status, bool certain) {
  if (call.stream == nullptr || status == GRAFT_BUSY) return;
  const std::lock_guard lock(call.layer.mutex);
  StreamRecord& stream = *call.stream;
  if (status != GRAFT_OK) return note_failed(call, stream, stream.queued);
  note_done(call, stream, stream.queued, call.ticket, certain);
}

void StreamBefore::stream_synchronize(TraceCall& call, graft_stream) {
  call.ticket = latest_ticket(call);
}

void StreamAfter::stream_synchronize(TraceCall& call, graft_status status, graft_stream) {
  waited(call, status, true);
}

void StreamBefore::stream_synchronize_within(TraceCall& call, graft_stream, uint64_t) {
  call.ticket = latest_ticket(call);
  call.began_ns = steady_ns();
}

void StreamAfter::stream_synchronize_within(TraceCall& call, graft_status status, graft_stream,
                                            uint64_t timeout_ns) {
  check_in_time(call, status == GRAFT_OK ? GRAFT_BUSY : status, timeout_ns);
  waited(call, status, true);
}

void StreamAfter::stream_query(TraceCall& call, graft_status status, graft_stream) {
  if (call.stream == nullptr) return;
  if (status == GRAFT_BUSY && call.stream->queued == 0 && call.stream->tickets == 0) {
    call.driver_broke("busy-idle", "BUSY on a stream that never had a command",
                      "Return OK if the stream is idle.");
  }
  call.ticket = call.stream->tickets;
  waited(call, status, false);
}

void StreamBefore::copy(TraceCall& call, graft_stream, uint64_t to, uint64_t from, uint64_t bytes,
                        uint32_t kind, uint32_t) {
  if (kind > GRAFT_DEVICE_TO_DEVICE) {
    call.caller_broke("copy-kind", "the kind is unknown", "Use a graft_copy_kind.");
    return;
  }
  if (!is_range(bytes)) return;
  if (kind != GRAFT_HOST_TO_DEVICE) use_range(call, call.device, from, bytes, "from");
  if (kind != GRAFT_DEVICE_TO_HOST) use_range(call, call.device, to, bytes, "to");
  const uint64_t host = kind == GRAFT_HOST_TO_DEVICE ? from : to;
  if (kind == GRAFT_DEVICE_TO_DEVICE) {
    if (to < from + bytes && from < to + bytes) {
      call.caller_broke("overlapping-copy", "the two ranges overlap", "Copy by way of a buffer.");
    }
  } else if (host == 0) {
    call.caller_broke("null-host", "the host's memory is at 0", "Give a pointer.");
  } else {
    use_host(call, host);
  }
  if (!call.broken_by_caller && call.layer.faults.draw(call.layer.settings.verify)) {
    call.kept.push_back(
        std::make_shared<CopyWitness>(call, to, from, bytes, kind, std::vector<uint8_t>()));
  }
}

// What the driver may not refuse: a command whose arguments keep to the rules.
static void check_refused(TraceCall& call, graft_status status) {
  if (status != GRAFT_INVALID_ARGUMENT || call.broken_by_caller || call.planted) return;
  if (call.stream == nullptr) return;
  call.driver_broke("refused", "refused arguments that keep to the rules with INVALID_ARGUMENT",
                    "Accept every address inside an allocation, and every size.");
}

static void compare_witness(TraceCall& call, graft_status status) {
  if (status != GRAFT_OK || call.kept.empty()) return;
  call.stream->queued = call.command;
  call.kept.resize(1);  // closes the pattern's page: what the driver reads from here on is too late
  std::static_pointer_cast<CopyWitness>(call.kept.front())->compare(call);
}

void StreamAfter::copy(TraceCall& call, graft_status status, graft_stream, uint64_t, uint64_t,
                       uint64_t, uint32_t, uint32_t) {
  check_refused(call, status);
  compare_witness(call, status);
}

// Bytes from the first byte of a copy of rows to the end of its last one.
static uint64_t extent(const graft_strided_copy& copy, const uint64_t (&strides)[3]) {
  uint64_t bytes = copy.row_bytes;
  for (size_t i = 0; i < 3; ++i) bytes += (copy.counts[i] - 1) * strides[i];
  return bytes;
}

void StreamBefore::copy_strided(TraceCall& call, graft_stream, const graft_strided_copy*& copy,
                                uint32_t) {
  if (copy->kind > GRAFT_DEVICE_TO_DEVICE) {
    call.caller_broke("copy-kind", "the kind is unknown", "Use a graft_copy_kind.");
    return;
  }
  if (copy->row_bytes == 0 || copy->counts[0] == 0 || copy->counts[1] == 0 ||
      copy->counts[2] == 0) {
    call.caller_broke("no-bytes", "copies no rows", "Copy at least one byte of one row.");
    return;
  }
  const uint64_t from = extent(*copy, copy->from_strides), to = extent(*copy, copy->to_strides);
  if (copy->kind != GRAFT_HOST_TO_DEVICE) use_range(call, call.device, copy->from, from, "from");
  if (copy->kind != GRAFT_DEVICE_TO_HOST) use_range(call, call.device, copy->to, to, "to");
  if (copy->kind == GRAFT_DEVICE_TO_DEVICE) return;
  const uint64_t host = copy->kind == GRAFT_HOST_TO_DEVICE ? copy->from : copy->to;
  if (host == 0)
    return call.caller_broke("null-host", "the host's memory is at 0", "Give a pointer.");
  use_host(call, host);
}

void StreamBefore::fill(TraceCall& call, graft_stream, graft_address to, uint64_t bytes,
                        const void*& pattern, uint32_t pattern_bytes, uint32_t) {
  const bool known =
      pattern_bytes <= 16 && pattern_bytes != 0 && (pattern_bytes & (pattern_bytes - 1)) == 0;
  if (!known) {
    call.caller_broke("pattern-bytes", "the pattern's size is none of 1, 2, 4, 8 and 16",
                      "Use one of these.");
    return;
  }
  if (!is_range(bytes)) return;
  use_range(call, call.device, to, bytes, "to");
  if (call.broken_by_caller || !call.layer.faults.draw(call.layer.settings.verify)) return;
  const auto* const first = static_cast<const uint8_t*>(pattern);
  call.kept.push_back(
      std::make_shared<CopyWitness>(call, to, 0, bytes, GRAFT_HOST_TO_DEVICE,
                                    std::vector<uint8_t>(first, first + pattern_bytes)));
  pattern = guarded_bytes(call, pattern, pattern_bytes);
}

void StreamAfter::fill(TraceCall& call, graft_status status, graft_stream, graft_address, uint64_t,
                       const void*, uint32_t, uint32_t) {
  check_refused(call, status);
  compare_witness(call, status);
}

void StreamBefore::peer_copy(TraceCall& call, graft_stream, graft_address to,
                             graft_device from_device, graft_address from, uint64_t bytes,
                             uint32_t) {
  if (!is_range(bytes)) return;
  use_range(call, call.device, to, bytes, "to");
  use_range(call, from_device, from, bytes, "from");
}

void StreamBefore::host_callback(TraceCall& call, graft_stream, void (*&function)(void* context),
                                 void*& context) {
  if (call.stream == nullptr) return;
  const auto callback = std::make_shared<Callback>(
      Callback{function, context, &call.layer, call.stream->id, call.command});
  const std::lock_guard lock(call.layer.mutex);
  call.layer.ledger.lent.push_back(callback);
  context = callback.get();
  function = run_callback;
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
  if (!fresh && found->second != call.stream_handle) {
    call.driver_broke("one-handle", "two live streams have one native handle",
                      "Give each stream the handle of its queue.");
  }
  call.stream->native_handle = *out_handle;
  call.stream->has_native_handle = true;
}

}  // namespace graft::trace

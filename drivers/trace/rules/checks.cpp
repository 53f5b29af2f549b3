// drivers/trace/rules/checks.cpp: what the rules of several slots share.
#include "rules/checks.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <string_view>
#include <thread>
#include <utility>

#include "call/active_calls.h"
#include "objects/launch_probe.h"
#include "objects/probes.h"
#include "objects/trials.h"
#include "rules/extension.h"

namespace graft::trace {
namespace {

bool any_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// What a slot may say with this status, by the contracts of the headers.
bool may_return(std::string_view slot, graft_status status) {
  switch (status) {
    case GRAFT_BUSY:
      return any_of(slot, {"event_query", "stream_query", "event_elapsed", "trace_start",
                           "stream_synchronize_within", "event_synchronize_within"});
    case GRAFT_COMPILE_ERROR:
      return slot.starts_with("program_") || slot.starts_with("graph_") ||
             slot.starts_with("executable_") || slot.ends_with("_plan") || slot == "kernel_find";
    case GRAFT_NOT_FOUND:
      return any_of(slot, {"device_properties", "device_open", "extension", "kernel_find",
                           "memory_import", "device_sensor", "program_load", "executable_load",
                           "device_identity", "device_link", "device_reset"});
    case GRAFT_UNSUPPORTED:
      return !any_of(
          slot, {"device_count", "device_properties", "device_close", "memory_free",
                 "stream_destroy", "stream_synchronize", "event_destroy", "event_record",
                 "event_query", "copy", "plan_destroy", "graph_destroy", "group_destroy",
                 "executable_destroy", "operation_execute", "memory_unmap", "memory_unreserve"});
    case GRAFT_VERSION_MISMATCH:
      return false;
    default:
      return status >= GRAFT_OK && status <= GRAFT_INTERNAL;
  }
}

// A status that is an answer, which needs no text.
bool is_answer(std::string_view slot, graft_status status) {
  return status == GRAFT_BUSY || status == GRAFT_UNSUPPORTED || status == GRAFT_NOT_FOUND ||
         any_of(slot, {"last_message", "stream_error"});
}

}  // namespace

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%" PRIx64, value);
  return text;
}

void enter_device(TraceCall& call, graft_device handle) {
  const std::lock_guard lock(call.layer.mutex);
  const auto found = call.layer.ledger.devices.find(handle);
  call.device = handle;
  call.has_device = found != call.layer.ledger.devices.end();
  if (!call.has_device) {
    call.caller_broke("closed-device", "the device is not open",
                      "Use a device between device_open and device_close.");
    return;
  }
  call.device_was_lost = found->second.lost;
}

void enter_stream(TraceCall& call, graft_stream handle, bool queues) {
  const std::lock_guard lock(call.layer.mutex);
  ObjectLedger& ledger = call.layer.ledger;
  call.stream_handle = handle;
  const auto found = ledger.streams.find(handle);
  if (found == ledger.streams.end()) {
    call.caller_broke("dead-stream", std::string("the stream ") + ledger.fate_of(handle),
                      "Use a stream between stream_create and stream_destroy.");
    return;
  }
  call.stream = found->second;
  StreamRecord& stream = *call.stream;
  const auto device = ledger.devices.find(stream.device);
  call.device = stream.device;
  call.has_device = device != ledger.devices.end();
  if (call.has_device) call.device_was_lost = device->second.lost;
  if (queues) call.command = stream.queued + 1;
  if (stream.count != 1) return;
  if (stream.inside != 0 && stream.inside != calling_thread()) {
    call.caller_broke(
        "two-threads",
        "thread " + std::to_string(stream.inside) + " is inside another slot on this stream",
        "Serialise the calls on one stream.");
  } else {
    stream.inside = calling_thread();
  }
}

// Notes the command's tag; of the last thousand commands that wait for a verdict.
static void note_tag(TraceCall& call) {
  constexpr size_t kMost = 1000;
  std::deque<CommandTag>& tags = call.stream->tags;
  const std::string_view slot = call.table.slots[call.slot].name;
  const bool own = &call.table == &table_facts<graft_driver_table> || slot.ends_with("_execute");
  const bool any = !own || slot == "stream_wait_event";
  tags.push_back({call.command, any ? kAnyTag : call.tag});
  if (tags.size() <= kMost) return;
  tags.pop_front();
  tags.front().tag = kAnyTag;
}

// Notes whether the call's command was queued.
static void note_command(TraceCall& call, graft_status status) {
  const std::lock_guard lock(call.layer.mutex);
  ObjectLedger& ledger = call.layer.ledger;
  const auto device = ledger.devices.find(call.stream->device);
  if (device == ledger.devices.end()) return;
  if (status == GRAFT_OK) {
    call.stream->queued = call.command;
    call.stream->thread = calling_thread();
    note_tag(call);
    ++device->second.commands;
    if (device->second.traced) expect_record(call);
    return;
  }
  const auto forget = [&](std::vector<CommandPlace>& uses) {
    std::erase_if(uses, [&](const CommandPlace& place) {
      return place.stream == call.stream->id && place.number == call.command;
    });
  };
  for (const graft_address address : call.touched) {
    graft_address begin = 0;
    Allocation* const used = ObjectLedger::around(device->second, address, &begin);
    if (used != nullptr) forget(used->uses);
  }
  const auto block = device->second.host.find(call.touched_host);
  if (block != device->second.host.end()) forget(block->second.uses);
}

void leave_stream(TraceCall& call, graft_status status) {
  if (call.stream == nullptr) return;
  if (call.command != 0) {
    note_command(call, status);
    if (status == GRAFT_OK) queue_between(call);
  }
  const std::lock_guard lock(call.layer.mutex);
  if (call.stream->inside == calling_thread()) call.stream->inside = 0;
}

void use_range(TraceCall& call, graft_device handle, graft_address address, uint64_t bytes,
               const char* name) {
  const std::lock_guard lock(call.layer.mutex);
  ObjectLedger& ledger = call.layer.ledger;
  const auto device = ledger.devices.find(handle);
  if (device == ledger.devices.end()) return;
  graft_address begin = 0;
  Allocation* const around = ObjectLedger::around(device->second, address, &begin);
  const std::string range =
      std::string(name) + " " + hex(address) + " of " + std::to_string(bytes) + " bytes";
  if (around == nullptr) {
    call.caller_broke("no-memory", range + " is in no allocation of the stream's device",
                      "Use addresses inside live allocations.");
    return;
  }
  if (!around->imported && bytes > around->bytes - (address - begin)) {
    call.caller_broke("past-end",
                      range + " ends past the allocation at " + hex(begin) + " of " +
                          std::to_string(around->bytes) + " bytes",
                      "Keep each range inside one allocation.");
    return;
  }
  if (call.command == 0) return;
  ledger.use(around->uses, {call.stream->id, call.command});
  call.touched.push_back(address);
}

void check_other(TraceCall& call, const void* handle, const char* what) {
  const std::lock_guard lock(call.layer.mutex);
  if (call.layer.ledger.others.contains(handle)) return;
  call.caller_broke("dead-handle",
                    std::string("the ") + what + " " + call.layer.ledger.fate_of(handle),
                    "Use a handle between its creation and its end.");
}

void add_other(TraceCall& call, const void* handle, const char* what, uint64_t workspace_bytes) {
  if (handle == nullptr) {
    call.driver_broke("null-result", std::string("OK without a ") + what, "Return a handle.");
  }
  const std::lock_guard lock(call.layer.mutex);
  OtherRecord& record = call.layer.ledger.others[handle];
  record.device = call.device;
  record.workspace_bytes = std::max(record.workspace_bytes, workspace_bytes);
  ++record.count;
  call.layer.ledger.ended.erase(handle);
}

void remove_other(TraceCall& call, const void* handle, const char* what) {
  check_other(call, handle, what);
  const std::lock_guard lock(call.layer.mutex);
  const auto found = call.layer.ledger.others.find(handle);
  if (found == call.layer.ledger.others.end() || --found->second.count != 0) return;
  call.layer.ledger.others.erase(found);
  call.layer.ledger.ended.insert(handle);
}

uint64_t workspace_of(TraceCall& call, const void* plan) {
  const std::lock_guard lock(call.layer.mutex);
  const auto found = call.layer.ledger.others.find(plan);
  return found == call.layer.ledger.others.end() ? 0 : found->second.workspace_bytes;
}

void use_execution(TraceCall& call, graft_plan plan, const graft_execution* execution) {
  check_other(call, plan, "plan");
  for (const graft_address address : execution->tensors) {
    if (address != 0) use_range(call, call.device, address, 0, "tensor");
  }
  for (const graft_address address : execution->operands) {
    if (address != 0) use_range(call, call.device, address, 0, "operand");
  }
  const uint64_t workspace = workspace_of(call, plan);
  if (workspace == 0) return;
  use_range(call, call.device, execution->workspace, workspace, "workspace");
}

static void check_shape(TraceCall& call, const graft_launch* launch,
                        const graft_device_properties& properties) {
  const uint64_t group = uint64_t{launch->group[0]} * launch->group[1] * launch->group[2];
  const bool alone = properties.device_class == GRAFT_CPU_LIKE;
  const uint64_t most = alone ? 1 : std::max(properties.max_group_size, 1u);
  if (group == 0 || group > most) {
    call.caller_broke("group-size",
                      "groups of " + std::to_string(group) + " work-items; the device runs " +
                          std::to_string(most),
                      "Keep to max_group_size.");
  }
  if (launch->grid[0] == 0 || launch->grid[1] == 0 || launch->grid[2] == 0) {
    call.caller_broke("empty-grid", "the grid has no groups", "Launch at least one group.");
  }
  if (properties.max_arguments != 0 && launch->argument_count > properties.max_arguments) {
    call.caller_broke("many-arguments",
                      std::to_string(launch->argument_count) + " arguments; the device takes " +
                          std::to_string(properties.max_arguments),
                      "Keep to max_arguments.");
  }
}

void check_launch(TraceCall& call, const graft_launch* launch) {
  graft_device_properties properties{};
  {
    const std::lock_guard lock(call.layer.mutex);
    const auto device = call.layer.ledger.devices.find(call.device);
    if (device == call.layer.ledger.devices.end()) return;
    properties = device->second.properties;
  }
  check_shape(call, launch, properties);
  uint64_t local = 0;
  for (uint32_t i = 0; i < launch->argument_count; ++i) {
    const graft_argument& one = launch->arguments[i];
    const bool known = one.kind <= GRAFT_ARGUMENT_LOCAL;
    if (!known || (one.kind == GRAFT_ARGUMENT_SCALAR && one.dtype > GRAFT_COMPLEX128)) {
      call.caller_broke("argument-kind",
                        "argument " + std::to_string(i) + " is of no kind or dtype",
                        "Use the kinds and dtypes of driver.h.");
    } else if (one.kind == GRAFT_ARGUMENT_LOCAL) {
      local += one.bytes;
    } else if (one.kind == GRAFT_ARGUMENT_ADDRESS && one.bytes != 0) {
      use_range(call, call.device, one.value, one.bytes, "argument");
    }
  }
  if (local > properties.local_memory_bytes) {
    call.caller_broke("local-memory", std::to_string(local) + " bytes of local memory",
                      "Keep to local_memory_bytes.");
  }
}

bool machine_is_crowded() {
  constexpr uint64_t kNap = 2'000'000;
  for (int i = 0; i < 3; ++i) {
    const uint64_t begin = steady_ns();
    std::this_thread::sleep_for(std::chrono::nanoseconds(kNap));
    if (steady_ns() - begin > 5 * kNap) return true;
  }
  return false;
}

void check_prompt(TraceCall& call) {
  constexpr uint64_t kPatience = 8;  // ticks
  if (!call.prompt || call.ticks_inside < kPatience || machine_is_crowded()) return;
  call.driver_broke("blocks",
                    "took " + std::to_string(call.ticks_inside * kTickNs / 1'000'000) +
                        " ms, and there was nothing to wait for",
                    "Answer from what is known; let no lock be held while a thread waits.");
}

void check_in_time(TraceCall& call, uint64_t timeout_ns) {
  constexpr uint64_t kPatience = 250'000'000;
  if (timeout_ns > UINT64_MAX / 4) return;
  const uint64_t took = steady_ns() - call.began_ns;
  if (took < timeout_ns + std::max(kPatience, timeout_ns) || machine_is_crowded()) return;
  call.driver_broke(
      "overdue",
      "returned " + std::to_string((took - timeout_ns) / 1'000'000) + " ms after its timeout",
      "Return BUSY when timeout_ns has passed.");
}

bool may_try(TraceCall& call, graft_device handle,
             const std::function<bool(DeviceRecord& device)>& first) {
  if (!call.layer.settings.probe) return false;
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(handle);
  return device != call.layer.ledger.devices.end() && first(device->second);
}

void note_trial(TraceCall& call, const char* slot, const Finding& found) {
  call.layer.forget_failure();
  if (!found.text.empty()) call.layer.findings.add(slot, found);
}

void check_sent(TraceCall& call, graft_device handle, uint64_t busy_ns) {
  constexpr uint64_t kPatience = 500'000'000;
  if (busy_ns == 0 || steady_ns() - busy_ns < kPatience) return;
  const auto first = [](DeviceRecord& device) {
    return !std::exchange(device.tried_queries, true);
  };
  if (!may_try(call, handle, first)) return;
  note_trial(call, "event_query",
             {Culprit::kDriver, "never-sent", "event_query()",
              try_queries(call.layer.driver(), handle, probe_kernel(call)),
              "Let repeated queries alone send and finish what is queued."});
}

void check_status(TraceCall& call, graft_status status, const std::string& text) {
  const char* const slot = call.table.slots[call.slot].name;
  if (!may_return(slot, status)) {
    call.driver_broke("wrong-status",
                      "returned " + status_text(status) + ", which this slot may not return",
                      "Return a status of driver.h that the slot's contract allows.");
  }
  if (status == GRAFT_OK) {
    if (call.device_was_lost &&
        any_of(slot, {"copy", "fill", "kernel_launch", "stream_synchronize", "memory_allocate"})) {
      call.driver_broke("not-lost", "returned OK after the device was lost",
                        "Return DEVICE_LOST from every later call.");
    }
    return;
  }
  if (text.empty() && call.layer.driver().last_message != nullptr && !is_answer(slot, status)) {
    call.driver_broke("no-text",
                      "failed with " + status_text(status) + " and an empty last_message",
                      "Say what was given, what was expected and what to do.");
  }
  if (status != GRAFT_DEVICE_LOST || !call.has_device) return;
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(call.device);
  if (device != call.layer.ledger.devices.end()) device->second.lost = true;
}

}  // namespace graft::trace

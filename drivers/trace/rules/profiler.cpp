// drivers/trace/rules/profiler.cpp: rules of graft.profiler: which commands it tells of.
#include <algorithm>
#include <string_view>

#include "rules/checks.h"
#include "rules/extension.h"

namespace graft::trace {
namespace {

struct Trace {
  TraceLayer* layer;
  graft_emit_trace emit;
  void* context;
};

void count_records(void* context, const graft_trace_event* events, uint64_t count) {
  const auto* const trace = static_cast<const Trace*>(context);
  {
    const std::lock_guard lock(trace->layer->mutex);
    auto& streams = trace->layer->ledger.streams;
    const char* at = reinterpret_cast<const char*>(events);
    for (uint64_t i = 0; i < count; ++i) {
      const auto* const event = reinterpret_cast<const graft_trace_event*>(at);
      const auto stream = streams.find(event->stream);
      if (event->tag != 0 && stream != streams.end()) ++stream->second->records_told;
      at += event->struct_size;
    }
  }
  trace->emit(trace->context, events, count);
}

constexpr std::string_view kToldOf[] = {"copy",          "fill",         "copy_strided",
                                        "kernel_launch", "plan_execute", "operation_execute"};

}  // namespace

void Before<graft_profiler_table>::trace_start(TraceCall& call, graft_device,
                                               graft_emit_trace& emit, void*& context) {
  const auto trace = std::make_shared<Trace>(Trace{&call.layer, emit, context});
  const std::lock_guard lock(call.layer.mutex);
  call.layer.ledger.lent.push_back(trace);
  emit = count_records;
  context = trace.get();
}

void After<graft_profiler_table>::trace_start(TraceCall& call, graft_status status,
                                              graft_device handle, graft_emit_trace, void*) {
  if (status != GRAFT_OK) return;
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(handle);
  if (device == call.layer.ledger.devices.end()) return;
  device->second.traced = true;
  for (const auto& [id, stream] : call.layer.ledger.stream_ids) {
    if (stream->device == handle) stream->records_due = stream->records_told = 0;
  }
}

void After<graft_profiler_table>::trace_stop(TraceCall& call, graft_status, graft_device handle) {
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(handle);
  if (device != call.layer.ledger.devices.end()) device->second.traced = false;
}

void expect_record(TraceCall& call) {
  const std::string_view slot = call.table.slots[call.slot].name;
  const bool told = std::find(std::begin(kToldOf), std::end(kToldOf), slot) != std::end(kToldOf);
  const bool empty = call.touched.empty();  // a command without bytes may do nothing
  if (told && !empty && call.tag != 0 && !call.planted) ++call.stream->records_due;
}

void check_records(TraceCall& call, StreamRecord& stream) {
  const auto device = call.layer.ledger.devices.find(stream.device);
  if (device == call.layer.ledger.devices.end() || !device->second.traced) return;
  if (stream.records_told >= stream.records_due) return;
  call.driver_broke("lost-record",
                    "the profiler has told of " + std::to_string(stream.records_told) +
                        " commands of the stream, which has run " +
                        std::to_string(stream.records_due),
                    "Report every finished command before stream_synchronize returns.");
  stream.records_told = stream.records_due;
}

}  // namespace graft::trace

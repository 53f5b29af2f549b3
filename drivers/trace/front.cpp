// drivers/trace/front.cpp: puts the layer in front of a driver that a program loads.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "call/active_calls.h"
#include "graft/driver_trace.h"
#include "slots.h"

namespace {

void write_text(const std::string& text, char* out_text, size_t capacity) {
  if (out_text == nullptr || capacity == 0) return;
  out_text[text.copy(out_text, capacity - 1)] = '\0';
}

// The driver's slots that both sides know; null behind them.
graft_driver_table known_slots(const graft_driver_table& given) {
  graft_driver_table known{};
  const size_t slots =
      given.slot_count < GRAFT_SLOT_COUNT ? given.slot_count : size_t{GRAFT_SLOT_COUNT};
  std::memcpy(&known, &given, GRAFT_TABLE_PRELUDE_BYTES + slots * sizeof(void*));
  return known;
}

// Whether Graft can use the table at all. If not it comes back as it is, for Graft's own words.
bool is_usable(const graft_driver_table& table) {
  return table.abi_major == GRAFT_ABI_MAJOR && table.slot_count <= GRAFT_SLOT_COUNT &&
         table.name != nullptr && ::strnlen(table.name, 33) <= 32;
}

std::string open_results(graft::trace::TraceLayer& layer) {
  layer.ledger.tell = [&layer](const graft::trace::Result& one) {
    const uint64_t hash = graft::trace::hash_of_memory(one.to, one.bytes);
    layer.results.write(one.key, one.bytes, hash, one.command);
  };
  return layer.results.open(layer.settings.results, layer.name);
}

}  // namespace

graft_status graft_trace_front(graft_driver_query_function behind, const char* settings,
                               graft_driver_table* table, char* out_text, size_t capacity) {
  graft::trace::TraceSettings read;
  std::string flaw = graft::trace::parse_settings(settings, &read);
  if (!flaw.empty()) {
    write_text(flaw, out_text, capacity);
    return GRAFT_INVALID_ARGUMENT;
  }
  const graft_status status = behind(table);
  if (status != GRAFT_OK || !is_usable(*table)) return status;
  auto layer = std::make_unique<graft::trace::TraceLayer>(read, known_slots(*table));
  flaw = layer->findings.open(read.report, layer->name);
  if (flaw.empty() && !read.log.empty()) flaw = layer->log.open(read.log, layer->name);
  if (flaw.empty() && !read.results.empty()) flaw = open_results(*layer);
  if (!flaw.empty()) {
    write_text("GRAFT_DRIVER_TRACE: " + flaw, out_text, capacity);
    return GRAFT_INVALID_ARGUMENT;
  }
  if (read.rules) {
    graft::trace::watch_crashes(reinterpret_cast<const void*>(table->device_count));
  }
  if (!graft::trace::put_in_front(layer.get(), table)) {
    write_text("graft-driver-trace: the process has too many drivers", out_text, capacity);
    return GRAFT_INVALID_ARGUMENT;
  }
  static const int registered = std::atexit(graft::trace::finish_layers);
  (void)registered;
  static_cast<void>(layer.release());  // lives as long as the process
  return GRAFT_OK;
}

uint64_t graft_trace_findings(uint32_t culprit, char* out_text, size_t capacity) {
  uint64_t count = 0;
  std::string first;
  const auto side = static_cast<graft::trace::Culprit>(culprit);
  for (size_t place = 0; graft::trace::layer_at(place) != nullptr; ++place) {
    const graft::trace::TraceLayer& layer = *graft::trace::layer_at(place);
    if (first.empty()) first = layer.findings.first(side);
    count += layer.findings.count(side);
  }
  write_text(first, out_text, capacity);
  return count;
}

void graft_trace_finish() { graft::trace::finish_layers(); }

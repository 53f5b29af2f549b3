// src/runtime/driver/op_trace.cpp: where an op was called from, for messages of late errors.
#include "runtime/driver/op_trace.h"

#include <array>
#include <mutex>
#include <utility>

namespace graft {
namespace {

// A traced tag: the highest bit, the op's tag, and the number of the call.
constexpr uint32_t kTraced = 1u << 31;
constexpr uint32_t kNumberBits = 19;
static_assert(kTagNumbers == 1u << kNumberBits);
constexpr uint32_t kBases = kTraced >> kNumberBits;
constexpr uint32_t kKept = 4096;

struct Traces {
  std::mutex mutex;
  uint32_t next = 0;
  std::array<std::pair<uint32_t, std::string>, kKept> last;  // by number; the tag, the text
};

Traces& traces() {
  static Traces* const the_traces = new Traces();  // threads may fail during exit
  return *the_traces;
}

// REQUIRES: the lock is held.
uint32_t numbered(Traces& all, uint32_t base, std::string text) {
  const uint32_t number = all.next++ % kTagNumbers;
  const uint32_t tag = kTraced | base << kNumberBits | number;
  all.last[number % kKept] = {tag, std::move(text)};
  return tag;
}

}  // namespace

std::atomic<TraceSource> op_trace_state::source{nullptr};

void trace_ops(TraceSource source) { op_trace_state::source.store(source); }

uint32_t traced_tag(uint32_t base) {
  const TraceSource source = op_trace_state::source.load();
  if (source == nullptr || base == 0 || base >= kBases) return base;
  std::string text = source();
  Traces& all = traces();
  std::lock_guard<std::mutex> lock(all.mutex);
  return numbered(all, base, std::move(text));
}

uint32_t command_tag(uint32_t tag) {
  const uint32_t base = base_tag(tag);
  if (base >= kBases) return tag;
  Traces& all = traces();
  std::lock_guard<std::mutex> lock(all.mutex);
  const auto& [kept, text] = all.last[tag % kKept];
  return numbered(all, base, (tag & kTraced) != 0 && kept == tag ? text : std::string());
}

uint32_t tag_number(uint32_t tag) noexcept {
  return (tag & kTraced) == 0 ? kTagNumbers : tag % kTagNumbers;
}

uint32_t base_tag(uint32_t tag) noexcept {
  return (tag & kTraced) == 0 ? tag : (tag & ~kTraced) >> kNumberBits;
}

std::string op_trace(uint32_t tag) {
  if ((tag & kTraced) == 0) return {};
  Traces& all = traces();
  std::lock_guard<std::mutex> lock(all.mutex);
  const auto& [kept, text] = all.last[tag % kKept];
  return kept == tag ? text : std::string();
}

std::string op_trace_note(uint32_t tag) {
  const std::string text = op_trace(tag);
  return text.empty() ? text : "\nIt was called here (GRAFT_TRACE=1):\n" + text;
}

}  // namespace graft

// src/runtime/driver/op_trace.h: where an op was called from, for messages of late errors.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "runtime/driver/export.h"

namespace graft {

// Describes where the calling thread is, in lines of text. Called without any lock of ours.
using TraceSource = std::string (*)();

// From now on every OpScope asks source and gives its commands a tag of their own, under which the
// answer is kept for the last 4096 scopes. null ends it. Costs one load per scope while it is off.
GRAFT_EXPORT void trace_ops(TraceSource source);

// What source said for the scope of a tag; empty when it was not traced or is no longer kept.
GRAFT_EXPORT std::string op_trace(uint32_t tag);

// The same, ready to stand behind a message: empty, or a heading and the text.
GRAFT_EXPORT std::string op_trace_note(uint32_t tag);

// For op_tag.cpp. A new tag for this call of the op with tag base: base itself while no op is
// traced, and for the rare base that leaves no room for a number.
uint32_t traced_tag(uint32_t base);

// A new tag for one command of the op with this tag, traced or not, with the same text behind it;
// tag itself for an op that leaves no room for a number.
uint32_t command_tag(uint32_t tag);

// The number in a tag that traced_tag or command_tag made, kTagNumbers for any other. They repeat.
constexpr uint32_t kTagNumbers = 1u << 19;
uint32_t tag_number(uint32_t tag) noexcept;

// The op's own tag behind any tag.
uint32_t base_tag(uint32_t tag) noexcept;

namespace op_trace_state {
extern std::atomic<TraceSource> source;
}

// Whether ops are traced now.
inline bool ops_are_traced() noexcept {
  return op_trace_state::source.load(std::memory_order_relaxed) != nullptr;
}

}  // namespace graft

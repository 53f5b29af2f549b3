// src/runtime/driver/op_tag.cpp: small numbers for op names, which travel with every command.
#include "runtime/driver/op_tag.h"

#include <deque>
#include <mutex>
#include <unordered_map>

#include "runtime/driver/op_trace.h"

namespace graft {
namespace {

struct Registry {
  std::mutex mutex;
  std::deque<std::string> names;
  std::unordered_map<std::string_view, uint32_t> tags;  // views of names
};

Registry& registry() {
  static Registry* const the_registry = new Registry();  // threads may tag during exit
  return *the_registry;
}

constexpr size_t kRemembered = 64;

// One object, so that a call looks up the thread's storage once.
struct Thread {
  OpScope::Op op;
  OpScope::Op remembered[kRemembered];
};
constinit thread_local Thread here;

uint32_t resolve(Thread& thread, const char* name) noexcept {
  OpScope::Op& slot = thread.remembered[(reinterpret_cast<uintptr_t>(name) >> 3) % kRemembered];
  if (slot.name != name) {
    try {
      slot = {name, op_tag(name)};
    } catch (...) {
      return 0;
    }
  }
  return slot.tag;
}

}  // namespace

uint32_t op_tag(std::string_view name) {
  if (name.empty()) return 0;
  Registry& all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto found = all.tags.find(name);
  if (found != all.tags.end()) return found->second;
  all.names.emplace_back(name);
  const auto tag = static_cast<uint32_t>(all.names.size());
  all.tags.emplace(all.names.back(), tag);
  return tag;
}

std::string op_name(uint32_t tag) {
  tag = base_tag(tag);
  Registry& all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  if (tag == 0 || tag > all.names.size()) return {};
  return all.names[tag - 1];
}

// Gives the scope a tag of its own. At its begin and not at the first command: that may hold locks,
// which the source must not meet.
static void trace_scope() noexcept {
  try {
    here.op.tag = traced_tag(current_tag());
  } catch (...) {
  }
}

uint32_t current_tag() noexcept {
  Thread& thread = here;
  if (thread.op.tag == 0 && thread.op.name != nullptr) {
    thread.op.tag = resolve(thread, thread.op.name);
  }
  return thread.op.tag;
}

OpScope::OpScope(const char* name) noexcept : thread_(&here.op), outer_(*thread_) {
  *thread_ = {name, 0};
  if (ops_are_traced()) [[unlikely]]
    trace_scope();
}

OpScope::OpScope(uint32_t tag) noexcept : thread_(&here.op), outer_(*thread_) {
  *thread_ = {nullptr, tag};
}

}  // namespace graft

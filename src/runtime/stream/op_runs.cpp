// src/runtime/stream/op_runs.cpp: what ran for each op: the vendor's kernels, its libraries, or
// ours.
#include "runtime/stream/op_runs.h"

#include <array>
#include <map>
#include <mutex>

namespace graft {
namespace {

struct Runs {
  std::mutex mutex;
  std::map<std::string, std::array<uint64_t, 3>, std::less<>> counts;  // guarded by mutex
};

Runs& runs() {
  static auto& all = *new Runs();  // streams may run while the process ends
  return all;
}

}  // namespace

std::atomic<bool> op_runs_state::on{false};

void count_runs(bool on) {
  const std::lock_guard lock(runs().mutex);
  if (on) runs().counts.clear();
  op_runs_state::on.store(on, std::memory_order_relaxed);
}

std::string runs_json() {
  const std::lock_guard lock(runs().mutex);
  std::string text;
  for (const auto& [op, counts] : runs().counts) {
    text += (text.empty() ? "\"" : ", \"") + op + "\": [" + std::to_string(counts[0]) + ", " +
            std::to_string(counts[1]) + ", " + std::to_string(counts[2]) + "]";
  }
  return "{" + text + "}";
}

void add_run(std::string_view op, RunKind kind) {
  const std::lock_guard lock(runs().mutex);
  auto found = runs().counts.find(op);
  if (found == runs().counts.end()) {
    found = runs().counts.emplace(std::string(op), std::array<uint64_t, 3>{}).first;
  }
  ++found->second[static_cast<size_t>(kind)];
}

}  // namespace graft

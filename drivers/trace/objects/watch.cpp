// drivers/trace/objects/watch.cpp: a thread that looks at what no call shows.
#include "objects/watch.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "call/active_calls.h"
#include "objects/probes.h"

namespace graft::trace {
namespace {

constexpr uint64_t kPatience = 200;  // ticks: 5 s

struct Watched {
  std::mutex mutex;
  std::vector<TraceLayer*> layers;  // guarded by mutex
};
Watched& watched() {
  static auto* const all = new Watched;  // the thread outlives what is destroyed at the exit
  return *all;
}

// Whether all that the call may wait for has happened.
bool should_return(const ActiveCall& call, TraceLayer& layer) {
  if (call.prompt) return true;
  const std::lock_guard lock(layer.mutex);
  const auto stream = layer.ledger.stream_ids.find(call.awaited_stream);
  if (stream == layer.ledger.stream_ids.end() || call.awaited_ticket == 0) return false;
  return call.awaited_ticket > stream->second->untrusted &&
         has_arrived(*stream->second, call.awaited_ticket);
}

void look_at_call(ActiveCall& call) {
  TraceLayer* const layer = call.layer;
  const uint64_t began = call.began;
  if (layer == nullptr || call.reported || ticks - began < kPatience) return;
  if (!should_return(call, *layer) || call.layer != layer || call.began != began) return;
  if (call.reported.exchange(true)) return;
  const std::string slot = slot_name(*call.table, call.slot);
  layer->findings.add(slot,
                      {Culprit::kDriver, "hanging", slot + "()",
                       "has not returned for 5 s, and there is nothing to wait for",
                       "Return when the earlier commands are done; a query returns at once."});
}

void watch_forever() {
  while (true) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(kTickNs));
    ++ticks;
    each_active_call(look_at_call);
    const std::lock_guard lock(watched().mutex);
    for (TraceLayer* const layer : watched().layers) {
      const std::lock_guard held(layer->mutex);
      settle_marks(layer->ledger);
    }
  }
}

}  // namespace

void watch(TraceLayer& layer) {
  const std::lock_guard lock(watched().mutex);
  std::vector<TraceLayer*>& layers = watched().layers;
  if (std::find(layers.begin(), layers.end(), &layer) != layers.end()) return;
  layers.push_back(&layer);
  static const bool started = [] {
    std::thread(watch_forever).detach();
    return true;
  }();
  (void)started;
}

}  // namespace graft::trace

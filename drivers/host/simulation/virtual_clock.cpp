// drivers/host/simulation/virtual_clock.cpp: simulated time, of a stream and of the host.
#include "virtual_clock.h"

#include <atomic>
#include <cmath>

#include "simulation.h"

namespace graft::host {
namespace {

// A host that asks again and again gets on all the same.
constexpr int64_t kAskNs = 1000;

std::atomic<int64_t> host_ns{0}, latest_ns{0};
thread_local bool gives_commands = false;

void raise(std::atomic<int64_t>& time, int64_t to) {
  int64_t now = time.load();
  while (now < to && !time.compare_exchange_weak(now, to)) {
  }
}

}  // namespace

void VirtualClock::end(int64_t at_ns) {
  reach(at_ns);
  raise(latest_ns, now_ns_);
}

int64_t host_time() { return host_ns.load(); }

int64_t host_gives_command() {
  gives_commands = true;
  const int64_t cost = std::llround(simulation().submit_ns);
  return cost == 0 ? host_ns.load() : host_ns.fetch_add(cost) + cost;
}

void host_waited(int64_t until_ns) {
  if (gives_commands) raise(host_ns, until_ns);
}

void host_asked() { host_ns.fetch_add(kAskNs); }

int64_t latest_time() { return latest_ns.load(); }

}  // namespace graft::host

// drivers/host/simulation/simulation.h: what commands and links cost in simulated time:
// GRAFT_HOST_SIMULATE.
#ifndef GRAFT_DRIVERS_HOST_SIMULATION_SIMULATION_H_
#define GRAFT_DRIVERS_HOST_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <string>

#include "stream/fault.h"

namespace graft::host {

// One direction of a connection between two ranks.
struct Link {
  double bytes_per_second;
  double latency_ns;
};

// A modelled accelerator, and how its ranks are connected. README.md describes the keys.
struct Simulation {
  bool on = false;
  std::string problem;      // why the text cannot be used; "" where it can
  double flops = 100e12;    // of matmul and convolution, per second
  double memory = 1e12;     // bytes per second of the device's memory
  double host = 16e9;       // bytes per second between host and device
  double launch_ns = 2000;  // of each command on the device
  double submit_ns = 0;     // of each command on the host
  Link link = {25e9, 5000};
  double outer_bandwidth = 0, outer_latency_ns = -1;  // between nodes; as link where not given
  uint32_t node = 0;                                  // ranks of a node; 0: all are in one
  uint32_t ranks = 0;                                 // above 1: groups are mirrored
  bool skip = false;                                  // large commands only take time

  // From a rank of a group to the next one, or to another one.
  Link between(uint32_t from, uint32_t to) const;
  // Whether groups have one rank that is here, and others that do the same at the same time.
  bool mirrored() const { return ranks > 1; }

  int64_t kernel_ns(uint64_t bytes) const;
  int64_t library_ns(uint64_t flop_count, uint64_t bytes) const;
  int64_t copy_ns(uint32_t kind, uint64_t bytes) const;  // kind: graft_copy_kind
  int64_t peer_copy_ns(uint64_t bytes) const;
};

// Reads "key=value,key=value"; "1" is all defaults.
Simulation read_simulation(const std::string& text);

// Of this process. Thread-safe.
const Simulation& simulation();

// Whether time is simulated. Costs one load.
inline bool simulated() {
  return (detours.load(std::memory_order_relaxed) & kDetourSimulated) != 0;
}

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_SIMULATION_SIMULATION_H_

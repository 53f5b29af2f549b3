// drivers/host/simulation/ring.h: how long collectives take over simulated links.
#ifndef GRAFT_DRIVERS_HOST_SIMULATION_RING_H_
#define GRAFT_DRIVERS_HOST_SIMULATION_RING_H_

#include <cstdint>
#include <vector>

#include "collectives/group.h"
#include "collectives/point_to_point.h"
#include "simulation.h"

namespace graft::host {

// From the moment when all ranks have come until the last one is done. The ranks form a ring, each
// sends to the next one. all_reduce, all_gather and reduce_scatter cut the data in as many parts as
// ranks, and in each step every rank passes one on; broadcast and reduce send as many parts along
// the ring, one behind the other. A link is busy while bytes enter it; a part arrives a latency
// after its last byte did. Reducing takes no time.
int64_t collective_ns(const Simulation& simulation, const CommandRecord& record, uint32_t ranks);

// The same for sends and receives of one rank: each way, one after the other.
int64_t transfers_ns(const Simulation& simulation, const std::vector<Transfer>& transfers,
                     uint32_t rank);

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_SIMULATION_RING_H_

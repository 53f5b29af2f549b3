// drivers/host/simulation/mirror.h: collectives of a rank whose peers are thought to do as it does.
#ifndef GRAFT_DRIVERS_HOST_SIMULATION_MIRROR_H_
#define GRAFT_DRIVERS_HOST_SIMULATION_MIRROR_H_

#include <cstdint>
#include <vector>

#include "collectives/group.h"
#include "collectives/point_to_point.h"
#include "stream/queue.h"

namespace graft::host {

// One collective, with the result that it has where every rank's send holds the same bytes. A
// broadcast from another rank leaves receive as it is. Its arguments are right (collectives.cpp).
struct MirroredExchange {
  CommandRecord record;
  const char* send;
  char* receive;
  uint32_t rank, ranks;

  Outcome operator()() const;
};

// Sends and receives: the n-th receive gets what the n-th send has, as far as it goes.
struct MirroredTransfers {
  std::vector<Transfer> transfers;

  Outcome operator()() const;
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_SIMULATION_MIRROR_H_

// drivers/host/collectives/point_to_point.h: what single ranks send to one another.
#ifndef GRAFT_DRIVERS_HOST_COLLECTIVES_POINT_TO_POINT_H_
#define GRAFT_DRIVERS_HOST_COLLECTIVES_POINT_TO_POINT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "group.h"
#include "simulation/virtual_clock.h"
#include "stream/queue.h"

namespace graft::host {

// One send or receive. Goes through its channel in pieces; one of no elements is one empty piece.
struct Transfer {
  bool sends;
  uint32_t peer;
  char* bytes;
  uint64_t count;
  uint32_t dtype;
  uint64_t done = 0;  // bytes
  uint32_t piece = 0;
};

// Transfers that wait for none of each other: a command of a stream. Those between the same two
// ranks, one way, go in order.
struct TransferBatch {
  std::shared_ptr<Group> group;
  std::vector<Transfer> transfers;
  bool planted = false;           // it fails, by GRAFT_HOST_FAULTS
  VirtualClock* clock = nullptr;  // the stream's, in a simulation
  int64_t issued_ns = 0;

  // The outcome's text stays until the thread's next command.
  Outcome operator()();
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_COLLECTIVES_POINT_TO_POINT_H_

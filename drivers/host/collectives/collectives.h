// drivers/host/collectives/collectives.h: graft.collectives, for ranks on this machine.
#ifndef GRAFT_DRIVERS_HOST_COLLECTIVES_COLLECTIVES_H_
#define GRAFT_DRIVERS_HOST_COLLECTIVES_COLLECTIVES_H_

#include "graft/extensions.h"

namespace graft::host {

extern const graft_collectives_table kCollectives;

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_COLLECTIVES_COLLECTIVES_H_

// drivers/host/kernel/pack.h: the kernels that were compiled with Graft itself.
#ifndef GRAFT_DRIVERS_HOST_KERNEL_PACK_H_
#define GRAFT_DRIVERS_HOST_KERNEL_PACK_H_

#include "graft/driver.h"

namespace graft::host {

// graft_pack_v4.so, _v3 or _v2 beside the driver: the best one that this processor runs, or the
// one that GRAFT_HOST_ISA names. NULL when it is not there, and where kernels are compiled for
// other machines, whose packs nobody knows (GRAFT_HOST_TARGET). Thread-safe.
graft_program kernel_pack();

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_KERNEL_PACK_H_

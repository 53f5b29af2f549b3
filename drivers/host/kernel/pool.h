// drivers/host/kernel/pool.h: the one set of threads that computes for all streams.
#ifndef GRAFT_DRIVERS_HOST_KERNEL_POOL_H_
#define GRAFT_DRIVERS_HOST_KERNEL_POOL_H_

#include <cstdint>

namespace graft::host {

using RangeFunction = void (*)(void* context, uint64_t begin, uint64_t end);

// Calls function over [0, count) in disjoint contiguous ranges, on this thread and the pool's, and
// returns when all is done. Any thread may call, also several at once; waiting threads sleep. The
// threads are the compute library's where it is loaded (library.h), else the driver's own.
void run_parallel(uint64_t count, RangeFunction function, void* context);

// The same with the driver's own threads.
void run_on_own_threads(uint64_t count, RangeFunction function, void* context);

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_KERNEL_POOL_H_

// drivers/host/onednn/threads.h: the TBB threads that oneDNN and generated loops share.
#ifndef GRAFT_DRIVERS_HOST_ONEDNN_THREADS_H_
#define GRAFT_DRIVERS_HOST_ONEDNN_THREADS_H_

#include <oneapi/tbb/task_arena.h>

#include <cstdint>

namespace graft::host {

// Fixes the number of threads of the process. Called once, before the rest.
void start_threads(uint32_t threads);

// The calling thread's door to the threads: what runs in it sees their number, and the workers
// behind all doors are the same. Making and executing a primitive must see the same number.
tbb::task_arena& arena();

// See LibraryTable::parallel.
void parallel(uint64_t count, uint64_t ranges, void (*function)(void*, uint64_t, uint64_t),
              void* context);

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_ONEDNN_THREADS_H_

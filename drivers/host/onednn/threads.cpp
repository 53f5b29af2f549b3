// drivers/host/onednn/threads.cpp: the TBB threads that oneDNN and generated loops share.
#include "threads.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <cstddef>
#include <new>

namespace graft::host {
namespace {
uint32_t thread_count = 1;
}  // namespace

void start_threads(uint32_t threads) {
  thread_count = threads;
  // Lives until the process ends.
  alignas(tbb::global_control) static std::byte limit[sizeof(tbb::global_control)];
  new (limit) tbb::global_control(tbb::global_control::max_allowed_parallelism, threads);
}

tbb::task_arena& arena() {
  thread_local tbb::task_arena door(static_cast<int>(thread_count), 1);
  return door;
}

void parallel(uint64_t count, uint64_t ranges, void (*function)(void*, uint64_t, uint64_t),
              void* context) {
  arena().execute([=] {
    tbb::parallel_for(
        uint64_t{0}, ranges,
        [=](uint64_t i) {
          uint64_t begin = count / ranges * i + std::min(i, count % ranges);
          uint64_t items = count / ranges + (i < count % ranges ? 1 : 0);
          function(context, begin, begin + items);
        },
        tbb::simple_partitioner());
  });
}

}  // namespace graft::host

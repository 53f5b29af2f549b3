// src/runtime/memory/statistics.h: figures of an allocator, under torch's names.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/driver/export.h"

namespace graft {

// One figure over time: now, its highest value, and the sums of what went up and down.
struct Statistic {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t allocated = 0;
  int64_t freed = 0;

  void increase(int64_t amount) {
    current += amount;
    allocated += amount;
    if (current > peak) peak = current;
  }
  void decrease(int64_t amount) {
    current -= amount;
    freed += amount;
  }
};

// Which pool a figure counts: both together, blocks up to 1 MiB, larger ones.
enum StatisticPool { kAllPools = 0, kSmallPool = 1, kLargePool = 2 };
inline constexpr int kStatisticPools = 3;

// A figure of each pool.
struct PooledStatistic {
  Statistic pools[kStatisticPools];

  void increase(StatisticPool pool, int64_t amount) {
    pools[kAllPools].increase(amount);
    pools[pool].increase(amount);
  }
  void decrease(StatisticPool pool, int64_t amount) {
    pools[kAllPools].decrease(amount);
    pools[pool].decrease(amount);
  }
  const Statistic& all() const { return pools[kAllPools]; }
};

// FIGURE(name): counts first, bytes after, as torch.cuda.memory_stats names them.
#define GRAFT_MEMORY_FIGURES(FIGURE)                                          \
  FIGURE(allocation)      /* blocks that tensors hold */                      \
  FIGURE(segment)         /* pieces taken from the driver */                  \
  FIGURE(active)          /* held, or freed while a stream still uses them */ \
  FIGURE(inactive_split)  /* free parts of segments that are also in use */   \
  FIGURE(allocated_bytes) /* capacity of held blocks */                       \
  FIGURE(reserved_bytes)  /* all that the driver gave */                      \
  FIGURE(active_bytes)                                                        \
  FIGURE(inactive_split_bytes)                                                \
  FIGURE(requested_bytes) /* what tensors asked for, before rounding */

// Everything that an allocator counts.
struct MemoryStatistics {
#define GRAFT_DECLARE_FIGURE(name) PooledStatistic name;
  GRAFT_MEMORY_FIGURES(GRAFT_DECLARE_FIGURE)
#undef GRAFT_DECLARE_FIGURE
  int64_t num_alloc_retries = 0;  // the cache was emptied to go on
  int64_t num_ooms = 0;           // Errors OUT_OF_MEMORY
  int64_t num_sync_all_streams = 0;
  int64_t num_device_alloc = 0;  // calls of the driver
  int64_t num_device_free = 0;

  // Peaks become the current values; or the sums become 0.
  GRAFT_EXPORT void reset_peak();
  GRAFT_EXPORT void reset_accumulated();
};

}  // namespace graft

// src/runtime/memory/statistics.cpp: figures of an allocator, under torch's names.
#include "runtime/memory/statistics.h"

namespace graft {
namespace {

template <class Change>
void change_all(MemoryStatistics& statistics, Change change) {
#define GRAFT_CHANGE(name) \
  for (Statistic & one : statistics.name.pools) change(one);
  GRAFT_MEMORY_FIGURES(GRAFT_CHANGE)
#undef GRAFT_CHANGE
}

}  // namespace

void MemoryStatistics::reset_peak() {
  change_all(*this, [](Statistic& one) { one.peak = one.current; });
}

void MemoryStatistics::reset_accumulated() {
  change_all(*this, [](Statistic& one) { one.allocated = one.freed = 0; });
  num_alloc_retries = num_ooms = num_sync_all_streams = num_device_alloc = num_device_free = 0;
}

}  // namespace graft

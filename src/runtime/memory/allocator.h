// src/runtime/memory/allocator.h: the interface of device memory allocators, small so that they
// stack.
#pragma once

#include <cstdint>

#include "graft/driver.h"
#include "runtime/driver/export.h"
#include "runtime/memory/history.h"
#include "runtime/memory/statistics.h"

namespace graft {

class Stream;

// A piece of device memory. Made and owned by the allocator; the holder gives it back by free.
struct Block {
  graft_address address = 0;
  uint64_t bytes = 0;        // as asked for
  uint64_t capacity = 0;     // usable, at least bytes
  Stream* stream = nullptr;  // whose order decides when it may be reused, and whose allocator it is
};

// Device memory in stream order: a block may be used by commands of its stream from the call on,
// and may be freed while they still run; other streams are announced by record_stream. Thread-safe.
class GRAFT_EXPORT Allocator {
 public:
  virtual ~Allocator() = default;

  // REQUIRES: bytes > 0, stream belongs to the device. Throws Error OUT_OF_MEMORY, whose text has
  // the figures and a remedy; the device stays usable.
  virtual Block* allocate(uint64_t bytes, Stream& stream) = 0;

  // Takes the block back. Does nothing in a forked child. Memory that commands still use when a
  // wait for them ended early goes to nobody else.
  virtual void free(Block* block) noexcept = 0;

  // The block's memory is not reused before the commands that stream has at the time of free are
  // done. Costs nothing for the block's own stream.
  virtual void record_stream(Block* block, Stream& stream) = 0;

  // Gives unused memory back to the driver. Waits for the streams that used it.
  virtual void empty_cache() = 0;

  virtual MemoryStatistics statistics() const = 0;
  virtual void reset_peak() = 0;
  virtual void reset_accumulated() = 0;

  // A pool other than 0 holds the memory of recordings (Stream::memory_pool), or of threads that
  // chose it (chosen_pool.h): while it is retained, what was allocated from it goes to nobody else,
  // not even after free, because a replay uses it again. release_pool undoes one retain_pool; after
  // the last the memory is as any other. REQUIRES of the last release: no replay is running.
  virtual void retain_pool(uint64_t pool) = 0;
  virtual void release_pool(uint64_t pool) noexcept = 0;

  // Most bytes to take from the driver; 0 lifts the limit. More than that is OUT_OF_MEMORY.
  virtual void set_limit(uint64_t bytes) = 0;
  virtual uint64_t limit() const = 0;

  // Bytes of the largest block that a cached piece could give; 0 without a cache.
  virtual uint64_t largest_cached() const = 0;

  // Keeps the last entries events from now on, each with what source returns (may be null). With 0
  // entries the blocks alone keep it; without a source, too, recording stops. The sources of a
  // process may be any function that takes no lock of an allocator.
  virtual void record_history(size_t entries, MemoryContextSource source) = 0;
  virtual MemorySnapshot snapshot() const = 0;

  // Gives all memory back to the driver, held blocks too, whose later free calls nothing. REQUIRES:
  // no command is left and none will come.
  virtual void close() noexcept = 0;

  // The held block whose capacity covers the address, null for none. Slow: walks the segment.
  virtual Block* find(graft_address address) = 0;
};

}  // namespace graft

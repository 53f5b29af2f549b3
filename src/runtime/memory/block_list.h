// src/runtime/memory/block_list.h: the objects of blocks, and the links between neighbours.
#pragma once

#include <cstdint>
#include <deque>

#include "runtime/memory/free_blocks.h"

namespace graft {

// Owns the blocks of one allocator; what is dropped is made again. Not thread-safe.
class BlockList {
 public:
  // A block without neighbours; its other fields are those of the block that was dropped.
  CachedBlock* make();
  void drop(CachedBlock* block) noexcept;

  // Leaves capacity bytes to the block; tail becomes its neighbour with the rest, in its state.
  static void cut(CachedBlock* block, uint64_t capacity, CachedBlock* tail) noexcept;

  // Gives low the bytes of high, its next neighbour, drops high and returns low.
  CachedBlock* join(CachedBlock* low, CachedBlock* high) noexcept;

 private:
  std::deque<CachedBlock> all_;   // ever made
  CachedBlock* spare_ = nullptr;  // the dropped ones, by next
};

}  // namespace graft

// src/runtime/memory/free_blocks.h: the free pieces of one pool, found by size in constant time.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/memory/allocator.h"

namespace graft {

struct Segment;

// A piece of a segment: held by a user, waiting for streams, free, on its way back to the driver,
// or without memory. Pieces of one segment form a list by address without gaps; neighbours that are
// free, or without memory, are joined at once.
struct CachedBlock : Block {
  enum class State : uint8_t { kFree, kHeld, kPending, kLeaving, kUnmapped };

  Segment* segment = nullptr;
  CachedBlock* before = nullptr;  // neighbours by address
  CachedBlock* after = nullptr;
  CachedBlock* previous = nullptr;  // in a list of FreeBlocks, or of spare objects
  CachedBlock* next = nullptr;
  uint32_t pending = 0;  // events that must pass before it is free
  State state = State::kFree;
  bool shared = false;  // other streams use it: see BlockUsers
  MemoryContext context;
};

// Lists of free blocks by size class: 16 classes per power of two, from 512 bytes up, with bitmaps
// of the classes that have blocks. Not thread-safe; owns nothing.
class FreeBlocks {
 public:
  void insert(CachedBlock* block) noexcept;
  void remove(CachedBlock* block) noexcept;

  // A block of at least bytes, left in its list; null when none fits. The smallest of the first 64
  // of the lowest class that has a fit: a class is at most a sixteenth wide, so little is wasted.
  CachedBlock* find(uint64_t bytes) const noexcept;

  // The largest free block's capacity, 0 for none.
  uint64_t largest() const noexcept;

 private:
  static constexpr int kSteps = 16;   // classes per power of two
  static constexpr int kPowers = 56;  // 512 bytes << 55
  static int class_of(uint64_t capacity) noexcept;

  std::array<CachedBlock*, kSteps * kPowers> lists_{};
  std::array<uint16_t, kPowers> steps_{};
  uint64_t powers_ = 0;
};

}  // namespace graft

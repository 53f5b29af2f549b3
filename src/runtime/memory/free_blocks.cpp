// src/runtime/memory/free_blocks.cpp: the free pieces of one pool, found by size in constant time.
#include "runtime/memory/free_blocks.h"

#include <algorithm>
#include <bit>

namespace graft {
namespace {

constexpr int kLooks = 64;  // blocks of one class that a search compares

// The best of the first blocks of a list; null when none of them fits.
CachedBlock* best_of(CachedBlock* list, uint64_t bytes) noexcept {
  CachedBlock* best = nullptr;
  int looks = kLooks;
  for (CachedBlock* block = list; block != nullptr && looks-- > 0; block = block->next) {
    if (block->capacity < bytes || (best != nullptr && block->capacity >= best->capacity)) continue;
    best = block;
    if (block->capacity == bytes) break;
  }
  return best;
}

}  // namespace

int FreeBlocks::class_of(uint64_t capacity) noexcept {
  const uint64_t units = std::max<uint64_t>(capacity >> 9, 1);
  const int power = std::bit_width(units) - 1;
  const uint64_t step = power >= 4 ? units >> (power - 4) : units << (4 - power);
  return power * kSteps + static_cast<int>(step & (kSteps - 1));
}

void FreeBlocks::insert(CachedBlock* block) noexcept {
  const int index = class_of(block->capacity);
  CachedBlock*& list = lists_[index];
  block->previous = nullptr;
  block->next = list;
  if (list != nullptr) list->previous = block;
  list = block;
  steps_[index / kSteps] |= static_cast<uint16_t>(1u << (index % kSteps));
  powers_ |= 1ull << (index / kSteps);
}

void FreeBlocks::remove(CachedBlock* block) noexcept {
  if (block->next != nullptr) block->next->previous = block->previous;
  if (block->previous != nullptr) {
    block->previous->next = block->next;
    return;
  }
  const int index = class_of(block->capacity);
  lists_[index] = block->next;
  if (block->next != nullptr) return;
  uint16_t& steps = steps_[index / kSteps];
  steps &= static_cast<uint16_t>(~(1u << (index % kSteps)));
  if (steps == 0) powers_ &= ~(1ull << (index / kSteps));
}

CachedBlock* FreeBlocks::find(uint64_t bytes) const noexcept {
  const int index = class_of(bytes);
  if (CachedBlock* fit = best_of(lists_[index], bytes)) return fit;
  int power = index / kSteps;
  uint32_t steps = steps_[power] & (0xfffeu << (index % kSteps));
  if (steps == 0) {
    const uint64_t powers = powers_ & (~1ull << power);
    if (powers == 0) return nullptr;
    power = std::countr_zero(powers);
    steps = steps_[power];
  }
  return best_of(lists_[power * kSteps + std::countr_zero(steps)], bytes);
}

uint64_t FreeBlocks::largest() const noexcept {
  if (powers_ == 0) return 0;
  const int power = std::bit_width(powers_) - 1;
  const int step = std::bit_width(static_cast<uint32_t>(steps_[power])) - 1;
  uint64_t most = 0;
  for (CachedBlock* block = lists_[power * kSteps + step]; block != nullptr; block = block->next) {
    most = std::max(most, block->capacity);
  }
  return most;
}

}  // namespace graft

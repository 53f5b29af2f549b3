// src/runtime/memory/block_list.cpp: the objects of blocks, and the links between neighbours.
#include "runtime/memory/block_list.h"

namespace graft {

CachedBlock* BlockList::make() {
  if (spare_ == nullptr) return &all_.emplace_back();
  CachedBlock* block = spare_;
  spare_ = block->next;
  return block;
}

void BlockList::drop(CachedBlock* block) noexcept {
  block->before = block->after = block->previous = nullptr;
  block->segment = nullptr;
  block->next = spare_;
  spare_ = block;
}

void BlockList::cut(CachedBlock* block, uint64_t capacity, CachedBlock* tail) noexcept {
  tail->address = block->address + capacity;
  tail->capacity = block->capacity - capacity;
  tail->stream = block->stream;
  tail->segment = block->segment;
  tail->state = block->state;
  tail->before = block;
  tail->after = block->after;
  if (tail->after != nullptr) tail->after->before = tail;
  block->after = tail;
  block->capacity = capacity;
}

CachedBlock* BlockList::join(CachedBlock* low, CachedBlock* high) noexcept {
  low->capacity += high->capacity;
  low->after = high->after;
  if (low->after != nullptr) low->after->before = low;
  drop(high);
  return low;
}

}  // namespace graft

// src/runtime/memory/segment.cpp: a piece of memory that is cut into blocks.
#include "runtime/memory/segment.h"

#include "runtime/stream/stream.h"

namespace graft {
namespace {

SegmentSnapshot empty_snapshot(const Segment& segment, graft_address address) {
  const bool mapped = segment.range != nullptr;
  return {address, 0, 0, 0, 0, segment.stream->id(), segment.large, mapped, segment.private_pool,
          {}};
}

void add_to(SegmentSnapshot& whole, const CachedBlock& block) {
  using State = CachedBlock::State;
  const bool held = block.state == State::kHeld, pending = block.state == State::kPending;
  whole.bytes += block.capacity;
  if (held) whole.allocated += block.capacity;
  if (held || pending) whole.active += block.capacity;
  if (held) whole.requested += block.bytes;
  const BlockState state = held      ? BlockState::kActive
                           : pending ? BlockState::kPendingFree
                                     : BlockState::kInactive;
  whole.blocks.push_back(
      {block.address, block.capacity, held || pending ? block.bytes : 0, state, block.context});
}

}  // namespace

std::vector<std::pair<graft_address, uint64_t>> mapped_runs(const Segment& segment) {
  std::vector<std::pair<graft_address, uint64_t>> runs;
  bool open = false;
  for (const CachedBlock* block = segment.first; block != nullptr; block = block->after) {
    const bool mapped = block->state != CachedBlock::State::kUnmapped;
    if (mapped && !open) runs.emplace_back(block->address, 0);
    if (mapped) runs.back().second += block->capacity;
    open = mapped;
  }
  return runs;
}

void append_snapshot(const Segment& segment, std::vector<SegmentSnapshot>& all) {
  bool open = false;
  for (const CachedBlock* block = segment.first; block != nullptr; block = block->after) {
    if (block->state == CachedBlock::State::kUnmapped) {
      open = false;
      continue;
    }
    if (!std::exchange(open, true)) all.push_back(empty_snapshot(segment, block->address));
    add_to(all.back(), *block);
  }
}

}  // namespace graft

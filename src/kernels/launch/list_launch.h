// src/kernels/launch/list_launch.h: one launch for several flat tensors of any lengths.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "codegen/ir/builder.h"
#include "codegen/print/dialect.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/lanes.h"
#include "kernels/launch/work_split.h"
#include "runtime/driver/open_device.h"

namespace graft {

// Most tensors of one launch: each has parameters of its own.
inline constexpr int kGroupSlots = 16;

// Parameters of a kernel: addresses, and numbers of at most 8 bytes.
struct ParameterCounts {
  int addresses = 0;
  int numbers = 0;

  int count() const { return addresses + numbers; }

  // An address is a buffer and an offset where kernels cannot load addresses from memory.
  int bytes(const OpenDevice& device) const {
    const bool pointers = (device.properties().features & GRAFT_FEATURE_POINTERS_IN_MEMORY) != 0;
    return addresses * (pointers ? 8 : 16) + numbers * 8;
  }
};

// How many tensors share a launch so that its parameters fit: kGroupSlots, or fewer where the
// device or its language limits them. each: what every tensor has beside what GroupShare declares;
// shared: what all have together.
inline int group_slots(const OpenDevice& device, ParameterCounts each, ParameterCounts shared) {
  each.numbers += 2;  // GroupShare's
  int slots = kGroupSlots;
  if (const uint32_t most = device.properties().max_arguments; most != 0) {
    slots = (static_cast<int>(std::min(most, 1u << 16)) - shared.count()) / each.count();
  }
  const ir::Dialect* dialect = ir::find_dialect(device.properties().dialect);
  if (const int most = dialect == nullptr ? 0 : dialect->parameter_bytes(); most != 0) {
    slots = std::min(slots, (most - shared.bytes(device)) / each.bytes(device));
  }
  return std::clamp(slots, 1, kGroupSlots);
}

// Elements of a tensor that one work-item takes.
inline constexpr int64_t kGroupTile = kItemElements;

// Elements that kLanes work-items of a GPU-like device take together, more than elsewhere: what a
// work-item finds out about its tensor is paid for once.
inline constexpr int64_t kGroupLaneTile = 16 * kLanes;

// The kernel's side of one list of tensors: an address for every slot. Declared list by list.
class GroupList {
 public:
  GroupList() = default;
  GroupList(ir::Builder& builder, graft_dtype dtype, uint32_t access, int slots = kGroupSlots) {
    for (int slot = 0; slot < slots; ++slot) {
      addresses_.push_back(access == GRAFT_ACCESS_READ    ? builder.read(dtype)
                           : access == GRAFT_ACCESS_WRITE ? builder.write(dtype)
                                                          : builder.update(dtype));
    }
  }
  ir::Address at(ir::Value slot) const { return pick(addresses_, slot); }

 private:
  std::vector<ir::Address> addresses_;
};

// The parameters that say which tensor a work-item belongs to, declared after everything else, and
// what follows from them: the slot of this work-item's tensor and its elements begin .. end - 1, of
// which it takes every step-th.
struct GroupShare {
  // lanes: dealt out as lanes.h says.
  explicit GroupShare(ir::Builder& b, int slots = kGroupSlots, bool lanes = false) {
    ir::Value counts[kGroupSlots], ends[kGroupSlots];
    for (int i = 0; i < slots; ++i) counts[i] = b.index();
    for (int i = 0; i < slots; ++i) ends[i] = b.index();
    const ir::Value item = lanes ? b.item() / kLanes : b.item();
    ir::Value first = b.i64(0), count = counts[0];
    slot = b.i64(0);
    for (int next = 1; next < slots; ++next) {
      const ir::Value beyond = item >= ends[next - 1];
      slot = slot + cast(ir::Type::kI64, beyond);
      first = select(beyond, ends[next - 1], first);
      count = select(beyond, counts[next], count);
    }
    const int64_t tile = lanes ? kGroupLaneTile : kGroupTile;
    begin = (item - first) * tile;
    end = ir::minimum(begin + tile, count);
    if (!lanes) return;
    begin = begin + b.item() % kLanes;
    step = b.i64(kLanes);
  }

  // body(element), in any order.
  template <class Body>
  void each(ir::Builder& b, Body body) const {
    if (step.id() == ir::kNoId) return b.vector_loop(begin, end, body);
    b.loop(begin, end, body, step);
  }

  ir::Value slot, begin, end;
  ir::Value step;  // not set: 1
};

// The launch's side: positions of at most size tensors and their lengths. Slots without a tensor
// repeat the first with a length of 0.
class TensorGroup {
 public:
  explicit TensorGroup(int size) : size_(static_cast<size_t>(size)) {}

  int slots() const { return static_cast<int>(size_); }
  std::span<const int> members() const { return {members_, size_}; }
  std::span<const int64_t> counts() const { return {counts_, size_}; }
  int used() const { return used_; }
  bool full() const { return used_ == slots(); }

  // REQUIRES: not full.
  void add(int member, int64_t count) {
    if (used_ == 0) std::fill_n(members_, size_, member);
    members_[used_] = member;
    counts_[used_++] = count;
  }

  // Appends what GroupShare declared; returns the number of work-items.
  int64_t append(Arguments& arguments, bool lanes = false) const {
    const int64_t tile = lanes ? kGroupLaneTile : kGroupTile;
    for (int64_t count : counts()) arguments.index(count);
    int64_t end = 0;
    for (int64_t count : counts()) {
      end += (count + tile - 1) / tile;
      arguments.index(end);
    }
    return lanes ? end * kLanes : end;
  }

 private:
  size_t size_;
  int members_[kGroupSlots] = {};
  int64_t counts_[kGroupSlots] = {};
  int used_ = 0;
};

// launch(group) for groups that together hold every tensor with elements. kind tells tensors that
// cannot share a launch apart: count_of(i) and kind_of(i) are asked for i = 0 .. size - 1. slots:
// most tensors of a launch.
template <class Count, class Kind, class Launch>
void each_group(size_t size, Count count_of, Kind kind_of, Launch launch, int slots = kGroupSlots) {
  std::vector<bool> done(size);
  for (size_t start = 0; start < size; ++start) {
    if (done[start] || count_of(start) == 0) continue;
    TensorGroup group(slots);
    for (size_t i = start; i < size && !group.full(); ++i) {
      if (done[i] || count_of(i) == 0 || kind_of(i) != kind_of(start)) continue;
      done[i] = true;
      group.add(static_cast<int>(i), count_of(i));
    }
    launch(group);
  }
}

}  // namespace graft

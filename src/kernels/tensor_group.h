// src/kernels/tensor_group.h: one launch for several flat tensors of any lengths.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "codegen/builder.h"
#include "kernels/arguments.h"
#include "kernels/work_split.h"

namespace graft {

// Tensors of one launch: each has parameters of its own.
inline constexpr int kGroupSlots = 16;

// Elements of a tensor that one work-item takes.
inline constexpr int64_t kGroupTile = kItemElements;

// The kernel's side of one list of tensors: an address for every slot. Declared list by list.
class GroupList {
 public:
  GroupList() = default;
  GroupList(ir::Builder& builder, graft_dtype dtype, uint32_t access) {
    for (int slot = 0; slot < kGroupSlots; ++slot) {
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
// what follows from them: the slot of this work-item's tensor and its elements begin .. end - 1.
struct GroupShare {
  explicit GroupShare(ir::Builder& b) {
    ir::Value counts[kGroupSlots], ends[kGroupSlots];
    for (ir::Value& count : counts) count = b.index();
    for (ir::Value& last : ends) last = b.index();
    const ir::Value item = b.item();
    ir::Value first = b.i64(0), count = counts[0];
    slot = b.i64(0);
    for (int next = 1; next < kGroupSlots; ++next) {
      const ir::Value beyond = item >= ends[next - 1];
      slot = slot + cast(ir::Type::kI64, beyond);
      first = select(beyond, ends[next - 1], first);
      count = select(beyond, counts[next], count);
    }
    begin = (item - first) * kGroupTile;
    end = ir::minimum(begin + kGroupTile, count);
  }

  ir::Value slot, begin, end;
};

// The launch's side: positions of at most kGroupSlots tensors and their lengths. Slots without a
// tensor repeat the first with a length of 0.
struct TensorGroup {
  int members[kGroupSlots] = {};
  int64_t counts[kGroupSlots] = {};
  int used = 0;

  // Appends what GroupShare declared; returns the number of work-items.
  int64_t append(Arguments& arguments) const {
    for (int64_t count : counts) arguments.index(count);
    int64_t end = 0;
    for (int64_t count : counts) {
      end += (count + kGroupTile - 1) / kGroupTile;
      arguments.index(end);
    }
    return end;
  }
};

// launch(group) for groups that together hold every tensor with elements. kind tells tensors that
// cannot share a launch apart: count_of(i) and kind_of(i) are asked for i = 0 .. size - 1.
template <class Count, class Kind, class Launch>
void each_group(size_t size, Count count_of, Kind kind_of, Launch launch) {
  std::vector<bool> done(size);
  for (size_t start = 0; start < size; ++start) {
    if (done[start] || count_of(start) == 0) continue;
    TensorGroup group;
    for (size_t i = start; i < size && group.used < kGroupSlots; ++i) {
      if (done[i] || count_of(i) == 0 || kind_of(i) != kind_of(start)) continue;
      done[i] = true;
      group.members[group.used] = static_cast<int>(i);
      group.counts[group.used++] = count_of(i);
    }
    std::fill(group.members + group.used, group.members + kGroupSlots, group.members[0]);
    launch(group);
  }
}

}  // namespace graft

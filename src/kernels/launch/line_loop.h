// src/kernels/launch/line_loop.h: a kernel's way along lines that work-items take alone or share.
#pragma once

#include <optional>

#include "kernels/launch/group_fold.h"
#include "kernels/launch/work_split.h"

namespace graft {

inline ir::Family family_of(WorkMapping deal) {
  return deal == WorkMapping::kSpans ? ir::Family::kCpuLike : ir::Family::kGpuLike;
}

// Dealt out in spans, a work-item takes whole lines in vectors. Dealt out to lanes, a group of
// kLanes work-items takes a line, each every kLanes-th element of it: what one of them stores there
// it finds again, and a launch has a group for each line.
class LineLoop {
 public:
  // type: what reduce() gives. Before the kernel's first loop or if.
  LineLoop(ir::Builder& builder, WorkMapping deal, ir::Type type) : b_(builder) {
    if (deal != WorkMapping::kSpans) fold_.emplace(b_, std::vector<ir::Type>{type}, deal);
  }

  // body(line) for the lines of this work-item.
  template <class Body>
  void lines(ir::Value count, ir::Value per_item, Body body) {
    if (!fold_) return each_line(b_, count, per_item, body);
    body(b_.item() / kLanes);
  }

  // body(element) for each of a line's elements, independent of one another.
  template <class Body>
  void each(ir::Value count, Body body) {
    if (!fold_) return b_.vector_loop(b_.i64(0), count, body);
    b_.loop(fold_->lane(), count, body, b_.i64(kLanes));
  }

  // body() by one work-item for the line.
  template <class Body>
  void once(Body body) {
    if (!fold_) return body();
    b_.if_(fold_->lane() == 0, body);
  }

  // The elements map(element) of a line, combined from first on, the neutral one; in every
  // work-item. Long lines in blocks: a rounded sum is off by at most the roundoff of as many
  // additions as a block has in a lane, and of as many as there are blocks. accumulators: as in
  // ir::reduce(). Outside of ifs.
  template <class Map, class Combine>
  ir::Value reduce(ir::Value first, ir::Value count, Map map, Combine combine,
                   uint32_t accumulators = 64) {
    const ir::Variable total(first);
    const auto in_block = [&](ir::Value begin) {
      const ir::Value end = ir::minimum(begin + kSumBlock, count);
      if (!fold_) {
        total = combine(total.get(), ir::reduce(first, begin, end, map, combine, accumulators));
        return;
      }
      const ir::Variable part(first);
      b_.loop(
          begin + fold_->lane(), end, [&](ir::Value i) { part = combine(part.get(), map(i)); },
          b_.i64(kLanes));
      total = combine(total.get(), part.get());
    };
    b_.loop(b_.i64(0), count, in_block, b_.i64(kSumBlock));
    if (!fold_) return total.get();
    const auto join = [&](const GroupFold::Values& a, const GroupFold::Values& b) {
      return GroupFold::Values{combine(a[0], b[0])};
    };
    return fold_->fold({total.get()}, join)[0];
  }

 private:
  static constexpr int64_t kSumBlock = 16384;

  ir::Builder& b_;
  std::optional<GroupFold> fold_;
};

}  // namespace graft

// src/kernels/launch/line_loop.h: a kernel's way along lines that work-items take alone or share.
#pragma once

#include <optional>
#include <vector>

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
  using Values = std::vector<ir::Value>;

  // types: the most that one reduce() gives. Before the kernel's first loop or if.
  LineLoop(ir::Builder& builder, WorkMapping deal, const std::vector<ir::Type>& types)
      : b_(builder) {
    if (deal != WorkMapping::kSpans) fold_.emplace(b_, types, deal);
  }
  LineLoop(ir::Builder& builder, WorkMapping deal, ir::Type type)
      : LineLoop(builder, deal, std::vector<ir::Type>{type}) {}

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

  // The elements map(element) of a line, combined from first on, the neutral ones; in every
  // work-item. Long lines in blocks: a rounded sum is off by at most the roundoff of as many
  // additions as a block has in a lane, and of as many as there are blocks. accumulators: as in
  // ir::fold(). Outside of ifs.
  template <class Map, class Combine>
  Values fold(const Values& first, ir::Value count, Map map, Combine combine,
              uint32_t accumulators = 64) {
    const auto step = [&](const Values& part, ir::Value i) { return combine(part, map(i)); };
    const std::vector<ir::Variable> totals(first.begin(), first.end());
    const auto in_block = [&](ir::Value begin) {
      const ir::Value end = ir::minimum(begin + kSumBlock, count);
      join(totals, combine,
           fold_ ? of_lane(first, begin, end, step)
                 : ir::fold(first, begin, end, step, combine, accumulators));
    };
    b_.loop(b_.i64(0), count, in_block, b_.i64(kSumBlock));
    const Values all(totals.begin(), totals.end());
    return fold_ ? fold_->fold(all, combine) : all;
  }

  // The same of one value.
  template <class Map, class Combine>
  ir::Value reduce(ir::Value first, ir::Value count, Map map, Combine combine,
                   uint32_t accumulators = 64) {
    const auto one = [&](ir::Value i) { return Values{map(i)}; };
    const auto two = [&](const Values& a, const Values& b) { return Values{combine(a[0], b[0])}; };
    return fold({first}, count, one, two, accumulators)[0];
  }

 private:
  static constexpr int64_t kSumBlock = 16384;

  template <class Combine>
  static void join(const std::vector<ir::Variable>& totals, Combine combine, const Values& values) {
    const Values joined = combine(Values(totals.begin(), totals.end()), values);
    for (size_t k = 0; k < totals.size(); ++k) totals[k] = joined[k];
  }

  template <class Step>
  Values of_lane(const Values& first, ir::Value begin, ir::Value end, Step step) {
    const std::vector<ir::Variable> parts(first.begin(), first.end());
    const auto element = [&](ir::Value i) {
      const Values next = step(Values(parts.begin(), parts.end()), i);
      for (size_t k = 0; k < parts.size(); ++k) parts[k] = next[k];
    };
    b_.loop(begin + fold_->lane(), end, element, b_.i64(kLanes));
    return {parts.begin(), parts.end()};
  }

  ir::Builder& b_;
  std::optional<GroupFold> fold_;
};

}  // namespace graft

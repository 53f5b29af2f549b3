// src/kernels/line_loop.h: a kernel's way along lines that work-items take alone or share.
#pragma once

#include <optional>

#include "codegen/local_array.h"
#include "kernels/lanes.h"
#include "kernels/work_split.h"

namespace graft {

inline ir::Family family_of(Deal deal) {
  return deal == Deal::kSpans ? ir::Family::kCpuLike : ir::Family::kGpuLike;
}

// Dealt out in spans, a work-item takes whole lines in vectors. Dealt out to lanes, a group of
// kLanes work-items takes a line, each every kLanes-th element of it: what one of them stores there
// it finds again, and a launch has a group for each line.
class LineLoop {
 public:
  // type: what reduce() gives. Before the kernel's first loop or if.
  LineLoop(ir::Builder& builder, Deal deal, ir::Type type) : b_(builder) {
    if (deal == Deal::kSpans) return;
    parts_.emplace(b_, type, kLanes);
    lane_ = cast(ir::Type::kI64, b_.local_item());
  }

  // body(line) for the lines of this work-item.
  template <class Body>
  void lines(ir::Value count, ir::Value per_item, Body body) {
    if (!parts_) return each_line(b_, count, per_item, body);
    body(b_.item() / kLanes);
  }

  // body(element) for each of a line's elements, independent of one another.
  template <class Body>
  void each(ir::Value count, Body body) {
    if (!parts_) return b_.vector_loop(b_.i64(0), count, body);
    b_.loop(lane_, count, body, b_.i64(kLanes));
  }

  // body() by one work-item for the line.
  template <class Body>
  void once(Body body) {
    if (!parts_) return body();
    b_.if_(lane_ == 0, body);
  }

  // The elements map(element) of a line, combined from first on, the neutral one; in every
  // work-item. accumulators: as in ir::reduce(). Outside of ifs.
  template <class Map, class Combine>
  ir::Value reduce(ir::Value first, ir::Value count, Map map, Combine combine,
                   uint32_t accumulators = 64) {
    if (!parts_) return ir::reduce(first, b_.i64(0), count, map, combine, accumulators);
    const ir::Variable total(first);
    each(count, [&](ir::Value i) { total = combine(total.get(), map(i)); });
    parts_->store(lane_, total.get());
    for (int64_t half = kLanes / 2; half > 0; half /= 2) {
      b_.barrier();
      b_.if_(lane_ < half, [&] {
        parts_->store(lane_, combine(parts_->load(lane_), parts_->load(lane_ + half)));
      });
    }
    b_.barrier();
    total = parts_->load(b_.i64(0));
    b_.barrier();  // the next one writes there again
    return total.get();
  }

 private:
  ir::Builder& b_;
  std::optional<ir::LocalArray> parts_;
  ir::Value lane_;
};

}  // namespace graft

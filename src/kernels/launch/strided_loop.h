// src/kernels/launch/strided_loop.h: the loops of kernels that visit elements one by one at any
// strides.
#pragma once

#include <vector>

#include "codegen/ir/builder.h"
#include "kernels/launch/loop_nest.h"
#include "kernels/launch/work_split.h"
#include "kernels/tensor/axes.h"

namespace graft {

// Six nested loops, the innermost one serial within a work-item. Used for work whose positions come
// from data, where wide vectors do not help.
inline constexpr int kStridedRank = 6;

// Appends the loops to the arguments and says how to launch. whole: one work-item does everything,
// in order. Throws Error UNSUPPORTED when axes (after merging) have more than kStridedRank loops.
WorkSplit append_loops(Arguments& arguments, Axes axes, bool whole = false);
// The same without merging: the last axis stays the innermost loop. together: so many lines, which
// follow one another, stay in one work-item.
WorkSplit append_loops_as_given(Arguments& arguments, const Axes& axes, bool whole = false,
                                int64_t together = 1);

// The kernel's side; constructed where append_loops stands in the order of the arguments.
class StridedLoop {
 public:
  StridedLoop(ir::Builder& b, int operands);

  // body(elements): the position of each operand's element, in row-major order of the axes.
  template <class Body>
  void each(Body body) {
    each_inner([&](const std::vector<ir::Value>&) {
      b_.loop(b_.i64(0), inner_size(), [&](ir::Value i) { body(moved(i)); });
    });
  }
  // body(first elements of the innermost loop); moved() goes on from there.
  template <class Body>
  void each_inner(Body body) {
    each_line(b_, nest_.rows(), nest_.rows_per_item(), [&](ir::Value line) {
      nest_.place(line);
      body(starts());
    });
  }
  std::vector<ir::Value> moved(ir::Value steps) const;
  ir::Value inner_size() const { return nest_.length(); }

 private:
  std::vector<ir::Value> starts() const;

  ir::Builder& b_;
  const int operands_;
  LoopNest nest_;
};

}  // namespace graft

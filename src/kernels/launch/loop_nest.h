// src/kernels/launch/loop_nest.h: the loops of kernels that go through tensors element by element.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codegen/ir/builder.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/lanes.h"
#include "kernels/tensor/axes.h"

namespace graft {

// How an operand lies along the innermost loop.
enum class AccessPattern : uint8_t {
  kScalar,    // no memory: a scalar of the launch
  kUniform,   // one element: stride 0
  kDense,     // stride 1
  kStrided,   // any stride, an argument of the launch
  kReversed,  // stride -1
  kSecond     // stride 2, inputs only: vectors load all and drop half
};

// What a kernel's loops are specialised on.
struct NestShape {
  struct Operand {
    AccessPattern walk = AccessPattern::kScalar;
    bool shifted = false;  // backwards along some loop: the first element is not the lowest
    uint16_t still = 0;    // bit k: outer loop k, counted from the outermost, does not move it
  };

  WorkMapping deal = WorkMapping::kSpans;
  int outer = 0;       // loops around the innermost one
  bool lines = false;  // a work-item, or dealt out to lanes a group of kLanes, takes whole rows
  int count = 0;
  Operand operands[kMaxStrides];  // those without memory included
};

// The elements from the lowest to the highest one that an operand walks.
struct Reach {
  int64_t extent;
  int64_t before;  // those of them that lie before its first one
};

// A kernel's loops, outermost first; operand counts those in memory.
Reach reach(std::span<const Axis> loops, int operand);

// How lanes take the elements: kLanes32 where every position, of complex numbers too, fits in
// int32.
WorkMapping lanes_of(std::span<const Axis> loops, int operands);

// Appends the numbers that LoopNest declares, in its order:
//  - length of the innermost loop; of lines in spans: rows (of the other loops together) and rows
//    per work-item; else the tile, how much of a row a work-item does
//  - with outer loops, but not of lines: rows, rows per work-item, work-items per row; or, dealt
//    out to lanes, one number instead of the three: the elements of all rows
//  - the sizes of the outer loops but the outermost
//  - for every operand in memory: its strides along the outer loops that move it, then, where its
//    walk is kStrided, along the innermost, then, where it is shifted, how many elements after its
//    lowest its first one lies
// Dealt out to lanes, the tile is that of kLanes work-items. Of kLanes32 all are int32. Returns the
// number of work-items, of lines in lanes that of groups.
int64_t append_nest(Arguments& arguments, const OpenDevice& device, const NestShape& shape,
                    std::span<const Axis> loops);

// Those of the sizes and strides alone.
void append_strides(Arguments& arguments, const NestShape& shape, std::span<const Axis> loops);

// The kernel's side: constructed where append_nest stands in the order of the arguments.
class LoopNest {
 public:
  LoopNest(ir::Builder& b, const NestShape& shape);

  // element(position along the innermost loop) for the elements of this work-item, and row() before
  // the first one of a row, as often as that is at hand. Not of lines.
  template <class Row, class Element>
  void each(Row row, Element element) {
    shape_.deal == WorkMapping::kSpans ? spans(row, element) : lanes(row, element);
  }

  // Of lines: goes to a row. A group's count and what a work-item takes are not declared.
  void place(ir::Value row);
  ir::Value rows() const { return rows_; }
  ir::Value rows_per_item() const { return rows_per_item_; }

  // In a row: the innermost loop's length, an operand's first element, that at a position.
  ir::Value length() const { return length_; }
  ir::Value first(int operand) const;
  ir::Value element(int operand, ir::Value position) const;

 private:
  struct Operand {
    std::vector<ir::Value> strides;  // along the outer loops; not set: does not move
    ir::Value inner;                 // stride
    ir::Value start;                 // of a shifted operand
    ir::Value offset;                // of the row; not set: 0
  };

  static bool is_set(ir::Value value) { return value.id() != ir::kNoId; }
  ir::Value index();

  template <class Row, class Element>
  void spans(Row row, Element element) {
    if (shape_.outer == 0) {
      const ir::Value begin = b_.item() * tile_;
      const ir::Value end = minimum(begin + tile_, length_);
      row();
      return b_.vector_loop(begin, end, element);
    }
    const ir::Value item = b_.item();
    const ir::Value first = item / items_per_row_ * rows_per_item_;
    const ir::Value begin = (item % items_per_row_) * tile_;
    const ir::Value end = minimum(begin + tile_, length_);
    b_.loop(first, minimum(first + rows_per_item_, rows_), [&](ir::Value at) {
      place(at);
      row();
      b_.vector_loop(begin, end, element);
    });
  }

  // Of the elements that kLanes work-items share each takes every kLanes-th, of whatever row.
  template <class Row, class Element>
  void lanes(Row row, Element element) {
    const bool flat = shape_.outer == 0;
    const ir::Value item = cast(length_.type(), b_.item());
    const ir::Value first = item / kLanes * tile_, lane = item % kLanes;
    if (flat) row();
    const auto taken = [&](ir::Value at) {
      if (flat) return element(at);
      place(at / length_);
      row();
      element(at % length_);
    };
    b_.loop(first + lane, minimum(first + tile_, flat ? length_ : all_), taken,
            like(first, kLanes));
  }

  ir::Builder& b_;
  const NestShape shape_;
  std::vector<Operand> operands_;
  std::vector<ir::Value> sizes_;
  ir::Value length_, tile_, rows_, rows_per_item_, items_per_row_, all_;
};

}  // namespace graft

// src/kernels/launch/work_split.h: how many lines one work-item of a CPU-like launch takes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "codegen/ir/builder.h"

namespace graft {

struct WorkSplit {
  int64_t lines = 0;
  int64_t per_item = 1;
  int64_t grid = 0;
};

// Elements that are worth a work-item of their own: below that, waking a thread costs more.
inline constexpr int64_t kItemElements = 8192;

// Groups lines of the given number of elements so that an item has kItemElements of work.
inline WorkSplit split_work(int64_t lines, int64_t elements_per_line) {
  WorkSplit split;
  split.lines = lines;
  split.per_item = std::max<int64_t>(1, kItemElements / std::max<int64_t>(1, elements_per_line));
  split.grid = (lines + split.per_item - 1) / split.per_item;
  return split;
}

// The kernel's side: body(line) for the lines of this work-item.
template <class Body>
void each_line(ir::Builder& b, ir::Value lines, ir::Value per_item, Body body) {
  const ir::Value begin = b.item() * per_item;
  b.loop(begin, ir::minimum(begin + per_item, lines), body);
}

}  // namespace graft

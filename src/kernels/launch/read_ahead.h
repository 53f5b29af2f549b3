// src/kernels/launch/read_ahead.h: prefetching by kernels that read each byte of a matrix once.
#pragma once

#include <cstdint>

#include "codegen/ir/builder.h"

namespace graft {

// How far before it reads a byte such a kernel prefetches it, of all lines that it reads side by
// side together. A processor's own prefetching ends with a page of 4 KiB, whose successor then
// begins with a wait for memory.
inline constexpr int64_t kBytesAhead = 4096;

// Where in its lines, or in those of its next item, a work-item that is at an element of each soon
// is: by elements further. next: from a line to the one in its place in the next item.
inline ir::Value soon(ir::Value at, int64_t by, ir::Value length, ir::Value next) {
  const ir::Value later = at + by;
  return select(later < length, later, later - length + next);
}

}  // namespace graft

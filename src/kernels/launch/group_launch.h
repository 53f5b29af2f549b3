// src/kernels/launch/group_launch.h: launches of kernels whose work-items share local memory.
#pragma once

#include "kernels/launch/arguments.h"
#include "runtime/stream/stream.h"

namespace graft {

// count groups of items work-items each.
inline void launch_groups(Stream& stream, graft_kernel kernel, int64_t count, int64_t items,
                          const Arguments& arguments) {
  graft_launch launch{};
  launch.struct_size = sizeof(launch);
  launch.grid[0] = static_cast<uint64_t>(count);
  launch.grid[1] = launch.grid[2] = 1;
  launch.group[0] = static_cast<uint32_t>(items);
  launch.group[1] = launch.group[2] = 1;
  launch.argument_count = static_cast<uint32_t>(arguments.span().size());
  launch.arguments = arguments.span().data();
  stream.launch(kernel, launch);
}

}  // namespace graft

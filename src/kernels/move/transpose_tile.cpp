// src/kernels/move/transpose_tile.cpp: the transposing kernel of GPU-like devices.
#include "kernels/move/transpose_tile.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/ir/local_array.h"
#include "kernels/launch/lanes.h"
#include "runtime/driver/dtype.h"

namespace graft {

using namespace ir;

namespace {

constexpr int64_t kLine = kTurnSide + 1, kElements = kTurnSide * kLine;
constexpr int64_t kMostItems = 256;

}  // namespace

int64_t turn_group(const OpenDevice& device, graft_dtype dtype) {
  const graft_device_properties& has = device.properties();
  const bool fits = has.local_memory_bytes >= static_cast<uint64_t>(kElements) * size_of(dtype);
  if (!is_gpu_like(device) || !fits) return 0;
  int64_t group = kMostItems;
  while (group > has.max_group_size) group /= 2;
  return group >= kTurnSide ? group : 0;
}

std::string turn_key(graft_dtype dtype, int64_t group) {
  return fmt::format("transpose_tile_{}_{}", name_of(dtype), group);
}

ir::Kernel turn_kernel(graft_dtype dtype, int64_t group) {
  Builder b(turn_key(dtype, group), ir::Family::kGpuLike);
  const ir::Address to = b.write(dtype), from = b.read(dtype);
  const Value rows = b.index(), columns = b.index();
  const Value to_stride = b.index(), from_stride = b.index();
  const Value row_blocks = b.index(), inner = b.index();
  const Value to_outer = b.index(), to_inner = b.index();
  const Value from_outer = b.index(), from_inner = b.index();
  const ir::LocalArray square(b, ir::compute_type(dtype), kElements);
  const Value block = b.item() / group, rest = block / row_blocks;
  const Value column_blocks = (columns + (kTurnSide - 1)) / kTurnSide;
  const Value row = block % row_blocks * kTurnSide, column = rest % column_blocks * kTurnSide;
  const Value matrix = rest / column_blocks;
  const Value outer_at = matrix / inner, inner_at = matrix % inner;
  const Value to_base = outer_at * to_outer + inner_at * to_inner;
  const Value from_base = outer_at * from_outer + inner_at * from_inner;
  const Value local = cast(ir::Type::kI64, b.local_item());
  const Value along = local % kTurnSide, line = local / kTurnSide;
  const int64_t lines = group / kTurnSide;
  const Value source_row = row + along, target_column = column + along;
  for (int64_t i = 0; i < kTurnSide; i += lines) {
    const Value at = column + (line + i);
    b.if_((source_row < rows) & (at < columns), [&] {
      square.store((line + i) * kLine + along,
                   from.load(from_base + source_row + at * from_stride));
    });
  }
  b.barrier();
  for (int64_t i = 0; i < kTurnSide; i += lines) {
    const Value at = row + (line + i);
    b.if_((at < rows) & (target_column < columns), [&] {
      to.store(to_base + at * to_stride + target_column, square.load(along * kLine + (line + i)));
    });
  }
  return b.finish();
}

}  // namespace graft

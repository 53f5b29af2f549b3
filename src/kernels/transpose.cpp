// src/kernels/transpose.cpp: copies between views whose dense dimensions differ.
#include "kernels/transpose.h"

#include <fmt/format.h>

#include "codegen/builder.h"
#include "codegen/program_cache.h"

namespace graft {

namespace {

using ir::Builder;
using ir::Lanes;
using ir::Value;

constexpr int kBlock = 16;
// Blocks that one work-item does side by side: where lines of from are far apart, it reads longer
// pieces of each.
constexpr int kItemBlocks = 4;
constexpr int kItemRows = kBlock * kItemBlocks;
constexpr int kMaxOuter = 2;

std::string key_of(graft_dtype dtype) { return fmt::format("transpose_{}", name_of(dtype)); }

// Arguments: to, from; rows and columns of the matrix in to, where columns are dense in to and rows
// dense in from; stride of rows in to, of columns in from; groups of kItemRows rows; size of the
// inner outer loop; strides of both outer loops in to, then in from. One work-item does one such
// group, all columns.
ir::Kernel transpose_kernel(graft_dtype dtype) {
  Builder b(key_of(dtype));
  const ir::Address to = b.write(dtype), from = b.read(dtype);
  const Value rows = b.index(), columns = b.index();
  const Value to_stride = b.index(), from_stride = b.index();
  const Value row_blocks = b.index(), inner = b.index();
  const Value to_outer = b.index(), to_inner = b.index();
  const Value from_outer = b.index(), from_inner = b.index();
  const Value item = b.item();
  const Value matrix = item / row_blocks, first_row = item % row_blocks * kItemRows;
  const Value end_row = minimum(first_row + kItemRows, rows);
  const Value outer_at = matrix / inner, inner_at = matrix % inner;
  const Value to_base = outer_at * to_outer + inner_at * to_inner;
  const Value from_base = outer_at * from_outer + inner_at * from_inner;
  const Value zero = b.i64(0);
  const Lanes block(b, ir::compute_type(dtype), kBlock * kBlock);
  const auto block_at = [&](Value column, Value row) {
    const Value width = minimum(columns - column, b.i64(kBlock));
    const Value height = minimum(rows - row, b.i64(kBlock));
    b.loop(zero, width, [&](Value x) {
      const Value line = from_base + row + (column + x) * from_stride;
      b.vector_loop(zero, height,
                    [&](Value y) { block.store(x * kBlock + y, from.load(line + y)); });
    });
    b.loop(zero, height, [&](Value y) {
      const Value line = to_base + (row + y) * to_stride + column;
      b.vector_loop(zero, width, [&](Value x) { to.store(line + x, block.load(x * kBlock + y)); });
    });
  };
  const Value step = b.i64(kBlock);
  b.loop(
      zero, columns,
      [&](Value column) {
        b.loop(
            first_row, end_row, [&](Value row) { block_at(column, row); }, step);
      },
      step);
  return b.finish();
}

const PackEntry pack([](const PackEntry::Sink& add) {
  for (graft_dtype dtype : {GRAFT_UINT8, GRAFT_INT16, GRAFT_INT32, GRAFT_INT64}) {
    add(key_of(dtype), [dtype] { return transpose_kernel(dtype); });
  }
});

}  // namespace

bool transpose(Stream& stream, const TensorView& to, const TensorView& from,
               const PointwiseLoops& loops) {
  if (loops.rank < 2 || loops.rank > 2 + kMaxOuter || is_complex(to.dtype)) return false;
  int dense = 0;  // loop along which from is dense
  while (dense < loops.rank && loops.strides[1][dense] != 1) ++dense;
  if (dense == 0 || dense == loops.rank || loops.strides[0][0] != 1) return false;
  if (loops.sizes[0] < kBlock / 2 || loops.sizes[dense] < kBlock / 2) return false;
  int64_t outer_size[kMaxOuter] = {1, 1}, outer_to[kMaxOuter] = {}, outer_from[kMaxOuter] = {};
  for (int k = 1, n = 0; k < loops.rank; ++k) {
    if (k == dense) continue;
    outer_size[n] = loops.sizes[k];
    outer_to[n] = loops.strides[0][k];
    outer_from[n++] = loops.strides[1][k];
  }
  const int64_t row_blocks = (loops.sizes[dense] + kItemRows - 1) / kItemRows;
  const int64_t indices[] = {loops.sizes[dense],  loops.sizes[0], loops.strides[0][dense],
                             loops.strides[1][0], row_blocks,     outer_size[0],
                             outer_to[1],         outer_to[0],    outer_from[1],
                             outer_from[0]};
  const uint64_t bytes = size_of(to.dtype);
  graft_argument arguments[2 + std::size(indices)] = {
      {GRAFT_ARGUMENT_ADDRESS, 0, GRAFT_ACCESS_WRITE, 0, to.address,
       static_cast<uint64_t>(loops.extent(0, loops.rank)) * bytes},
      {GRAFT_ARGUMENT_ADDRESS, 0, GRAFT_ACCESS_READ, 0, from.address,
       static_cast<uint64_t>(loops.extent(1, loops.rank)) * bytes}};
  for (size_t i = 0; i < std::size(indices); ++i) {
    arguments[2 + i] = {
        GRAFT_ARGUMENT_SCALAR, GRAFT_INT64, 0, 0, static_cast<uint64_t>(indices[i]), 8};
  }
  const graft_dtype dtype = to.dtype;
  const graft_kernel kernel =
      get_kernel(stream.device(), key_of(dtype), [&] { return transpose_kernel(dtype); });
  stream.launch(kernel, static_cast<uint64_t>(row_blocks * outer_size[0] * outer_size[1]),
                arguments);
  return true;
}

}  // namespace graft

// src/kernels/move/transpose.cpp: copies between views whose dense dimensions differ.
#include "kernels/move/transpose.h"

#include <fmt/format.h>

#include "codegen/cache/program_cache.h"
#include "codegen/ir/builder.h"
#include "kernels/launch/loop_nest.h"
#include "kernels/move/transpose_tile.h"

namespace graft {

namespace {

using namespace ir;

// Rows that one work-item does: where lines of from are far apart, it reads longer pieces of each.
constexpr int kItemRows = 64;
constexpr int kShortest = 8;  // of both loops; shorter ones are copied element by element
constexpr int kMaxOuter = 2;

// Side of the square blocks: a cache line of the wider dtypes.
int block_of(graft_dtype dtype) { return size_of(dtype) <= 2 ? 32 : 16; }

// A square block between two private arrays. A perfect shuffle, which alternates the elements of
// both halves, rotates the bits of their positions by one; half of the bits bring rows to columns
// (Stone: "Parallel processing with the perfect shuffle", IEEE Trans. Computers, 1971). It runs in
// wide vectors, which picking columns out of rows does not.
class BlockTranspose {
 public:
  BlockTranspose(Builder& b, graft_dtype dtype)
      : b_(b),
        side_(block_of(dtype)),
        lanes_{Lanes(b, ir::compute_type(dtype), static_cast<uint32_t>(side_ * side_)),
               Lanes(b, ir::compute_type(dtype), static_cast<uint32_t>(side_ * side_))} {}

  const Lanes& input() const { return lanes_[0]; }
  // Appends the shuffles; gives where the result lies.
  const Lanes& run() const {
    const int64_t half = side_ * side_ / 2;
    int from = 0;
    for (int64_t size = 1; size < side_; size *= 2, from = 1 - from) {
      const Lanes &in = lanes_[from], &out = lanes_[1 - from];
      b_.vector_loop(b_.i64(0), b_.i64(half), [&](Value i) {
        out.store(i * 2, in.load(i));
        out.store(i * 2 + 1, in.load(i + half));
      });
    }
    return lanes_[from];
  }

 private:
  Builder& b_;
  int64_t side_;
  Lanes lanes_[2];
};

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
  const Value zero = b.i64(0), step = b.i64(block_of(dtype));
  const int64_t side = block_of(dtype);
  const BlockTranspose block(b, dtype);
  const auto block_at = [&](Value column, Value row) {
    const Value width = minimum(columns - column, step), height = minimum(rows - row, step);
    b.loop(zero, width, [&](Value x) {
      const Value line = from_base + row + (column + x) * from_stride;
      b.vector_loop(zero, height,
                    [&](Value y) { block.input().store(x * side + y, from.load(line + y)); });
    });
    const Lanes& turned = block.run();
    b.loop(zero, height, [&](Value y) {
      const Value line = to_base + (row + y) * to_stride + column;
      b.vector_loop(zero, width, [&](Value x) { to.store(line + x, turned.load(y * side + x)); });
    });
  };
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

bool transpose(Stream& stream, const TensorView& to, const TensorView& from, const Axes& axes) {
  if (axes.rank < 2 || axes.rank > 2 + kMaxOuter || is_complex(to.dtype)) return false;
  const Axis& columns = axes.at[axes.rank - 1];
  int dense = axes.rank - 2;  // loop along which from is dense
  while (dense >= 0 && axes.at[dense].strides[1] != 1) --dense;
  if (dense < 0 || columns.strides[1] == 1 || columns.strides[0] != 1) return false;
  const Axis& rows = axes.at[dense];
  if (columns.size < kShortest || rows.size < kShortest) return false;
  Axis outer[kMaxOuter];  // from the innermost
  for (int k = axes.rank - 2, n = 0; k >= 0; --k) {
    if (k != dense) outer[n++] = axes.at[k];
  }
  const graft_dtype dtype = to.dtype;
  const int64_t group = turn_group(stream.device(), dtype);
  const int64_t block_rows = group == 0 ? kItemRows : kTurnSide;
  const int64_t row_blocks = (rows.size + block_rows - 1) / block_rows;
  const uint64_t bytes = size_of(to.dtype);
  Arguments arguments;
  arguments.address(to.address, static_cast<uint64_t>(reach(axes.span(), 0).extent) * bytes,
                    GRAFT_ACCESS_WRITE);
  arguments.address(from.address, static_cast<uint64_t>(reach(axes.span(), 1).extent) * bytes,
                    GRAFT_ACCESS_READ);
  for (int64_t index :
       {rows.size, columns.size, rows.strides[0], columns.strides[1], row_blocks, outer[0].size,
        outer[1].strides[0], outer[0].strides[0], outer[1].strides[1], outer[0].strides[1]}) {
    arguments.index(index);
  }
  const int64_t grid = row_blocks * outer[0].size * outer[1].size;
  if (group == 0) {
    launch_kernel(stream, key_of(dtype), grid, arguments, [&] { return transpose_kernel(dtype); });
  } else {
    const int64_t column_blocks = (columns.size + kTurnSide - 1) / kTurnSide;
    const auto make = [&] { return turn_kernel(dtype, group); };
    launch_kernel(stream, turn_key(dtype, group), grid * column_blocks, arguments, make, group);
  }
  return true;
}

}  // namespace graft

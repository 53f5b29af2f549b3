// src/kernels/matmul/panels.cpp: matrices laid out for register-blocked products, in float32.
#include "kernels/matmul/panels.h"

#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

// Depths that are packed in one go: their lines stay in the first cache.
constexpr int64_t kDepths = 64;

// Which elements of a matrix are neighbours in memory.
enum class Dense { kNone, kLines, kDepths };

struct PanelsKernel {
  graft_dtype dtype;
  Dense dense;
  int64_t width;

  std::string key() const {
    static const char* const kNames[] = {"any_", "lines_", "depths_"};
    return std::string("pack_panels_") + kNames[static_cast<int>(dense)] + std::to_string(width) +
           "_" + name_of(dtype);
  }

  ir::Kernel build() const {
    Builder b(key());
    const Address to = b.write(GRAFT_FLOAT32), from = b.read(dtype);
    const Value blocks = b.index(), per_item = b.index(), lines = b.index(), depth = b.index();
    const Value batch_stride = b.index();
    Value line_stride = b.index(), depth_stride = b.index();
    if (dense == Dense::kLines) line_stride = b.i64(1);
    if (dense == Dense::kDepths) depth_stride = b.i64(1);
    const Value chunks = (depth + (kDepths - 1)) / kDepths, panels = (lines + (width - 1)) / width;
    each_line(b, blocks, per_item, [&](Value block) {
      const Value first = block % chunks * kDepths, rest = block / chunks;
      const Value last = ir::minimum(depth, first + kDepths), panel = rest % panels;
      const Value used = ir::minimum(lines - panel * width, b.i64(width));
      const Value source = rest / panels * batch_stride + panel * width * line_stride;
      b.loop(first, last, [&](Value k) {
        const Value target = (rest * depth + k) * width, at = source + k * depth_stride;
        const auto copy = [&](Value i) { to.store(target + i, from.load(at + i * line_stride)); };
        b.if_(
            used == width, [&] { b.vector_loop(b.i64(0), b.i64(width), copy); },
            [&] {
              b.vector_loop(b.i64(0), used, copy);
              b.vector_loop(used, b.i64(width), [&](Value i) { to.store(target + i, b.f32(0)); });
            });
      });
    });
    return b.finish();
  }
};

int64_t panels_of(const TensorView& matrix, int lines, int64_t width) {
  return (matrix.sizes[lines] + width - 1) / width;
}

// The other one of the last two dimensions.
int across(const TensorView& matrix, int depth) { return 2 * matrix.rank - 3 - depth; }

// Those of the batch that differ.
int64_t matrices(const TensorView& matrix) {
  return matrix.rank == 2 || matrix.strides[0] == 0 ? 1 : matrix.sizes[0];
}

}  // namespace

Panels::Panels(Stream& stream, const TensorView& matrix, int depth, int64_t width)
    : batch_stride_(panels_of(matrix, across(matrix, depth), width) * width * matrix.sizes[depth]),
      bytes_(static_cast<uint64_t>(batch_stride_ * matrices(matrix)) * sizeof(float)),
      workspace_(stream, bytes_) {
  const int lines = across(matrix, depth);
  const int64_t count = matrices(matrix);
  const int64_t chunks = (matrix.sizes[depth] + kDepths - 1) / kDepths;
  const WorkSplit split =
      split_work(panels_of(matrix, lines, width) * count * chunks, width * kDepths);
  Arguments arguments;
  arguments.address(address(), bytes_, GRAFT_ACCESS_WRITE).read(matrix);
  arguments.indices({split.lines, split.per_item, matrix.sizes[lines], matrix.sizes[depth],
                     count == 1 ? 0 : matrix.strides[0], matrix.strides[lines],
                     matrix.strides[depth]});
  const Dense dense = matrix.strides[lines] == 1   ? Dense::kLines
                      : matrix.strides[depth] == 1 ? Dense::kDepths
                                                   : Dense::kNone;
  const PanelsKernel kernel{matrix.dtype, dense, width};
  launch_kernel(stream, kernel, split.grid, arguments);
  if (count == 1) batch_stride_ = 0;
}

}  // namespace graft

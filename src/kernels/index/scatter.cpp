// src/kernels/index/scatter.cpp: writing elements to positions along one dimension.
#include "codegen/cache/program_cache.h"
#include "kernels/index/index.h"
#include "kernels/launch/checked_index.h"
#include "kernels/launch/strided_loop.h"
#include "kernels/launch/workspace.h"
#include "kernels/move/copy.h"
#include "kernels/operation/offer.h"
#include "kernels/tensor/raw_dtype.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

const char* name_of_mode(ScatterMode mode) {
  switch (mode) {
    case ScatterMode::kReplace:
      return "replace";
    case ScatterMode::kAdd:
      return "add";
    case ScatterMode::kMultiply:
      return "multiply";
    case ScatterMode::kMax:
      return "max";
    case ScatterMode::kMin:
      return "min";
  }
  return "";
}

Value combined(ScatterMode mode, Value before, Value x) {
  switch (mode) {
    case ScatterMode::kReplace:
      return x;
    // Logical or is the sum of booleans, and the product.
    case ScatterMode::kAdd:
      return x.type() == ir::Type::kBool ? before | x : before + x;
    case ScatterMode::kMultiply:
      return x.type() == ir::Type::kBool ? before & x : before * x;
    case ScatterMode::kMax:
      return ir::maximum(before, x);
    case ScatterMode::kMin:
      return ir::minimum(before, x);
  }
  return x;
}

struct ScatterKernel {
  ScatterMode mode;
  graft_dtype data, source, index;
  bool pairs;  // elements are two of data: parts of complex numbers, or halves of moved ones
  bool dense = false;  // all three lie side by side along the indexed dimension

  std::string key() const {
    return std::string("scatter_") + name_of_mode(mode) + (pairs ? "_pairs_" : "_") +
           (dense ? "dense_" : "") + name_of(data) + "_" + name_of(source) + "_" + name_of(index);
  }

  ir::Kernel build() const {
    Builder b(key());
    const Address to = b.update(data), indices = b.read(index), from = b.read(source);
    const IndexChecker checker(b);
    const Value size = b.index(), stride = b.index();
    StridedLoop loop(b, 3);
    const auto element = [&](Value line, Value position, Value at_source) {
      const Value target = line + (dense ? position : position * stride);
      if (pairs) return pair(to, from, target * 2, at_source * 2);
      const Value x = from.load(at_source);
      to.store(target, mode == ScatterMode::kReplace ? x : combined(mode, to.load(target), x));
    };
    if (!dense) {
      loop.each([&](const std::vector<Value>& at) {
        element(at[0], checker.check(indices.load(at[1]), size, false), at[2]);
      });
      return b.finish();
    }
    loop.each_inner([&](const std::vector<Value>& first) {
      checker.each(
          b.i64(0), loop.inner_size(), size, [&](Value i) { return indices.load(first[1] + i); },
          [&](Value i, Value position) { element(first[0], position, first[2] + i); });
    });
    return b.finish();
  }

 private:
  void pair(const Address& to, const Address& from, Value target, Value source) const {
    const Value x = from.load(source), y = from.load(source + 1);
    if (mode == ScatterMode::kReplace) {
      to.store(target, x);
      return to.store(target + 1, y);
    }
    const Value a = to.load(target), c = to.load(target + 1);
    const bool times = mode == ScatterMode::kMultiply;
    to.store(target, times ? a * x - c * y : a + x);
    to.store(target + 1, times ? a * y + c * x : c + y);
  }
};

// Numbers of a row that one work-item takes side by side, and of the shortest row worth it.
constexpr int64_t kRowBlock = 256, kShortestRow = 16;

// The same where one index names a dense row of numbers (pairs of complex numbers are two): a line
// takes a block of columns through all indices, in order.
struct RowKernel {
  ScatterMode mode;
  graft_dtype data, source, index;

  std::string key() const {
    return std::string("scatter_rows_") + name_of_mode(mode) + "_" + name_of(data) + "_" +
           name_of(source) + "_" + name_of(index);
  }

  ir::Kernel build() const {
    Builder b(key());
    const Address to = b.update(data), indices = b.read(index), from = b.read(source);
    const IndexChecker checker(b);
    const Value size = b.index(), stride = b.index(), columns = b.index();
    StridedLoop loop(b, 4);
    loop.each([&](const std::vector<Value>& at) {
      const Value width = ir::minimum(columns - at[3], b.i64(kRowBlock));
      const Value target = at[0] + checker.check(indices.load(at[1]), size, false) * stride;
      b.vector_loop(b.i64(0), width, [&](Value k) {
        const Value x = from.load(at[2] + k);
        const Value place = target + k;
        to.store(place, mode == ScatterMode::kReplace ? x : combined(mode, to.load(place), x));
      });
    });
    return b.finish();
  }
};

ScatterKernel kernel_for(ScatterMode mode, graft_dtype data, graft_dtype source,
                         graft_dtype index) {
  if (mode == ScatterMode::kReplace) {
    return {mode, raw_dtype(data), raw_dtype(data), index, raw_width(data) == 2};
  }
  if (is_complex(data) && (mode == ScatterMode::kMax || mode == ScatterMode::kMin)) {
    throw Error(GRAFT_UNSUPPORTED, "scatter: complex numbers have no order; give a real dtype");
  }
  return {mode, part_of(data), part_of(source), index, is_complex(data)};
}

// The axis along which one index names neighbours in both tensors; -1 when there is none.
int find_rows(const Axes& axes) {
  for (int i = 0; i < axes.rank; ++i) {
    const Axis& axis = axes.at[i];
    const bool dense = axis.strides[0] == 1 && axis.strides[1] == 0 && axis.strides[2] == 1;
    if (dense && axis.size >= kShortestRow) return i;
  }
  return -1;
}

// Turns that axis into one of blocks and counts elements in numbers, width to an element. Operand 3
// is the column. Returns the columns.
int64_t cut_rows(Axes* axes, int rows, int64_t width) {
  const int64_t columns = axes->at[rows].size * width;
  for (int i = 0; i < axes->rank; ++i) {
    axes->at[i].strides[0] *= width;
    axes->at[i].strides[2] *= width;
  }
  axes->operands = 4;
  axes->at[rows] = {(columns + kRowBlock - 1) / kRowBlock, {kRowBlock, 0, kRowBlock, kRowBlock}};
  return columns;
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  for (bool dense : {false, true}) {
    const ScatterKernel single{ScatterMode::kAdd, GRAFT_FLOAT32, GRAFT_FLOAT32,
                               GRAFT_INT64,       false,         dense};
    PackEntry::put(add, single);
  }
  for (graft_dtype data : {GRAFT_INT32, GRAFT_INT64}) {
    for (bool dense : {false, true}) {
      PackEntry::put(add,
                     ScatterKernel{ScatterMode::kReplace, data, data, GRAFT_INT64, false, dense});
    }
  }
  PackEntry::put(add, RowKernel{ScatterMode::kAdd, GRAFT_FLOAT32, GRAFT_FLOAT32, GRAFT_INT64});
});

// Sums of a half type by way of float32, rounded once.
void scatter_wide(Stream& stream, const TensorView& to, int dim, const TensorView& index,
                  const TensorView& from) {
  const ScratchTensor sums(stream, to, GRAFT_FLOAT32);
  copy(stream, sums.view(), to);
  scatter(stream, sums.view(), dim, index, from, ScatterMode::kAdd);
  copy(stream, to, sums.view());
}

}  // namespace

void scatter(Stream& stream, const TensorView& to, int dim, const TensorView& index,
             const TensorView& from, ScatterMode mode) {
  if (offer(stream, Operation::scatter, [&](VendorCall& offered) {
        offered.write(to).read(index).read(from).integers({dim, static_cast<int>(mode)});
      }))
    return;
  if (index.count() == 0) return;
  if (to.rank > 0) require_elements(to.sizes[dim], dim);
  if (mode == ScatterMode::kAdd && is_half(to.dtype) && index.count() >= to.count() / 4) {
    return scatter_wide(stream, to, dim, index, from);
  }
  // The indexed dimension is the innermost, serial loop: one work-item owns a target line.
  Axes axes;
  axes.operands = 3;
  Axis along;
  for (int d = 0; d < index.rank; ++d) {
    Axis axis;
    axis.size = index.sizes[d];
    axis.strides[0] = d == dim ? 0 : to.strides[d];
    axis.strides[1] = index.strides[d];
    axis.strides[2] = from.strides[d];
    if (d == dim) {
      along = axis;
    } else if (axis.size != 1) {
      axes.push(axis);
    }
  }
  axes.merge();
  const int rows = find_rows(axes);
  axes.push(along);
  ScatterKernel kernel = kernel_for(mode, to.dtype, from.dtype, index.dtype);
  kernel.dense =
      to.rank > 0 && to.strides[dim] == 1 && along.strides[1] == 1 && along.strides[2] == 1;
  const bool part_by_part = mode == ScatterMode::kAdd || mode == ScatterMode::kReplace;
  const bool by_rows = rows >= 0 && (!kernel.pairs || part_by_part);
  const int64_t width = by_rows && kernel.pairs ? 2 : 1;
  Arguments arguments;
  arguments.update(to).read(index).read(from);
  append_checker(arguments, stream);
  arguments.indices({to.rank > 0 ? to.sizes[dim] : 1, to.rank > 0 ? to.strides[dim] * width : 0});
  if (by_rows) arguments.index(cut_rows(&axes, rows, width));
  const WorkSplit split = append_loops_as_given(arguments, axes);
  if (!by_rows) return launch_kernel(stream, kernel, split.grid, arguments);
  const RowKernel by_row{mode, kernel.data, kernel.source, kernel.index};
  launch_kernel(stream, by_row, split.grid, arguments);
}

}  // namespace graft

// src/kernels/matmul/thin_matmul.cpp: products of a few rows, each element a sum along dense lines.
#include "kernels/matmul/thin_matmul.h"

#include <utility>

#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/matmul/kernel.h"
#include "kernels/move/staging.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using ir::Address;
using ir::Builder;
using ir::Value;
using ir::Values;

constexpr int64_t kThin = 7;    // rows that are summed side by side
constexpr int64_t kDepth = 32;  // below it there is too little to sum

struct ThinKernel {
  graft_dtype output, left, right;
  bool adds;
  int64_t rows;

  std::string key() const {
    std::string key = std::string(adds ? "matmul_thin_add_" : "matmul_thin_") +
                      std::to_string(rows) + "_" + name_of(output);
    if (left != output || right != output) {
      key += std::string("_") + name_of(left) + "_" + name_of(right);
    }
    return key;
  }

  ir::Kernel build() const {
    Builder b(key());
    const ir::Type type = ir::compute_type(output);
    const Address to = b.write(output), from = b.read(left), lines_from = b.read(right);
    const Address addend = adds ? b.read(output) : from;
    const Value lines = b.index(), per_item = b.index(), n = b.index(), k = b.index();
    const Value relu = b.index(), row = b.index();
    const Value left_batch = b.index(), right_batch = b.index(), column = b.index();
    Value c[3], d[3];
    for (Value* strides : {c, d}) {
      for (int i = 0; i < 3; ++i) strides[i] = b.index();
    }
    const Value alpha = cast(type, b.scalar(GRAFT_FLOAT64));
    const Value beta = cast(type, b.scalar(GRAFT_FLOAT64));
    each_line(b, lines, per_item, [&](Value line) {
      const Value j = line % n, batch = line / n;
      const Value x = batch * left_batch, y = batch * right_batch + j * column;
      const Values zeros(static_cast<size_t>(rows), b.constant(type, 0));
      const auto step = [&](const Values& sums, Value i) {
        const Value factor = cast(type, lines_from.load(y + i));
        Values next;
        for (int64_t r = 0; r < rows; ++r) {
          const Value other = cast(type, from.load(x + row * r + i));
          next.push_back(sums[static_cast<size_t>(r)] + other * factor);
        }
        return next;
      };
      const auto combine = [&](const Values& sums, const Values& more) {
        Values next;
        for (size_t r = 0; r < sums.size(); ++r) next.push_back(sums[r] + more[r]);
        return next;
      };
      const Values sums = ir::fold(zeros, b.i64(0), k, step, combine, 16);
      for (int64_t r = 0; r < rows; ++r) {
        Value value = sums[static_cast<size_t>(r)] * alpha;
        if (adds) value = value + beta * addend.load(batch * d[0] + d[1] * r + j * d[2]);
        const Value low = select(value < 0, 0, value);
        to.store(batch * c[0] + c[1] * r + j * c[2], select(relu != 0, low, value));
      }
    });
    return b.finish();
  }
};

TensorView transposed(TensorView view) {
  const int last = view.rank - 1;
  std::swap(view.sizes[last], view.sizes[last - 1]);
  std::swap(view.strides[last], view.strides[last - 1]);
  return view;
}

// a: few rows; b: every column dense.
void run(Stream& stream, const TensorView& output, const TensorView& a, const TensorView& b,
         const MatmulEpilogue& epilogue) {
  const int last = output.rank - 1;
  const int64_t m = output.sizes[last - 1], n = output.sizes[last], k = a.sizes[last];
  const int64_t batch = output.rank == 3 ? output.sizes[0] : 1;
  const bool adds = epilogue.beta != 0.0;
  const StagedInput left(stream, a, a.strides[last] != 1);
  const TensorView& rows = left.view();
  const WorkSplit split = split_work(batch * n, m * k);
  Arguments arguments;
  arguments.write(output).read(rows).read(b);
  if (adds) arguments.read(*epilogue.addend);
  arguments.index(split.lines).index(split.per_item).index(n).index(k);
  arguments.index(epilogue.relu ? 1 : 0).index(rows.strides[last - 1]);
  arguments.index(output.rank == 3 ? rows.strides[0] : 0);
  arguments.index(output.rank == 3 ? b.strides[0] : 0).index(b.strides[last]);
  append_matrix_strides(arguments, output);
  append_matrix_strides(arguments, adds ? *epilogue.addend : output);
  arguments.scalar(Scalar::of(epilogue.alpha), sizeof(double));
  arguments.scalar(Scalar::of(epilogue.beta), sizeof(double));
  const ThinKernel kernel{output.dtype, a.dtype, b.dtype, adds, m};
  launch_kernel(stream, kernel, split.grid, arguments);
}

}  // namespace

bool thin_matmul(Stream& stream, const TensorView& output, const TensorView& a, const TensorView& b,
                 const MatmulEpilogue& epilogue) {
  const int last = output.rank - 1;
  const int64_t m = output.sizes[last - 1], n = output.sizes[last];
  if (a.sizes[last] < kDepth) return false;
  if (m <= kThin && b.strides[last - 1] == 1) {
    run(stream, output, a, b, epilogue);
    return true;
  }
  if (n > kThin || a.strides[last] != 1) return false;
  MatmulEpilogue turned = epilogue;
  TensorView addend;
  if (epilogue.beta != 0.0) {
    addend = transposed(*epilogue.addend);
    turned.addend = &addend;
  }
  run(stream, transposed(output), transposed(b), transposed(a), turned);
  return true;
}

}  // namespace graft

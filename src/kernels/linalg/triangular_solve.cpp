// src/kernels/linalg/triangular_solve.cpp: systems with triangular matrices, one work-item per
// column.
#include "kernels/linalg/triangular_solve.h"

#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/linalg/matrix_batch.h"
#include "kernels/move/staging.h"
#include "kernels/operation/offer.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

struct SolveKernel {
  graft_dtype dtype;
  bool upper, unit, conjugate, by_columns, dense_right;

  std::string key() const {
    return std::string("triangular_solve_") + name_of(dtype) + (upper ? "_upper" : "_lower") +
           (unit ? "_unit" : "") + (conjugate ? "_conjugate" : "") +
           (by_columns ? "_columns" : "_rows") + (dense_right ? "_dense" : "");
  }

  // The unknowns that are not known yet once unknown k is: to the end, or to the front.
  Value begin(Builder& b, Value k) const { return upper ? b.i64(0) : k + 1; }
  Value end(Value k, Value n) const { return upper ? k : n; }

  // Unknown by unknown, its multiples are taken from the rest of the column.
  template <class Number>
  void by_columns_of(Builder& b, const MatrixParameter<Number>& x, const MatrixParameter<Number>& a,
                     Value column, Value matrix, Value k, Value n) const {
    const Value place = x.down(column, k), pivots = a.column(matrix, k);
    const Number found = unit ? x.load(place) : x.load(place) / a.load(a.down(pivots, k));
    x.store(place, found);
    b.vector_loop(begin(b, k), end(k, n), [&](Value i) {
      const Value other = x.down(column, i);
      x.store(other, x.load(other) - a.load(a.down(pivots, i)) * found);
    });
  }

  // a is transposed: its column k is row k of A.
  template <class Number>
  void by_rows_of(Builder& b, const MatrixParameter<Number>& x, const MatrixParameter<Number>& a,
                  Value column, Value matrix, Value k, Value n) const {
    const Value place = x.down(column, k), row = a.column(matrix, k);
    const Value first = upper ? k + 1 : b.i64(0), last = upper ? n : k;
    const Number given = x.load(place);
    const Number known = sum_of(number_like(given, 0), first, last, [&](Value i) {
      return a.load(a.down(row, i)) * x.load(x.down(column, i));
    });
    const Number rest = given - known;
    x.store(place, unit ? rest : rest / a.load(a.down(row, k)));
  }

  template <class Number>
  ir::Kernel build() const {
    Builder b(key());
    const graft_dtype part = part_of(dtype);
    const MatrixParameter<Number> x(b, b.update(part), dense_right);
    const MatrixParameter<Number> a(b, b.read(part), true, conjugate);
    const Value lines = b.index(), per_item = b.index(), n = b.index(), columns = b.index();
    each_line(b, lines, per_item, [&](Value line) {
      const Value index = line / columns, matrix = a.matrix(index);
      const Value column = x.column(x.matrix(index), line % columns);
      b.loop(b.i64(0), n, [&](Value step) {
        const Value k = upper ? n - 1 - step : step;
        if (by_columns) {
          by_columns_of(b, x, a, column, matrix, k, n);
        } else {
          by_rows_of(b, x, a, column, matrix, k, n);
        }
      });
    });
    return b.finish();
  }
};

}  // namespace

void triangular_solve(Stream& stream, const TensorView& right, const TensorView& left, bool upper,
                      bool unit, bool conjugate) {
  if (offer(stream, Operation::triangular_solve, [&](VendorCall& to) {
        to.write(right).read(left).integers({upper, unit, conjugate});
      }))
    return;
  require_matrices(right, "triangular_solve");
  require_matrices(left, "triangular_solve");
  const int64_t n = right.sizes[1], columns = right.sizes[2];
  if (left.sizes[0] != right.sizes[0] || left.sizes[1] != n || left.sizes[2] != n ||
      left.dtype != right.dtype) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                "triangular_solve: expected [batch, n, n] and [batch, n, columns] of one dtype");
  }
  if (right.count() == 0) return;
  const bool by_columns = has_dense_rows(left);
  const StagedInput staged(stream, left, !by_columns && left.strides[2] != 1);
  const TensorView a = by_columns ? left : transposed(staged.view());
  const SolveKernel kernel{right.dtype, upper,
                           unit,        conjugate && is_complex(right.dtype),
                           by_columns,  has_dense_rows(right)};
  const WorkSplit split = split_work(right.sizes[0] * columns, n * n / 2);
  Arguments arguments;
  append_updated(arguments, right);
  arguments.read(a);
  append_strides(arguments, a);
  arguments.indices({split.lines, split.per_item, n, columns});
  const auto make = [&]<class Number>() { return kernel.build<Number>(); };
  launch_for_numbers(stream, right.dtype, kernel.key(), split.grid, arguments, make);
}

}  // namespace graft

// src/kernels/linalg/lu.cpp: LU factorisation with partial pivoting, one work-item per matrix.
#include "kernels/linalg/lu.h"

#include "kernels/launch/arguments.h"
#include "kernels/launch/checked_index.h"
#include "kernels/launch/work_split.h"
#include "kernels/linalg/matrix_batch.h"
#include "kernels/operation/offer.h"

namespace graft {
namespace {

using namespace ir;

// The first row of the largest element on or below the diagonal.
template <class Number>
Value largest_row(Builder& b, const MatrixParameter<Number>& a, Value column, Value k, Value rows) {
  const Variable row(k), largest(pivot_size(a.load(a.down(column, k))));
  b.loop(k + 1, rows, [&](Value i) {
    const Value size = pivot_size(a.load(a.down(column, i)));
    const Value larger = size > largest.get();
    row = select(larger, i, row.get());
    largest = select(larger, size, largest.get());
  });
  return row.get();
}

template <class Number>
void exchange(Builder& b, const MatrixParameter<Number>& a, Value base, Value row, Value other,
              Value columns) {
  b.vector_loop(b.i64(0), columns, [&](Value j) {
    const Value first = a.at(base, row, j), second = a.at(base, other, j);
    const Number upper = a.load(first), lower = a.load(second);
    a.store(first, lower);
    a.store(second, upper);
  });
}

// Divides the column below its pivot, then takes its multiples from the columns to the right.
template <class Number>
void eliminate(Builder& b, const MatrixParameter<Number>& a, Value base, Value k, Value rows,
               Value columns) {
  const Value column = a.column(base, k);
  const Number pivot = a.load(a.down(column, k));
  const Number divisor = select(is_zero(pivot), number_like(pivot, 1), pivot);
  b.vector_loop(k + 1, rows, [&](Value i) {
    const Value place = a.down(column, i);
    a.store(place, a.load(place) / divisor);
  });
  b.loop(k + 1, columns, [&](Value j) {
    const Value other = a.column(base, j);
    const Number factor = a.load(a.down(other, k));
    b.vector_loop(k + 1, rows, [&](Value i) {
      const Value place = a.down(other, i);
      a.store(place, a.load(place) - a.load(a.down(column, i)) * factor);
    });
  });
}

template <class Number>
ir::Kernel factor_kernel(const std::string& key, const TensorView& matrices) {
  Builder b(key);
  const MatrixParameter<Number> a(b, b.update(part_of(matrices.dtype)), has_dense_rows(matrices));
  const Address pivots = b.write(GRAFT_INT32), info = b.write(GRAFT_INT32);
  const Value lines = b.index(), per_item = b.index(), rows = b.index(), columns = b.index();
  each_line(b, lines, per_item, [&](Value matrix) {
    const Value base = a.matrix(matrix), steps = ir::minimum(rows, columns);
    const Variable failed(b.i64(0));
    b.loop(b.i64(0), steps, [&](Value k) {
      const Value row = largest_row(b, a, a.column(base, k), k, rows);
      pivots.store(matrix * steps + k, cast(Type::kI32, row + 1));
      exchange(b, a, base, k, row, columns);
      const Value singular = is_zero(a.load(a.at(base, k, k))) & (failed.get() == 0);
      failed = select(singular, k + 1, failed.get());
      eliminate(b, a, base, k, rows, columns);
    });
    info.store(matrix, cast(Type::kI32, failed.get()));
  });
  return b.finish();
}

Value pivot_row(const IndexChecker& checker, const Address& pivots, Value place, Value rows) {
  return checker.check(cast(Type::kI64, pivots.load(place)) - 1, rows, false);
}

template <class Number>
ir::Kernel exchange_kernel(const std::string& key, const TensorView& matrices, bool backward) {
  Builder b(key);
  const MatrixParameter<Number> a(b, b.update(part_of(matrices.dtype)), has_dense_rows(matrices));
  const Address pivots = b.read(GRAFT_INT32);
  const IndexChecker checker(b);
  const Value lines = b.index(), per_item = b.index(), rows = b.index(), columns = b.index();
  const Value count = b.index();
  each_line(b, lines, per_item, [&](Value matrix) {
    b.loop(b.i64(0), count, [&](Value step) {
      const Value k = backward ? count - 1 - step : step;
      const Value other = pivot_row(checker, pivots, matrix * count + k, rows);
      exchange(b, a, a.matrix(matrix), k, other, columns);
    });
  });
  return b.finish();
}

ir::Kernel permutation_kernel(const std::string& key) {
  Builder b(key);
  const Address permutation = b.update(GRAFT_INT64), pivots = b.read(GRAFT_INT32);
  const IndexChecker checker(b);
  const Value lines = b.index(), per_item = b.index(), rows = b.index(), count = b.index();
  each_line(b, lines, per_item, [&](Value line) {
    const Value base = line * rows;
    b.vector_loop(b.i64(0), rows, [&](Value i) { permutation.store(base + i, i); });
    b.loop(b.i64(0), count, [&](Value k) {
      const Value other = pivot_row(checker, pivots, line * count + k, rows);
      const Value upper = permutation.load(base + k), lower = permutation.load(base + other);
      permutation.store(base + k, lower);
      permutation.store(base + other, upper);
    });
  });
  return b.finish();
}

}  // namespace

void lu_factor(Stream& stream, const TensorView& matrices, const TensorView& pivots,
               const TensorView& info) {
  if (offer(stream, Operation::lu_factor,
            [&](VendorCall& to) { to.write(matrices).write(pivots).write(info); }))
    return;
  require_matrices(matrices, "lu_factor");
  if (matrices.sizes[0] == 0) return;
  const int64_t rows = matrices.sizes[1], columns = matrices.sizes[2];
  const WorkSplit split =
      split_work(matrices.sizes[0], rows * columns * std::min(rows, columns) / 2);
  const std::string key = batch_key("lu_factor", matrices);
  Arguments arguments;
  append_updated(arguments, matrices);
  arguments.write(pivots).write(info);
  arguments.indices({split.lines, split.per_item, rows, columns});
  const auto make = [&]<class Number>() { return factor_kernel<Number>(key, matrices); };
  launch_for_numbers(stream, matrices.dtype, key, split.grid, arguments, make);
}

void exchange_rows(Stream& stream, const TensorView& matrices, const TensorView& pivots,
                   bool backward) {
  if (offer(stream, Operation::exchange_rows,
            [&](VendorCall& to) { to.write(matrices).read(pivots).integers({backward}); }))
    return;
  require_matrices(matrices, "exchange_rows");
  if (matrices.count() == 0) return;
  const int64_t rows = matrices.sizes[1], columns = matrices.sizes[2], count = pivots.sizes[1];
  const WorkSplit split = split_work(matrices.sizes[0], columns * count);
  const std::string key =
      batch_key(backward ? "exchange_rows_backward" : "exchange_rows", matrices);
  Arguments arguments;
  append_updated(arguments, matrices);
  arguments.read(pivots);
  append_checker(arguments, stream);
  arguments.indices({split.lines, split.per_item, rows, columns, count});
  const auto make = [&]<class Number>() {
    return exchange_kernel<Number>(key, matrices, backward);
  };
  launch_for_numbers(stream, matrices.dtype, key, split.grid, arguments, make);
}

void permutation_of_pivots(Stream& stream, const TensorView& permutation,
                           const TensorView& pivots) {
  if (offer(stream, Operation::permutation_of_pivots,
            [&](VendorCall& to) { to.write(permutation).read(pivots); }))
    return;
  if (permutation.count() == 0) return;
  const int64_t rows = permutation.sizes[1], count = pivots.sizes[1];
  const WorkSplit split = split_work(permutation.sizes[0], rows + count);
  const std::string key = "permutation_of_pivots";
  Arguments arguments;
  arguments.update(permutation).read(pivots);
  append_checker(arguments, stream);
  arguments.indices({split.lines, split.per_item, rows, count});
  launch_kernel(stream, key, split.grid, arguments, [&] { return permutation_kernel(key); });
}

}  // namespace graft

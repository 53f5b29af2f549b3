// src/kernels/householder.cpp: QR factorisation by Householder reflections.
#include "kernels/householder.h"

#include "codegen/program_cache.h"
#include "kernels/matrix_batch.h"
#include "kernels/work_split.h"

namespace graft {
namespace {

using ir::Address;
using ir::Builder;
using ir::Value;

constexpr uint32_t kLanes = 16;

std::string key_of(const char* what, const TensorView& matrices) {
  return std::string(what) + "_" + name_of(matrices.dtype) +
         (has_dense_rows(matrices) ? "_dense" : "");
}

Value sum(Value first, Value begin, Value end, const std::function<Value(Value)>& term) {
  return ir::reduce(
      first, begin, end, term, [](Value x, Value y) { return x + y; }, kLanes);
}

// The length of the column below row k; scaled, so that no square overflows.
Value length_below(const MatrixParameter& a, Value column, Value k, Value rows) {
  const Value zero = like(a.load(a.down(column, k)), 0);
  const Value largest = ir::reduce(
      zero, k + 1, rows, [&](Value i) { return abs(a.load(a.down(column, i))); },
      [](Value x, Value y) { return ir::maximum(x, y); }, kLanes);
  const Value scale = select(largest == 0, 1, largest);
  return largest * sqrt(sum(zero, k + 1, rows, [&](Value i) {
           const Value x = a.load(a.down(column, i)) / scale;
           return x * x;
         }));
}

// Turns column k into its reflection; gives the factor.
Value reflect(Builder& b, const MatrixParameter& a, Value column, Value k, Value rows) {
  const Value corner = a.down(column, k), head = a.load(corner);
  const Value below = length_below(a, column, k, rows);
  const Value larger = ir::maximum(abs(head), below), scale = select(larger == 0, 1, larger);
  const Value x = head / scale, y = below / scale;
  const Value length = scale * sqrt(x * x + y * y);
  const Value done = below == 0;
  const Value turned = select(head < 0, length, -length);
  const Value diagonal = select(done, head, turned);
  const Value divisor = select(done, 1, head - turned);
  b.vector_loop(k + 1, rows, [&](Value i) {
    const Value place = a.down(column, i);
    a.store(place, a.load(place) / divisor);
  });
  a.store(corner, diagonal);
  return select(done, 0, (turned - head) / select(done, 1, turned));
}

// Applies the reflection in column from of v, whose head is row k, to a column of a.
void apply(Builder& b, const MatrixParameter& v, Value from, const MatrixParameter& a, Value column,
           Value k, Value rows, Value factor) {
  const Value head = a.down(column, k), first = a.load(head);
  const Value along = sum(like(first, 0), k + 1, rows, [&](Value i) {
    return v.load(v.down(from, i)) * a.load(a.down(column, i));
  });
  const Value weight = factor * (first + along);
  a.store(head, first - weight);
  b.vector_loop(k + 1, rows, [&](Value i) {
    const Value place = a.down(column, i);
    a.store(place, a.load(place) - v.load(v.down(from, i)) * weight);
  });
}

ir::Kernel factor_kernel(const std::string& key, const TensorView& matrices) {
  Builder b(key);
  const MatrixParameter a(b, b.update(matrices.dtype), has_dense_rows(matrices));
  const Address factors = b.write(matrices.dtype);
  const Value lines = b.index(), per_item = b.index(), rows = b.index(), columns = b.index();
  const Value count = b.index();
  each_line(b, lines, per_item, [&](Value matrix) {
    b.loop(b.i64(0), count, [&](Value k) {
      const Value base = a.matrix(matrix), column = a.column(base, k);
      const Value factor = reflect(b, a, column, k, rows);
      factors.store(matrix * count + k, factor);
      b.loop(k + 1, columns,
             [&](Value j) { apply(b, a, column, a, a.column(base, j), k, rows, factor); });
    });
  });
  return b.finish();
}

ir::Kernel apply_kernel(const std::string& key, const TensorView& matrices,
                        const TensorView& reflections, bool transpose) {
  Builder b(key);
  const MatrixParameter a(b, b.update(matrices.dtype), has_dense_rows(matrices));
  const MatrixParameter v(b, b.read(matrices.dtype), has_dense_rows(reflections));
  const Address factors = b.read(matrices.dtype);
  const Value lines = b.index(), per_item = b.index(), rows = b.index(), columns = b.index();
  const Value count = b.index();
  each_line(b, lines, per_item, [&](Value line) {
    const Value index = line / columns;
    const Value column = a.column(a.matrix(index), line % columns);
    b.loop(b.i64(0), count, [&](Value step) {
      const Value k = transpose ? step : count - 1 - step;
      apply(b, v, v.column(v.matrix(index), k), a, column, k, rows,
            factors.load(index * count + k));
    });
  });
  return b.finish();
}

}  // namespace

void householder_factor(Stream& stream, const TensorView& matrices, const TensorView& factors) {
  require_matrices(matrices, "householder_factor");
  const int64_t rows = matrices.sizes[1], columns = matrices.sizes[2], count = factors.sizes[1];
  if (factors.count() == 0) return;
  const WorkSplit split = split_work(matrices.sizes[0], rows * columns * count);
  const std::string key = key_of("householder_factor", matrices);
  Arguments arguments;
  arguments.update(matrices);
  append_strides(arguments, matrices);
  arguments.write(factors).index(split.lines).index(split.per_item);
  arguments.index(rows).index(columns).index(count);
  stream.launch(get_kernel(stream.device(), key, [&] { return factor_kernel(key, matrices); }),
                static_cast<uint64_t>(split.grid), arguments.span());
}

void apply_reflections(Stream& stream, const TensorView& matrices, const TensorView& reflections,
                       const TensorView& factors, bool transpose) {
  require_matrices(matrices, "apply_reflections");
  require_matrices(reflections, "apply_reflections");
  const int64_t rows = matrices.sizes[1], columns = matrices.sizes[2], count = factors.sizes[1];
  if (matrices.count() == 0 || count == 0) return;
  const WorkSplit split = split_work(matrices.sizes[0] * columns, rows * count);
  const std::string key = key_of("apply_reflections", matrices) +
                          (has_dense_rows(reflections) ? "_from_dense" : "") +
                          (transpose ? "_transpose" : "");
  Arguments arguments;
  arguments.update(matrices);
  append_strides(arguments, matrices);
  arguments.read(reflections);
  append_strides(arguments, reflections);
  arguments.read(factors).index(split.lines).index(split.per_item);
  arguments.index(rows).index(columns).index(count);
  stream.launch(get_kernel(stream.device(), key,
                           [&] { return apply_kernel(key, matrices, reflections, transpose); }),
                static_cast<uint64_t>(split.grid), arguments.span());
}

}  // namespace graft

// src/kernels/linalg/householder.cpp: QR factorisation by Householder reflections.
#include "kernels/linalg/householder.h"

#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/linalg/matrix_batch.h"
#include "kernels/operation/offer.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

constexpr uint32_t kColumnLanes = 16;

// The length of the column below row k; scaled, so that no square overflows.
template <class Number>
Value length_below(const MatrixParameter<Number>& a, Value column, Value k, Value rows) {
  const Value zero = like(real_part(a.load(a.down(column, k))), 0);
  const Value largest = ir::reduce(
      zero, k + 1, rows, [&](Value i) { return greatest_part(a.load(a.down(column, i))); },
      ir::maximum, kColumnLanes);
  const Value scale = select(largest == 0, 1, largest);
  return largest * sqrt(sum_of(zero, k + 1, rows, [&](Value i) {
           return square(over_real(a.load(a.down(column, i)), scale));
         }));
}

Value length_of(Value x, Value y) {
  const Value larger = ir::maximum(abs(x), abs(y)), scale = select(larger == 0, 1, larger);
  const Value a = x / scale, b = y / scale;
  return scale * sqrt(a * a + b * b);
}
Value magnitude(Value x) { return abs(x); }
Value magnitude(ComplexValue z) { return length_of(z.re, z.im); }
Value is_real(Value x) { return x.builder().boolean(true); }
Value is_real(ComplexValue z) { return z.im == 0; }

// Turns column k into its reflection, which leaves a real diagonal; gives the factor.
template <class Number>
Number reflect(Builder& b, const MatrixParameter<Number>& a, Value column, Value k, Value rows) {
  const Value corner = a.down(column, k);
  const Number head = a.load(corner);
  const Value below = length_below(a, column, k, rows);
  const Value length = length_of(magnitude(head), below);
  const Value done = (below == 0) & is_real(head);
  const Number turned = from_real(head, select(real_part(head) < 0, length, -length));
  const Number one = number_like(head, 1);
  const Number divisor = select(done, one, head - turned);
  b.vector_loop(k + 1, rows, [&](Value i) {
    const Value place = a.down(column, i);
    a.store(place, a.load(place) / divisor);
  });
  a.store(corner, select(done, head, turned));
  const Value scale = real_part(select(done, one, turned));
  return select(done, number_like(head, 0), over_real(turned - head, scale));
}

// Applies the reflection in column from of v, whose head is row k, to a column of a that is 0 from
// row filled on.
template <class Number>
void apply(Builder& b, const MatrixParameter<Number>& v, Value from,
           const MatrixParameter<Number>& a, Value column, Value k, Value rows, Value filled,
           Number factor) {
  const Value head = a.down(column, k);
  const Number first = a.load(head);
  const Number along = sum_of(number_like(first, 0), k + 1, filled, [&](Value i) {
    return conjugate(v.load(v.down(from, i))) * a.load(a.down(column, i));
  });
  const Number weight = factor * (first + along);
  a.store(head, first - weight);
  b.vector_loop(k + 1, rows, [&](Value i) {
    const Value place = a.down(column, i);
    a.store(place, a.load(place) - v.load(v.down(from, i)) * weight);
  });
}

template <class Number>
ir::Kernel factor_kernel(const std::string& key, const TensorView& matrices) {
  Builder b(key);
  const graft_dtype part = part_of(matrices.dtype);
  const MatrixParameter<Number> a(b, b.update(part), has_dense_rows(matrices));
  const Address factors = b.write(part);
  const Value lines = b.index(), per_item = b.index(), rows = b.index(), columns = b.index();
  const Value count = b.index();
  each_line(b, lines, per_item, [&](Value matrix) {
    b.loop(b.i64(0), count, [&](Value k) {
      const Value base = a.matrix(matrix), column = a.column(base, k);
      const Number factor = reflect(b, a, column, k, rows);
      store_number(factors, matrix * count + k, factor);
      b.loop(k + 1, columns, [&](Value j) {
        apply(b, a, column, a, a.column(base, j), k, rows, rows, conjugate(factor));
      });
    });
  });
  return b.finish();
}

template <class Number>
ir::Kernel apply_kernel(const std::string& key, const TensorView& matrices,
                        const TensorView& reflections, bool adjoint, bool conjugated,
                        bool to_identity) {
  Builder b(key);
  const graft_dtype part = part_of(matrices.dtype);
  const MatrixParameter<Number> a(b, b.update(part), has_dense_rows(matrices));
  const MatrixParameter<Number> v(b, b.read(part), has_dense_rows(reflections), conjugated);
  const Address factors = b.read(part);
  const Value lines = b.index(), per_item = b.index(), rows = b.index(), columns = b.index();
  const Value count = b.index();
  each_line(b, lines, per_item, [&](Value line) {
    const Value index = line / columns, own = line % columns;
    const Value column = a.column(a.matrix(index), own);
    // A unit column is 0 wherever a later reflection is not, and below the head of its own.
    const Value steps = to_identity ? select(own < count, own + 1, count) : count;
    b.loop(b.i64(0), steps, [&](Value step) {
      const Value k = adjoint ? step : steps - 1 - step;
      const Value filled = to_identity ? select(own == k, k + 1, rows) : rows;
      const bool turned = adjoint != conjugated;
      apply(b, v, v.column(v.matrix(index), k), a, column, k, rows, filled,
            load_number<Number>(factors, index * count + k, turned));
    });
  });
  return b.finish();
}

}  // namespace

void householder_factor(Stream& stream, const TensorView& matrices, const TensorView& factors) {
  if (offer(stream, Operation::householder_factor,
            [&](VendorCall& to) { to.write(matrices).write(factors); }))
    return;
  require_matrices(matrices, "householder_factor");
  const int64_t rows = matrices.sizes[1], columns = matrices.sizes[2], count = factors.sizes[1];
  if (factors.count() == 0) return;
  const WorkSplit split = split_work(matrices.sizes[0], rows * columns * count);
  const std::string key = batch_key("householder_factor", matrices);
  Arguments arguments;
  append_updated(arguments, matrices);
  arguments.write(factors).index(split.lines).index(split.per_item);
  arguments.indices({rows, columns, count});
  const auto make = [&]<class Number>() { return factor_kernel<Number>(key, matrices); };
  launch_for_numbers(stream, matrices.dtype, key, split.grid, arguments, make);
}

void apply_reflections(Stream& stream, const TensorView& matrices, const TensorView& reflections,
                       const TensorView& factors, bool adjoint, bool conjugate, bool to_identity) {
  if (offer(stream, Operation::apply_reflections, [&](VendorCall& to) {
        to.write(matrices).read(reflections).read(factors);
        to.integers({adjoint, conjugate, to_identity});
      }))
    return;
  require_matrices(matrices, "apply_reflections");
  require_matrices(reflections, "apply_reflections");
  const int64_t rows = matrices.sizes[1], columns = matrices.sizes[2], count = factors.sizes[1];
  if (matrices.count() == 0 || count == 0) return;
  if (to_identity && adjoint) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                "apply_reflections: got to_identity and adjoint; give one of them");
  }
  const WorkSplit split = split_work(matrices.sizes[0] * columns, rows * count);
  const bool conjugated = conjugate && is_complex(matrices.dtype);
  const std::string key = batch_key("apply_reflections", matrices) +
                          (has_dense_rows(reflections) ? "_from_dense" : "") +
                          (adjoint ? "_adjoint" : "") + (conjugated ? "_conjugate" : "") +
                          (to_identity ? "_to_identity" : "");
  Arguments arguments;
  append_updated(arguments, matrices);
  arguments.read(reflections);
  append_strides(arguments, reflections);
  arguments.read(factors).index(split.lines).index(split.per_item);
  arguments.indices({rows, columns, count});
  const auto make = [&]<class Number>() {
    return apply_kernel<Number>(key, matrices, reflections, adjoint, conjugated, to_identity);
  };
  launch_for_numbers(stream, matrices.dtype, key, split.grid, arguments, make);
}

}  // namespace graft

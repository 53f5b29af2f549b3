// src/kernels/linalg/singular_values.cpp: one-sided Jacobi rotations, one work-item per matrix.
#include "kernels/linalg/singular_values.h"

#include <optional>

#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/linalg/matrix_batch.h"
#include "kernels/linalg/plane_rotation.h"
#include "kernels/operation/offer.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

constexpr int64_t kHoldsNan = -4;

struct SingularKernel {
  graft_dtype dtype;
  bool dense, with_vectors, dense_vectors;

  std::string key() const {
    return std::string("singular_values_") + name_of(dtype) + (dense ? "_dense" : "") +
           (with_vectors ? "_vectors" : "") + (dense_vectors ? "_dense" : "");
  }
};

template <class Number>
class SingularBuilder {
 public:
  SingularBuilder(Builder& b, const SingularKernel& kernel)
      : b_(b),
        values_(b.update(part_of(kernel.dtype))),
        info_(b.write(GRAFT_INT32)),
        a_(b, b.update(part_of(kernel.dtype)), kernel.dense) {
    if (kernel.with_vectors) v_.emplace(b, b.update(part_of(kernel.dtype)), kernel.dense_vectors);
  }

  void build() {
    const Value lines = b_.index(), per_item = b_.index();
    rows_ = b_.index(), columns_ = b_.index();
    each_line(b_, lines, per_item, [&](Value matrix) { decompose(matrix); });
  }

 private:
  // The largest part of an element; NaN where the matrix holds one.
  Value largest() const {
    const Variable found(like(real_part(a_.load(base_)), 0));
    b_.loop(b_.i64(0), columns_, [&](Value j) {
      const Value column = a_.column(base_, j);
      b_.loop(b_.i64(0), rows_, [&](Value i) {
        found = ir::maximum(found.get(), greatest_part(a_.load(a_.down(column, i))));
      });
    });
    return found.get();
  }

  void divide(Value scale) const {
    b_.loop(b_.i64(0), columns_, [&](Value j) {
      const Value column = a_.column(base_, j);
      b_.vector_loop(b_.i64(0), rows_, [&](Value i) {
        const Value place = a_.down(column, i);
        a_.store(place, over_real(a_.load(place), scale));
      });
    });
  }

  Value squares(Value column, Value zero) const {
    return sum_of(zero, b_.i64(0), rows_,
                  [&](Value i) { return square(a_.load(a_.down(column, i))); });
  }
  Number product(Value p, Value q, Number zero) const {
    return sum_of(zero, b_.i64(0), rows_, [&](Value i) {
      return conjugate(a_.load(a_.down(p, i))) * a_.load(a_.down(q, i));
    });
  }

  // One pass over all pairs; whether any was turned.
  Value sweep(Value tolerance, Number zero) const {
    const Variable turned(b_.i64(0));
    const Value none = real_part(zero), epsilon = epsilon_like(none);
    b_.loop(b_.i64(0), columns_, [&](Value j) {
      b_.loop(j + 1, columns_, [&](Value k) {
        const Value p = a_.column(base_, j), q = a_.column(base_, k);
        const Value first = squares(p, none), second = squares(q, none);
        const Number cross = product(p, q, zero);
        const Value size = magnitude(cross);
        // A column far below the largest element is rounding, and never becomes orthogonal.
        const Value matters = (size > tolerance * sqrt(first) * sqrt(second)) &
                              (ir::minimum(first, second) > epsilon * epsilon);
        b_.if_(matters, [&] {
          turned = b_.i64(1);
          const PlaneRotation<Number> rotation(first, second, cross, size);
          turn_columns(b_, a_, p, q, rows_, rotation);
          if (v_) {
            turn_columns(b_, *v_, v_->column(vectors_, j), v_->column(vectors_, k), columns_,
                         rotation);
          }
        });
      });
    });
    return turned.get();
  }

  void decompose(Value matrix) {
    base_ = a_.matrix(matrix);
    const Value most = largest(), scale = select(most == 0, 1, most);
    const Number zero = number_like(a_.load(base_), 0);
    divide(scale);
    if (v_) {
      vectors_ = v_->matrix(matrix);
      store_identity(b_, *v_, vectors_, columns_);
    }
    const Value tolerance = epsilon_like(scale) * sqrt(cast(scale.type(), rows_));
    const Value unfinished = sweep_until_still(b_, [&] { return sweep(tolerance, zero); });
    finish(matrix, scale, real_part(zero));
    const Value failed = select(unfinished != 0, columns_, b_.i64(0));
    info_.store(matrix, cast(Type::kI32, select(is_nan(most), b_.i64(kHoldsNan), failed)));
  }

  void finish(Value matrix, Value scale, Value zero) const {
    const Value first = matrix * columns_;
    b_.loop(b_.i64(0), columns_, [&](Value j) {
      values_.store(first + j, sqrt(squares(a_.column(base_, j), zero)) * scale);
    });
    sort_with(b_, values_, first, columns_, false, [&](Value j, Value k) {
      exchange_columns(b_, a_, a_.column(base_, j), a_.column(base_, k), rows_);
      if (!v_) return;
      exchange_columns(b_, *v_, v_->column(vectors_, j), v_->column(vectors_, k), columns_);
    });
  }

  Builder& b_;
  Address values_, info_;
  MatrixParameter<Number> a_;
  std::optional<MatrixParameter<Number>> v_;
  Value rows_, columns_, base_, vectors_;
};

}  // namespace

void singular_values(Stream& stream, const TensorView& values, const TensorView* vectors,
                     const TensorView& matrices, const TensorView& info) {
  if (offer(stream, Operation::singular_values,
            [&](VendorCall& to) { to.write(values).write(vectors).write(matrices).write(info); }))
    return;
  require_matrices(matrices, "singular_values");
  const int64_t rows = matrices.sizes[1], columns = matrices.sizes[2];
  if (rows < columns) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                "singular_values: expected at least as many rows as columns");
  }
  if (matrices.count() == 0) return;
  const WorkSplit split = split_work(matrices.sizes[0], 32 * rows * columns * columns);
  const SingularKernel kernel{matrices.dtype, has_dense_rows(matrices), vectors != nullptr,
                              vectors != nullptr && has_dense_rows(*vectors)};
  Arguments arguments;
  arguments.update(values).write(info);
  append_updated(arguments, matrices);
  if (vectors != nullptr) append_updated(arguments, *vectors);
  arguments.indices({split.lines, split.per_item, rows, columns});
  const auto make = [&]<class Number>() {
    Builder b(kernel.key());
    SingularBuilder<Number>(b, kernel).build();
    return b.finish();
  };
  launch_for_numbers(stream, matrices.dtype, kernel.key(), split.grid, arguments, make);
}

}  // namespace graft

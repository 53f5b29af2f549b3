// src/kernels/linalg/eigen.cpp: Jacobi's method for symmetric matrices, one work-item per matrix.
#include "kernels/linalg/eigen.h"

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

struct EigenKernel {
  graft_dtype dtype;
  bool upper, dense, with_vectors, dense_vectors;

  std::string key() const {
    return std::string("symmetric_eigen_") + name_of(dtype) + (upper ? "_upper" : "") +
           (dense ? "_dense" : "") + (with_vectors ? "_vectors" : "") +
           (dense_vectors ? "_dense" : "");
  }
};

template <class Number>
class EigenBuilder {
 public:
  EigenBuilder(Builder& b, const EigenKernel& kernel)
      : b_(b),
        kernel_(kernel),
        values_(b.update(part_of(kernel.dtype))),
        info_(b.write(GRAFT_INT32)),
        a_(b, b.update(part_of(kernel.dtype)), kernel.dense) {
    if (kernel.with_vectors) v_.emplace(b, b.update(part_of(kernel.dtype)), kernel.dense_vectors);
  }

  void build() {
    const Value lines = b_.index(), per_item = b_.index();
    n_ = b_.index();
    each_line(b_, lines, per_item, [&](Value matrix) { decompose(matrix); });
  }

 private:
  Number given(Value i, Value j) const {
    return a_.load(kernel_.upper ? a_.at(base_, j, i) : a_.at(base_, i, j));
  }

  // The largest part of an element of the given triangle; NaN where it holds one.
  Value largest() const {
    const Variable found(like(real_part(given(b_.i64(0), b_.i64(0))), 0));
    b_.loop(b_.i64(0), n_, [&](Value j) {
      b_.loop(j, n_,
              [&](Value i) { found = ir::maximum(found.get(), greatest_part(given(i, j))); });
    });
    return found.get();
  }

  // Divides by scale, and makes the other triangle of it, too.
  void mirror(Value scale) const {
    b_.loop(b_.i64(0), n_, [&](Value j) {
      b_.loop(j, n_, [&](Value i) {
        const Number x = over_real(given(i, j), scale);
        const Number kept = select(i == j, from_real(x, real_part(x)), x);
        a_.store(a_.at(base_, i, j), kernel_.upper ? conjugate(kept) : kept);
        a_.store(a_.at(base_, j, i), kernel_.upper ? kept : conjugate(kept));
      });
    });
  }

  Value diagonal(Value i) const { return real_part(a_.load(a_.at(base_, i, i))); }

  void turn(Value p, Value q, Number cross, Value size) const {
    const Value first = diagonal(p), second = diagonal(q);
    const PlaneRotation<Number> rotation(first, second, cross, size);
    const Value column_p = a_.column(base_, p), column_q = a_.column(base_, q);
    // The rows follow by symmetry; where both cross is set afterwards.
    b_.vector_loop(b_.i64(0), n_, [&](Value i) {
      const Value at_p = a_.down(column_p, i), at_q = a_.down(column_q, i);
      const Number x = a_.load(at_p), y = a_.load(at_q);
      const Number turned_p = rotation.first(x, y), turned_q = rotation.second(x, y);
      a_.store(at_p, turned_p);
      a_.store(at_q, turned_q);
      a_.store(a_.at(base_, p, i), conjugate(turned_p));
      a_.store(a_.at(base_, q, i), conjugate(turned_q));
    });
    const Value moved = rotation.moved(size);
    a_.store(a_.at(base_, p, p), from_real(cross, first - moved));
    a_.store(a_.at(base_, q, q), from_real(cross, second + moved));
    a_.store(a_.at(base_, p, q), number_like(cross, 0));
    a_.store(a_.at(base_, q, p), number_like(cross, 0));
    if (v_) turn_columns(b_, *v_, v_->column(vectors_, p), v_->column(vectors_, q), n_, rotation);
  }

  // One pass over all pairs; whether any was turned.
  Value sweep() const {
    const Variable turned(b_.i64(0));
    b_.loop(b_.i64(0), n_, [&](Value p) {
      b_.loop(p + 1, n_, [&](Value q) {
        const Number cross = a_.load(a_.at(base_, p, q));
        const Value size = magnitude(cross), epsilon = epsilon_like(size);
        // Relative, so that small eigenvalues of graded matrices come out; what is far below the
        // largest element is nothing.
        const Value matters =
            (size > epsilon * 0x1p-10) & (size > epsilon * sqrt(abs(diagonal(p) * diagonal(q))));
        b_.if_(matters, [&] {
          turned = b_.i64(1);
          turn(p, q, cross, size);
        });
      });
    });
    return turned.get();
  }

  void decompose(Value matrix) {
    base_ = a_.matrix(matrix);
    const Value most = largest();
    const Value scale = select(most == 0, 1, most);
    mirror(scale);
    if (v_) {
      vectors_ = v_->matrix(matrix);
      store_identity(b_, *v_, vectors_, n_);
    }
    const Value unfinished = sweep_until_still(b_, [&] { return sweep(); });
    const Value first = matrix * n_;
    b_.loop(b_.i64(0), n_, [&](Value i) { values_.store(first + i, diagonal(i) * scale); });
    sort_with(b_, values_, first, n_, true, [&](Value i, Value k) {
      if (v_) exchange_columns(b_, *v_, v_->column(vectors_, i), v_->column(vectors_, k), n_);
    });
    const Value failed = ((unfinished != 0) | is_nan(most)) & (n_ > 1);
    info_.store(matrix, cast(Type::kI32, select(failed, n_ - 1, b_.i64(0))));
  }

  Builder& b_;
  EigenKernel kernel_;
  Address values_, info_;
  MatrixParameter<Number> a_;
  std::optional<MatrixParameter<Number>> v_;
  Value n_, base_, vectors_;
};

}  // namespace

void symmetric_eigen(Stream& stream, const TensorView& values, const TensorView* vectors,
                     const TensorView& matrices, const TensorView& info, bool upper) {
  if (offer(stream, Operation::symmetric_eigen, [&](VendorCall& to) {
        to.write(values).write(vectors).write(matrices).write(info).integers({upper});
      }))
    return;
  require_matrices(matrices, "symmetric_eigen");
  const int64_t n = matrices.sizes[1];
  if (matrices.sizes[2] != n) {
    throw Error(GRAFT_INVALID_ARGUMENT, "symmetric_eigen: expected square matrices");
  }
  if (matrices.count() == 0) return;
  const WorkSplit split = split_work(matrices.sizes[0], 32 * n * n * n);
  const EigenKernel kernel{matrices.dtype, upper, has_dense_rows(matrices), vectors != nullptr,
                           vectors != nullptr && has_dense_rows(*vectors)};
  Arguments arguments;
  arguments.update(values).write(info);
  append_updated(arguments, matrices);
  if (vectors != nullptr) append_updated(arguments, *vectors);
  arguments.indices({split.lines, split.per_item, n});
  const auto make = [&]<class Number>() {
    Builder b(kernel.key());
    EigenBuilder<Number>(b, kernel).build();
    return b.finish();
  };
  launch_for_numbers(stream, matrices.dtype, kernel.key(), split.grid, arguments, make);
}

}  // namespace graft

// src/kernels/linalg/cholesky.cpp: Cholesky factorisation, one work-item per matrix.
#include "kernels/linalg/cholesky.h"

#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/linalg/matrix_batch.h"
#include "kernels/operation/offer.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

// Scales column k, then takes its outer product from the columns to the right.
template <class Number>
void eliminate(Builder& b, const MatrixParameter<Number>& a, Value base, Value k, Value n) {
  const Value column = a.column(base, k), corner = a.down(column, k);
  const Number diagonal = a.load(corner);
  const Value root = sqrt(real_part(diagonal));
  a.store(corner, from_real(diagonal, root));
  b.vector_loop(k + 1, n, [&](Value i) {
    const Value place = a.down(column, i);
    a.store(place, over_real(a.load(place), root));
  });
  b.loop(k + 1, n, [&](Value j) {
    const Value other = a.column(base, j);
    const Number factor = conjugate(a.load(a.down(column, j)));
    b.vector_loop(j, n, [&](Value i) {
      const Value place = a.down(other, i);
      a.store(place, a.load(place) - a.load(a.down(column, i)) * factor);
    });
  });
}

template <class Number>
ir::Kernel build(const std::string& key, const TensorView& matrices) {
  Builder b(key);
  const MatrixParameter<Number> a(b, b.update(part_of(matrices.dtype)), has_dense_rows(matrices));
  const Address info = b.write(GRAFT_INT32);
  const Value lines = b.index(), per_item = b.index(), n = b.index();
  each_line(b, lines, per_item, [&](Value matrix) {
    const Value base = a.matrix(matrix);
    const Variable failed(b.i64(0));
    b.loop(b.i64(0), n, [&](Value k) {
      const Value definite = real_part(a.load(a.at(base, k, k))) > 0;
      failed = select(definite, failed.get(), k + 1);
      b.break_if(!definite);
      eliminate(b, a, base, k, n);
    });
    info.store(matrix, cast(Type::kI32, failed.get()));
  });
  return b.finish();
}

}  // namespace

void cholesky_factor(Stream& stream, const TensorView& matrices, const TensorView& info) {
  if (offer(stream, Operation::cholesky_factor,
            [&](VendorCall& to) { to.write(matrices).write(info); }))
    return;
  require_matrices(matrices, "cholesky_factor");
  const int64_t n = matrices.sizes[1];
  if (matrices.sizes[2] != n) {
    throw Error(GRAFT_INVALID_ARGUMENT, "cholesky_factor: expected square matrices");
  }
  if (matrices.sizes[0] == 0) return;
  const WorkSplit split = split_work(matrices.sizes[0], n * n * n / 6);
  const std::string key = batch_key("cholesky_factor", matrices);
  Arguments arguments;
  append_updated(arguments, matrices);
  arguments.write(info);
  arguments.indices({split.lines, split.per_item, n});
  const auto make = [&]<class Number>() { return build<Number>(key, matrices); };
  launch_for_numbers(stream, matrices.dtype, key, split.grid, arguments, make);
}

}  // namespace graft

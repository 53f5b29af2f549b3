// src/kernels/reduce/distance.cpp: distances between rows in the p-norm, and their gradients.
#include "kernels/reduce/distance.h"

#include <cmath>
#include <string>

#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/operation/offer.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

enum class Norm { kZero, kOne, kTwo, kInfinity, kGeneral };

Norm norm_of(double p) {
  if (p == 0) return Norm::kZero;
  if (p == 1) return Norm::kOne;
  if (p == 2) return Norm::kTwo;
  return std::isinf(p) ? Norm::kInfinity : Norm::kGeneral;
}

Value sign(Value x) { return select(x > 0, 1, select(x < 0, like(x, -1), 0)); }

// Where the distance of rows i and j is in the list of pairs of n rows.
Value pair_position(Value i, Value j, Value n) {
  const Value low = ir::minimum(i, j), high = ir::maximum(i, j);
  return low * n - low * (low + 1) / 2 + high - low - 1;
}

struct DistanceKernel {
  Norm norm;
  graft_dtype dtype;
  bool pairs, backward;

  std::string key() const {
    static const char* const kNames[] = {"0", "1", "2", "inf", "p"};
    return std::string(pairs ? "pair" : "cross") + "_distances_" + (backward ? "backward_" : "") +
           kNames[static_cast<int>(norm)] + "_" + name_of(dtype);
  }
  ir::Kernel build() const { return backward ? build_backward() : build_forward(); }
  ir::Kernel build_forward() const;
  ir::Kernel build_backward() const;

 private:
  Value term(Value difference, Value p) const;
  Value slope(Value difference, Value grad, Value distance, Value p) const;
};

Value DistanceKernel::term(Value difference, Value p) const {
  switch (norm) {
    case Norm::kZero:
      return select(difference == 0, like(difference, 0), 1);
    case Norm::kTwo:
      return difference * difference;
    case Norm::kGeneral:
      return pow(abs(difference), p);
    default:
      return abs(difference);
  }
}

Value DistanceKernel::slope(Value difference, Value grad, Value distance, Value p) const {
  switch (norm) {
    case Norm::kZero:
      return like(difference, 0);
    case Norm::kOne:
      return grad * sign(difference);
    case Norm::kTwo:
      return select(distance == 0, 0, grad * difference / distance);
    case Norm::kInfinity:
      return select(abs(difference) == distance, grad * sign(difference), 0);
    default:
      break;
  }
  const Value ratio = pow(abs(difference), p - 1) / pow(distance, p - 1);
  const Value flat = (distance == 0) | ((difference == 0) & (p < 1));
  return select(flat, 0, sign(difference) * ratio * grad);
}

ir::Kernel DistanceKernel::build_forward() const {
  Builder b(key());
  const Type type = ir::compute_type(dtype);
  const Address output = b.write(dtype), left = b.read(dtype), right = b.read(dtype);
  const Value lines = b.index(), per_item = b.index(), n = b.index(), k = b.index(), m = b.index();
  const Value p = cast(type, b.scalar(GRAFT_FLOAT64));
  auto distance = [&](Value from, Value to) {
    const Value folded = ir::reduce(
        b.constant(type, 0.0), b.i64(0), m,
        [&](Value i) { return term(left.load(from * m + i) - right.load(to * m + i), p); },
        [&](Value x, Value y) { return norm == Norm::kInfinity ? ir::maximum(x, y) : x + y; }, 16);
    if (norm == Norm::kTwo) return sqrt(folded);
    return norm == Norm::kGeneral ? pow(folded, 1 / p) : folded;
  };
  each_line(b, lines, per_item, [&](Value line) {
    if (pairs) {
      b.loop(line + 1, n, [&](Value other) {
        output.store(pair_position(line, other, n), distance(line, other));
      });
    } else {
      const Value row = line / k;
      output.store(line, distance(row, row / n * k + line % k));
    }
  });
  return b.finish();
}

ir::Kernel DistanceKernel::build_backward() const {
  Builder b(key());
  const Type type = ir::compute_type(dtype);
  const Address slopes = b.update(dtype), grads = b.read(dtype), left = b.read(dtype);
  const Address right = b.read(dtype), distances = b.read(dtype);
  const Value lines = b.index(), per_item = b.index(), n = b.index(), k = b.index(), m = b.index();
  const Value p = cast(type, b.scalar(GRAFT_FLOAT64));
  each_line(b, lines, per_item, [&](Value row) {
    b.vector_loop(b.i64(0), m, [&](Value i) { slopes.store(row * m + i, b.constant(type, 0.0)); });
    auto add = [&](Value other, Value position) {
      const Value grad = grads.load(position), distance = distances.load(position);
      b.vector_loop(b.i64(0), m, [&](Value i) {
        const Value difference = left.load(row * m + i) - right.load(other * m + i);
        const Value sum = slopes.load(row * m + i) + slope(difference, grad, distance, p);
        slopes.store(row * m + i, sum);
      });
    };
    b.loop(b.i64(0), k, [&](Value other) {
      if (pairs) {
        b.if_(other != row, [&] { add(other, pair_position(row, other, n)); });
      } else {
        add(row / n * k + other, row * k + other);
      }
    });
  });
  return b.finish();
}

// Rows of a meet those of b, which is a where pairs.
void launch(Stream& stream, bool pairs, bool backward, Arguments& arguments, const TensorView& a,
            const TensorView& b, double p) {
  const int64_t n = a.sizes[a.rank - 2], k = b.sizes[b.rank - 2], m = a.sizes[a.rank - 1];
  const int64_t rows = pairs ? n : a.sizes[0] * n;
  const WorkSplit split = pairs || backward ? split_work(rows, k * m) : split_work(rows * k, m);
  arguments.index(split.lines).index(split.per_item).index(n).index(k).index(m);
  arguments.scalar(Scalar::of(p), sizeof(p));
  launch_kernel(stream, DistanceKernel{norm_of(p), a.dtype, pairs, backward}, split.grid,
                arguments);
}

}  // namespace

void cross_distances(Stream& stream, const TensorView& output, const TensorView& a,
                     const TensorView& b, double p) {
  if (offer(stream, Operation::cross_distances, writes(output), reads(a, b), numbers(p))) return;
  if (output.count() == 0) return;
  Arguments arguments;
  arguments.write(output).read(a).read(b);
  launch(stream, false, false, arguments, a, b, p);
}

void pair_distances(Stream& stream, const TensorView& output, const TensorView& a, double p) {
  if (offer(stream, Operation::pair_distances, writes(output), reads(a), numbers(p))) return;
  if (output.count() == 0) return;
  Arguments arguments;
  arguments.write(output).read(a).read(a);
  launch(stream, true, false, arguments, a, a, p);
}

void cross_distances_backward(Stream& stream, const TensorView& slopes, const TensorView& grad,
                              const TensorView& a, const TensorView& b, const TensorView& distances,
                              double p) {
  if (offer(stream, Operation::cross_distances_backward, writes(slopes),
            reads(grad, a, b, distances), numbers(p)))
    return;
  if (slopes.count() == 0) return;
  Arguments arguments;
  arguments.update(slopes).read(grad).read(a).read(b).read(distances);
  launch(stream, false, true, arguments, a, b, p);
}

void pair_distances_backward(Stream& stream, const TensorView& slopes, const TensorView& grad,
                             const TensorView& a, const TensorView& distances, double p) {
  if (offer(stream, Operation::pair_distances_backward, writes(slopes), reads(grad, a, distances),
            numbers(p)))
    return;
  if (slopes.count() == 0) return;
  Arguments arguments;
  arguments.update(slopes).read(grad).read(a).read(a).read(distances);
  launch(stream, true, true, arguments, a, a, p);
}

}  // namespace graft

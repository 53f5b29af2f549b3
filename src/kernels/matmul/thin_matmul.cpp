// src/kernels/matmul/thin_matmul.cpp: products of a few rows, each element a sum along dense lines.
#include "kernels/matmul/thin_matmul.h"

#include <string>
#include <utility>
#include <vector>

#include "kernels/launch/accumulators.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/lanes.h"
#include "kernels/launch/read_ahead.h"
#include "kernels/launch/work_split.h"
#include "kernels/matmul/kernel.h"
#include "kernels/move/staging.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

constexpr int64_t kThin = 7;       // rows that are summed side by side
constexpr int64_t kDepth = 32;     // below it there is too little to sum
constexpr int64_t kLineWords = 8;  // of two bfloat16 each, that a step takes at once
constexpr int64_t kWordBytes = 4;

struct ThinKernel {
  graft_dtype output, left, right;
  bool adds;
  bool words;  // both factors are bfloat16 and are read as words of two
  int64_t rows;

  std::string key() const {
    std::string key = std::string(adds ? "matmul_thin_add_" : "matmul_thin_") +
                      std::to_string(rows) + "_" + name_of(output);
    if (left != output || right != output) {
      key += std::string("_") + name_of(left) + "_" + name_of(right);
    }
    return words ? key + "_words" : key;
  }

  // Columns of a work-item. Their sums have to stay in 16 vector registers.
  int64_t columns() const { return words && rows <= 2 ? 4 / rows : 1; }
};

class ThinWriter {
 public:
  explicit ThinWriter(const ThinKernel& kernel)
      : kernel_(kernel),
        b_(kernel.key()),
        type_(ir::compute_type(kernel.output)),
        to_(b_.write(kernel.output)),
        left_(b_.read(kernel.words ? GRAFT_INT32 : kernel.left)),
        right_(b_.read(kernel.words ? GRAFT_INT32 : kernel.right)),
        addend_(kernel.adds ? b_.read(kernel.output) : left_) {
    b_.indices({&items_, &per_item_, &items_of_batch_, &n_, &depth_, &relu_, &row_, &left_batch_,
                &right_batch_, &column_});
    b_.indices({c_, d_}, 3);
    alpha_ = cast(type_, b_.scalar(GRAFT_FLOAT64));
    beta_ = cast(type_, b_.scalar(GRAFT_FLOAT64));
  }

  ir::Kernel write() {
    each_line(b_, items_, per_item_, [&](Value item) {
      const Value batch = item / items_of_batch_;
      const Value first = item % items_of_batch_ * kernel_.columns();
      const Value x = batch * left_batch_, y = batch * right_batch_;
      if (!kernel_.words) return store(numbers(x, y + first * column_), batch, first);
      Values starts;
      for (int64_t j = 0; j < kernel_.columns(); ++j) {
        starts.push_back(y + ir::minimum(first + j, n_ - 1) * column_);
      }
      const Values sums = words(x, starts);
      for (int64_t j = 0; j < kernel_.columns(); ++j) {
        const auto begin = sums.begin() + j * kernel_.rows;
        b_.if_(first + j < n_, [&] { store({begin, begin + kernel_.rows}, batch, first + j); });
      }
    });
    return b_.finish();
  }

 private:
  // The sums of a column, for each row.
  Values numbers(Value x, Value y) {
    const Values zeros(static_cast<size_t>(kernel_.rows), b_.constant(type_, 0));
    const auto step = [&](const Values& sums, Value i) {
      const Value factor = cast(type_, right_.load(y + i));
      Values next;
      for (int64_t r = 0; r < kernel_.rows; ++r) {
        const Value other = cast(type_, left_.load(x + row_ * r + i));
        next.push_back(sums[static_cast<size_t>(r)] + other * factor);
      }
      return next;
    };
    const auto combine = [&](const Values& sums, const Values& more) {
      Values next;
      for (size_t r = 0; r < sums.size(); ++r) next.push_back(sums[r] + more[r]);
      return next;
    };
    return ir::fold(zeros, b_.i64(0), depth_, step, combine, 16);
  }

  // The same of several columns that start there, one after another.
  Values words(Value x, const Values& starts) {
    const std::vector<Lanes> parts =
        zero_lanes(b_, kernel_.rows * static_cast<int64_t>(starts.size()), kLineWords);
    const Value whole = depth_ / kLineWords * kLineWords;
    const Value none = b_.i64(0), all = b_.i64(kLineWords);
    const int64_t columns = kernel_.columns(), by = kBytesAhead / kWordBytes / columns;
    b_.loop(
        none, whole,
        [&](Value at) {
          const Value later = soon(at, by, depth_, column_ * columns);
          for (const Value start : starts) right_.prefetch(start + later);
          add_words(parts, x + at, starts, at, all);
        },
        all);
    add_words(parts, x + whole, starts, whole, depth_ - whole);
    Values sums;
    for (const Lanes& part : parts) sums.push_back(sum_of_lanes(b_, part));
    return sums;
  }

  void add_words(const std::vector<Lanes>& parts, Value x, const Values& starts, Value at,
                 Value count) {
    const auto even = [](Value bits) { return bitcast(Type::kF32, bits << 16); };
    const auto odd = [](Value bits) { return bitcast(Type::kF32, bits & 0xffff0000u); };
    b_.vector_loop(b_.i64(0), count, [&](Value i) {
      Values factors;
      for (int64_t r = 0; r < kernel_.rows; ++r) {
        factors.push_back(cast(Type::kU32, left_.load(x + row_ * r + i)));
      }
      for (size_t j = 0; j < starts.size(); ++j) {
        const Value bits = cast(Type::kU32, right_.load(starts[j] + at + i));
        for (size_t r = 0; r < factors.size(); ++r) {
          const Lanes& part = parts[j * factors.size() + r];
          const Value sum = part.load(i) + even(factors[r]) * even(bits);
          part.store(i, sum + odd(factors[r]) * odd(bits));
        }
      }
    });
  }

  void store(const Values& sums, Value batch, Value j) {
    for (int64_t r = 0; r < kernel_.rows; ++r) {
      Value value = sums[static_cast<size_t>(r)] * alpha_;
      if (kernel_.adds) {
        value = value + beta_ * addend_.load(batch * d_[0] + d_[1] * r + j * d_[2]);
      }
      const Value low = select(value < 0, 0, value);
      to_.store(batch * c_[0] + c_[1] * r + j * c_[2], select(relu_ != 0, low, value));
    }
  }

  const ThinKernel kernel_;
  Builder b_;
  const Type type_;
  Address to_, left_, right_, addend_;
  Value items_, per_item_, items_of_batch_, n_, depth_, relu_, row_, left_batch_, right_batch_;
  Value column_, c_[3], d_[3], alpha_, beta_;
};

TensorView transposed(TensorView view) {
  const int last = view.rank - 1;
  std::swap(view.sizes[last], view.sizes[last - 1]);
  std::swap(view.strides[last], view.strides[last - 1]);
  return view;
}

bool is_even(const TensorView& view, int dense) {
  bool even = view.sizes[dense] % 2 == 0 && view.address % 4 == 0;
  for (int d = 0; d < view.rank; ++d) even = even && (d == dense || view.strides[d] % 2 == 0);
  return even;
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
  const bool words = output.dtype == GRAFT_BFLOAT16 && a.dtype == GRAFT_BFLOAT16 &&
                     b.dtype == GRAFT_BFLOAT16 && !is_gpu_like(stream.device()) &&
                     has_vectors(stream.device()) && is_even(rows, last) && is_even(b, last - 1);
  const ThinKernel kernel{output.dtype, a.dtype, b.dtype, adds, words, m};
  const int64_t each = kernel.columns(), unit = words ? 2 : 1;
  const int64_t items_of_batch = (n + each - 1) / each;
  const WorkSplit split = split_work(batch * items_of_batch, each * m * k);
  Arguments arguments;
  arguments.write(output).read(rows).read(b);
  if (adds) arguments.read(*epilogue.addend);
  arguments.indices({split.lines, split.per_item, items_of_batch, n, k / unit,
                     epilogue.relu ? 1 : 0, rows.strides[last - 1] / unit,
                     output.rank == 3 ? rows.strides[0] / unit : 0,
                     output.rank == 3 ? b.strides[0] / unit : 0, b.strides[last] / unit});
  append_matrix_strides(arguments, {&output, adds ? epilogue.addend : &output});
  arguments.scalar(Scalar::of(epilogue.alpha), sizeof(double));
  arguments.scalar(Scalar::of(epilogue.beta), sizeof(double));
  launch_kernel(stream, kernel.key(), split.grid, arguments,
                [&] { return ThinWriter(kernel).write(); });
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

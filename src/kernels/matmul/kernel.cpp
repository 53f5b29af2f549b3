// src/kernels/matmul/kernel.cpp: the generated matrix product, for devices without a library.
#include "kernels/matmul/kernel.h"

#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/matmul/blocked_matmul.h"
#include "kernels/matmul/thin_matmul.h"
#include "kernels/matmul/tiled_matmul.h"
#include "kernels/move/staging.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

// A work-item computes tiles of this size.
constexpr int64_t kRows = 4;
constexpr int64_t kColumns = 64;

// The parameters after the tensors.
struct Parameters {
  Value lines, per_item, m, n, k, relu, alpha, beta;
  Value a[3], b[3], c[3], addend[3];  // strides: batch, row, column

  explicit Parameters(Builder& builder) {
    builder.indices({&lines, &per_item, &m, &n, &k, &relu});
    builder.indices({a, b, c, addend}, 3);
    alpha = builder.scalar(GRAFT_FLOAT64);
    beta = builder.scalar(GRAFT_FLOAT64);
  }
};

class MatmulWriter {
 public:
  MatmulWriter(const std::string& key, graft_dtype output, graft_dtype left, graft_dtype right,
               bool adds)
      : b_(key),
        type_(ir::compute_type(output)),
        output_(b_.write(output)),
        left_(b_.read(left)),
        right_(b_.read(right)),
        addend_(adds ? b_.read(output) : left_),
        adds_(adds),
        p_(b_) {}

  ir::Kernel write() {
    each_line(b_, p_.lines, p_.per_item, [&](Value line) { tile(line); });
    return b_.finish();
  }

 private:
  void tile(Value line) {
    const Value across = (p_.n + (kColumns - 1)) / kColumns, down = (p_.m + (kRows - 1)) / kRows;
    const Value column = line % across * kColumns, rest = line / across;
    const Value row = rest % down * kRows, batch = rest / down;
    const Value width = ir::minimum(p_.n - column, b_.i64(kColumns));
    std::vector<Lanes> sums;
    Value lefts[kRows];
    for (int64_t r = 0; r < kRows; ++r) {
      sums.emplace_back(b_, type_, kColumns);
      lefts[r] = batch * p_.a[0] + ir::minimum(row + r, p_.m - 1) * p_.a[1];
    }
    b_.vector_loop(b_.i64(0), b_.i64(kColumns), [&](Value i) {
      for (const Lanes& lanes : sums) lanes.store(i, b_.constant(type_, 0));
    });
    const Value right = batch * p_.b[0] + column * p_.b[2];
    b_.loop(b_.i64(0), p_.k, [&](Value k) {
      Value factors[kRows];
      for (int64_t r = 0; r < kRows; ++r) {
        factors[r] = cast(type_, left_.load(lefts[r] + k * p_.a[2]));
      }
      const Value line_of_right = right + k * p_.b[1];
      auto body = [&](Value i) {
        const Value y = cast(type_, right_.load(line_of_right + i));
        for (size_t r = 0; r < sums.size(); ++r) {
          sums[r].store(i, sums[r].load(i) + factors[r] * y);
        }
      };
      b_.if_(
          width == kColumns, [&] { b_.vector_loop(b_.i64(0), b_.i64(kColumns), body); },
          [&] { b_.vector_loop(b_.i64(0), width, body); });
    });
    for (int64_t r = 0; r < kRows; ++r) {
      b_.if_(row + r < p_.m,
             [&] { store(sums[static_cast<size_t>(r)], batch, row + r, column, width); });
    }
  }

  void store(const Lanes& sums, Value batch, Value row, Value column, Value width) {
    const Value to = batch * p_.c[0] + row * p_.c[1] + column * p_.c[2];
    const Value from = batch * p_.addend[0] + row * p_.addend[1] + column * p_.addend[2];
    const Value alpha = cast(type_, p_.alpha), beta = cast(type_, p_.beta);
    b_.vector_loop(b_.i64(0), width, [&](Value i) {
      Value value = sums.load(i) * alpha;
      if (adds_) value = value + beta * addend_.load(from + i * p_.addend[2]);
      const Value low = select(value < 0, 0, value);
      output_.store(to + i * p_.c[2], select(p_.relu != 0, low, value));
    });
  }

  Builder b_;
  ir::Type type_;
  Address output_, left_, right_, addend_;
  const bool adds_;
  Parameters p_;
};

std::string key_of(graft_dtype output, graft_dtype left, graft_dtype right, bool adds) {
  std::string key = std::string(adds ? "matmul_add_" : "matmul_") + name_of(output);
  if (left != output || right != output) {
    key += std::string("_") + name_of(left) + "_" + name_of(right);
  }
  return key;
}

// What eager takes for tiny products beside a library, too.
const PackEntry kPackedProducts([](const PackEntry::Sink& add) {
  for (const bool adds : {false, true}) {
    const std::string key = key_of(GRAFT_FLOAT32, GRAFT_FLOAT32, GRAFT_FLOAT32, adds);
    add(key, [=] {
      return MatmulWriter(key, GRAFT_FLOAT32, GRAFT_FLOAT32, GRAFT_FLOAT32, adds).write();
    });
  }
});

}  // namespace

void append_matrix_strides(Arguments& arguments, std::initializer_list<const TensorView*> views) {
  for (const TensorView* view : views) {
    arguments.indices({view->rank == 3 ? view->strides[0] : 0, view->strides[view->rank - 2],
                       view->strides[view->rank - 1]});
  }
}

void generated_matmul(Stream& stream, const TensorView& output, const TensorView& a,
                      const TensorView& b, const MatmulEpilogue& epilogue) {
  const graft_dtype dtype = output.dtype;
  if (dtype == GRAFT_BOOL || is_complex(dtype)) {
    throw Error(GRAFT_UNSUPPORTED, std::string("matmul: no kernel for ") + name_of(dtype) +
                                       "; convert to an integer or floating dtype");
  }
  if (output.count() == 0) return;
  const bool adds = epilogue.beta != 0.0 && epilogue.addend != nullptr;
  MatmulEpilogue given = epilogue;
  if (!adds) given.beta = 0.0;
  if (fits_blocks(stream.device(), output, a, b)) {
    return blocked_matmul(stream, output, a, b, given);
  }
  if (tiled_matmul(stream, output, a, b, given)) return;
  if (thin_matmul(stream, output, a, b, given)) return;
  const int last = output.rank - 1;
  const bool turned = b.strides[last] != 1 && b.sizes[last] > 1;
  StagedInput right(stream, b, turned);
  const int64_t m = output.sizes[last - 1], n = output.sizes[last], k = a.sizes[last];
  const int64_t batch = output.rank == 3 ? output.sizes[0] : 1;
  const int64_t tiles = batch * ((m + kRows - 1) / kRows) * ((n + kColumns - 1) / kColumns);
  const WorkSplit split =
      split_work(tiles, std::max<int64_t>(k, 1) * std::min(n, kColumns) * std::min(m, kRows));
  Arguments arguments;
  arguments.write(output).read(a).read(right.view());
  if (adds) arguments.read(*epilogue.addend);
  arguments.indices({split.lines, split.per_item, m, n, k, epilogue.relu ? 1 : 0});
  append_matrix_strides(arguments, {&a, &right.view(), &output, adds ? epilogue.addend : &output});
  arguments.scalar(Scalar::of(epilogue.alpha), sizeof(double));
  arguments.scalar(Scalar::of(epilogue.beta), sizeof(double));
  const std::string key = key_of(dtype, a.dtype, b.dtype, adds);
  const auto make = [&] { return MatmulWriter(key, dtype, a.dtype, b.dtype, adds).write(); };
  launch_kernel(stream, key, split.grid, arguments, make);
}

}  // namespace graft

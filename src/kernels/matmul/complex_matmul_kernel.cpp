// src/kernels/matmul/complex_matmul_kernel.cpp: the generated product of complex matrices.
#include "kernels/matmul/complex_matmul_kernel.h"

#include <vector>

#include "codegen/ops/complex_value.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/matmul/kernel.h"
#include "kernels/tensor/complex_parts.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;
using C = ComplexValue;

// A work-item computes tiles of this size.
constexpr int64_t kRows = 4;
constexpr int64_t kColumns = 64;

struct Sums {
  Lanes re, im;
  Sums(Builder& b, ir::Type type) : re(b, type, kColumns), im(b, type, kColumns) {}
  C load(Value lane) const { return {re.load(lane), im.load(lane)}; }
  void store(Value lane, C value) const {
    re.store(lane, value.re);
    im.store(lane, value.im);
  }
};

class ComplexMatmulWriter {
 public:
  ComplexMatmulWriter(const std::string& key, graft_dtype part, bool adds, bool scales)
      : b_(key),
        type_(ir::compute_type(part)),
        output_(b_.write(part)),
        left_(b_.read(part)),
        right_(b_.read(part)),
        addend_(adds ? b_.read(part) : left_),
        adds_(adds),
        scales_(scales) {
    b_.indices({&lines_, &per_item_, &m_, &n_, &k_});
    b_.indices({left_strides_, right_strides_, strides_, added_}, 3);
    for (Value* value : {&sign_a_, &sign_b_, &alpha_.re, &alpha_.im, &beta_.re, &beta_.im}) {
      *value = cast(type_, b_.scalar(GRAFT_FLOAT64));
    }
  }

  ir::Kernel write() {
    each_line(b_, lines_, per_item_, [&](Value line) { tile(line); });
    return b_.finish();
  }

 private:
  // 1 times infinity would be NaN in one part.
  C scaled(C factor, C value) const { return scales_ ? factor * value : value; }

  static C load(const Address& from, Value element) {
    return {from.load(element * 2), from.load(element * 2 + 1)};
  }

  void tile(Value line) {
    const Value across = (n_ + (kColumns - 1)) / kColumns, down = (m_ + (kRows - 1)) / kRows;
    const Value column = line % across * kColumns, rest = line / across;
    const Value row = rest % down * kRows, batch = rest / down;
    const Value width = ir::minimum(n_ - column, b_.i64(kColumns));
    std::vector<Sums> sums;
    Value lefts[kRows];
    for (int64_t r = 0; r < kRows; ++r) {
      sums.emplace_back(b_, type_);
      lefts[r] = batch * left_strides_[0] + ir::minimum(row + r, m_ - 1) * left_strides_[1];
    }
    const Value zero = b_.constant(type_, 0);
    b_.vector_loop(b_.i64(0), b_.i64(kColumns), [&](Value lane) {
      for (const Sums& sum : sums) sum.store(lane, {zero, zero});
    });
    const Value right = batch * right_strides_[0] + column * right_strides_[2];
    b_.loop(b_.i64(0), k_,
            [&](Value k) { accumulate(sums, lefts, k, right + k * right_strides_[1], width); });
    for (int64_t r = 0; r < kRows; ++r) {
      b_.if_(row + r < m_,
             [&] { store(sums[static_cast<size_t>(r)], batch, row + r, column, width); });
    }
  }

  // A conjugate b costs nothing here: its sign goes to the left factors.
  void accumulate(const std::vector<Sums>& sums, const Value lefts[], Value k, Value right,
                  Value width) {
    C factors[kRows], turned[kRows];
    for (int64_t r = 0; r < kRows; ++r) {
      const C factor = load(left_, lefts[r] + k * left_strides_[2]);
      factors[r] = {factor.re, factor.im * sign_a_};
      turned[r] = {-factors[r].im * sign_b_, factor.re * sign_b_};
    }
    auto columns = [&](Value stride) {
      b_.vector_loop(b_.i64(0), width, [&](Value lane) {
        const C y = load(right_, right + lane * stride);
        for (size_t r = 0; r < kRows; ++r) {
          const C before = sums[r].load(lane);
          sums[r].store(lane, {before.re + factors[r].re * y.re + turned[r].re * y.im,
                               before.im + factors[r].im * y.re + turned[r].im * y.im});
        }
      });
    };
    const Value stride = right_strides_[2];
    b_.if_(
        stride == 1, [&] { columns(b_.i64(1)); }, [&] { columns(stride); });
  }

  void store(const Sums& sums, Value batch, Value row, Value column, Value width) {
    const Value to = batch * strides_[0] + row * strides_[1] + column * strides_[2];
    const Value from = batch * added_[0] + row * added_[1] + column * added_[2];
    b_.vector_loop(b_.i64(0), width, [&](Value lane) {
      C value = scaled(alpha_, sums.load(lane));
      if (adds_) value = value + scaled(beta_, load(addend_, from + lane * added_[2]));
      const Value element = (to + lane * strides_[2]) * 2;
      output_.store(element, value.re);
      output_.store(element + 1, value.im);
    });
  }

  Builder b_;
  ir::Type type_;
  Address output_, left_, right_, addend_;
  const bool adds_, scales_;
  Value lines_, per_item_, m_, n_, k_, sign_a_, sign_b_;
  Value left_strides_[3], right_strides_[3], strides_[3], added_[3];  // batch, row, column
  C alpha_, beta_;
};

}  // namespace

void generated_complex_matmul(Stream& stream, const TensorView& output, const ComplexFactor& a,
                              const ComplexFactor& b, const ComplexEpilogue& epilogue) {
  const bool adds = epilogue.addend != nullptr;
  const int last = output.rank - 1;
  const int64_t m = output.sizes[last - 1], n = output.sizes[last], k = a.view.sizes[last];
  const int64_t batch = output.rank == 3 ? output.sizes[0] : 1;
  const int64_t tiles = batch * ((m + kRows - 1) / kRows) * ((n + kColumns - 1) / kColumns);
  const WorkSplit split =
      split_work(tiles, 4 * std::max<int64_t>(k, 1) * std::min(n, kColumns) * std::min(m, kRows));
  Arguments arguments;
  arguments.write(output).read(a.view).read(b.view);
  if (adds) arguments.read(*epilogue.addend);
  arguments.indices({split.lines, split.per_item, m, n, k});
  append_matrix_strides(arguments, {&a.view, &b.view, &output, adds ? epilogue.addend : &output});
  for (double number : {a.conjugate ? -1.0 : 1.0, b.conjugate ? -1.0 : 1.0, epilogue.alpha.real(),
                        epilogue.alpha.imag(), epilogue.beta.real(), epilogue.beta.imag()}) {
    arguments.scalar(Scalar::of(number), sizeof(number));
  }
  const graft_dtype part = part_of(output.dtype);
  const bool scales = epilogue.alpha != 1.0 || (adds && epilogue.beta != 1.0);
  const std::string key = std::string("matmul_") + (adds ? "add_" : "") +
                          (scales ? "scaled_" : "") + name_of(output.dtype);
  launch_kernel(stream, key, split.grid, arguments,
                [&] { return ComplexMatmulWriter(key, part, adds, scales).write(); });
}

}  // namespace graft

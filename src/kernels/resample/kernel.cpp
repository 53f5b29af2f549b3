// src/kernels/resample/kernel.cpp: the kernels behind resample.h, one map along one dimension.
#include "kernels/resample/kernel.h"

#include <fmt/format.h>

#include "codegen/ir/builder.h"
#include "kernels/launch/work_split.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

class ResampleWriter {
 public:
  explicit ResampleWriter(const ResampleKernel& kernel)
      : k_(kernel), b_(kernel.key()), sum_(ir::compute_type(kernel.sum)) {
    to_ = b_.write(k_.to);
    from_ = b_.read(k_.from);
    positions_ = b_.read(GRAFT_INT32);
    if (k_.weighted) weights_ = b_.read(k_.sum);
    if (k_.taps == 0) counts_ = b_.read(GRAFT_INT32);
    for (Value* value : {&lines_, &per_item_, &written_, &read_, &inner_, &blocks_, &bits_}) {
      *value = b_.index();
    }
  }

  ir::Kernel write() {
    each_line(b_, lines_, per_item_, [&](Value line) {
      const Value first = line % blocks_ * ResampleKernel::kBlock, rest = line / blocks_;
      k_.rows ? row(rest, first) : columns(rest, first);
    });
    return b_.finish();
  }

 private:
  Value zero() { return b_.i64(0); }
  Value start() {
    if (!k_.fixed) return b_.constant(sum_, 0);
    return cast(sum_, b_.i64(1) << (bits_ - 1));
  }
  void finish(Value element, Value sum) {
    if (k_.fixed) {
      const Value whole = sum >> cast(sum_, bits_);
      sum = ir::minimum(ir::maximum(whole, b_.constant(sum_, 0)), b_.constant(sum_, 255));
    }
    to_.store(element, sum);
  }

  Value position(Value element, Value plane) {
    return cast(ir::Type::kI64, positions_.load(plane * written_ + element));
  }
  Value weight(Value element, Value plane) {
    return k_.weighted ? weights_.load(plane * written_ + element) : b_.constant(sum_, 1);
  }
  // One term of an element whose source starts at base.
  Value term(Value base, Value at, Value weight) {
    const Value safe = k_.padded && k_.taps > 0 ? ir::maximum(at, zero()) : at;
    Value x = cast(sum_, from_.load(base + safe * inner_));
    if (k_.weighted) x = x * weight;
    return k_.padded && k_.taps > 0 ? select(at >= 0, x, 0) : x;
  }
  Value total(const std::vector<Value>& terms) {
    Value sum = k_.fixed ? start() + terms[0] : terms[0];
    for (size_t i = 1; i < terms.size(); ++i) sum = sum + terms[i];
    return sum;
  }

  // A block of the inner elements of one written element: they share its taps.
  void row(Value rest, Value first) {
    const Value element = rest % written_, outer = rest / written_;
    const Value width = ir::minimum(inner_ - first, b_.i64(ResampleKernel::kBlock));
    const Value to = rest * inner_ + first, base = outer * read_ * inner_ + first;
    if (k_.taps > 0) {
      std::vector<Value> at, scale;
      for (int t = 0; t < k_.taps; ++t) {
        at.push_back(position(element, b_.i64(t)));
        scale.push_back(weight(element, b_.i64(t)));
      }
      b_.vector_loop(zero(), width, [&](Value i) {
        std::vector<Value> terms;
        for (size_t t = 0; t < at.size(); ++t) terms.push_back(term(base + i, at[t], scale[t]));
        finish(to + i, total(terms));
      });
      return;
    }
    const Lanes sums(b_, sum_, ResampleKernel::kBlock);
    const Value nothing = start();
    b_.vector_loop(zero(), b_.i64(ResampleKernel::kBlock),
                   [&](Value i) { sums.store(i, nothing); });
    b_.loop(zero(), cast(ir::Type::kI64, counts_.load(element)), [&](Value t) {
      const Value at = position(element, t), scale = weight(element, t);
      b_.vector_loop(zero(), width,
                     [&](Value i) { sums.store(i, sums.load(i) + term(base + i, at, scale)); });
    });
    b_.vector_loop(zero(), width, [&](Value i) { finish(to + i, sums.load(i)); });
  }

  // A block of written elements, gathered; few inner elements, one after another.
  void columns(Value outer, Value first) {
    const Value end = ir::minimum(first + ResampleKernel::kBlock, written_);
    b_.loop(zero(), inner_, [&](Value j) {
      const Value to = outer * written_ * inner_ + j, base = outer * read_ * inner_ + j;
      if (k_.taps > 0) {
        b_.vector_loop(first, end, [&](Value i) {
          std::vector<Value> terms;
          for (int t = 0; t < k_.taps; ++t) {
            const Value plane = b_.i64(t);
            terms.push_back(term(base, position(i, plane), weight(i, plane)));
          }
          finish(to + i * inner_, total(terms));
        });
        return;
      }
      b_.loop(first, end, [&](Value i) {
        Variable sum(start());
        b_.loop(zero(), cast(ir::Type::kI64, counts_.load(i)),
                [&](Value t) { sum = sum.get() + term(base, position(i, t), weight(i, t)); });
        finish(to + i * inner_, sum.get());
      });
    });
  }

  const ResampleKernel k_;
  Builder b_;
  const ir::Type sum_;
  Address to_, from_, positions_, weights_, counts_;
  Value lines_, per_item_, written_, read_, inner_, blocks_, bits_;
};

}  // namespace

std::string ResampleKernel::key() const {
  return fmt::format("resample_{}{}{}{}{}_{}_{}_{}", rows ? "rows" : "columns",
                     taps == 0 ? "_many" : "_" + std::to_string(taps), padded ? "_padded" : "",
                     weighted ? "_weighted" : "", fixed ? "_fixed" : "", name_of(to), name_of(from),
                     name_of(sum));
}

ir::Kernel ResampleKernel::build() const { return ResampleWriter(*this).write(); }

}  // namespace graft

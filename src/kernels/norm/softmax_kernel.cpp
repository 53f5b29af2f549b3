// src/kernels/norm/softmax_kernel.cpp: the kernels behind softmax.h, for contiguous tensors.
#include "kernels/norm/softmax_kernel.h"

#include <functional>
#include <limits>

#include "codegen/ir/builder.h"
#include "kernels/launch/line_loop.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

class SoftmaxWriter {
 public:
  explicit SoftmaxWriter(const SoftmaxKernel& kernel)
      : kernel_(kernel),
        b_(kernel.key(), family_of(kernel.deal)),
        type_(ir::compute_type(kernel.dtype)),
        output_(b_.update(kernel.dtype)),
        input_(b_.read(kernel.dtype)),
        saved_(kernel.backward ? b_.read(kernel.dtype) : input_),
        lines_(b_.index()),
        per_item_(b_.index()),
        n_(b_.index()) {}

  ir::Kernel write() {
    if (kernel_.columns) {
      inner_ = b_.index();
      each_line(b_, lines_, per_item_, [&](Value line) { block(line); });
    } else {
      LineLoop loop(b_, kernel_.deal, type_);
      loop.lines(lines_, per_item_, [&](Value line) {
        kernel_.backward ? backward_line(loop, line) : forward_line(loop, line);
      });
    }
    return b_.finish();
  }

 private:
  uint32_t lanes() const { return kernel_.brief ? 8 : 64; }
  Value zero() { return b_.i64(0); }
  Value first(double value) { return b_.constant(type_, value); }
  static constexpr double kLowest = -std::numeric_limits<double>::infinity();

  Value result(Value x, Value largest, Value sum) {
    return kernel_.log ? x - largest - log(sum) : exp(x - largest) / sum;
  }
  Value gradient_term(Value g, Value y) { return kernel_.log ? g : g * y; }
  Value gradient(Value g, Value y, Value sum) {
    return kernel_.log ? g - exp(y) * sum : (g - sum) * y;
  }

  void forward_line(LineLoop& loop, Value line) {
    const Value row = line * n_;
    const Value largest = loop.reduce(
        first(kLowest), n_, [&](Value i) { return input_.load(row + i); },
        [](Value a, Value b) { return maximum(a, b); }, lanes());
    const bool keeps =
        !kernel_.log && (kernel_.dtype == GRAFT_FLOAT32 || kernel_.dtype == GRAFT_FLOAT64);
    const Value sum = loop.reduce(
        first(0), n_,
        [&](Value i) {
          const Value e = exp(input_.load(row + i) - largest);
          // Wide outputs hold the exponentials until the sum is known.
          if (keeps) output_.store(row + i, e);
          return e;
        },
        std::plus<>(), lanes());
    const Value scale = 1 / sum, shift = largest + log(sum);
    loop.each(n_, [&](Value i) {
      if (keeps) return output_.store(row + i, output_.load(row + i) * scale);
      const Value x = input_.load(row + i);
      output_.store(row + i, kernel_.log ? x - shift : exp(x - largest) * scale);
    });
  }

  void backward_line(LineLoop& loop, Value line) {
    const Value row = line * n_;
    const Value sum = loop.reduce(
        first(0), n_,
        [&](Value i) { return gradient_term(input_.load(row + i), saved_.load(row + i)); },
        std::plus<>(), lanes());
    loop.each(n_, [&](Value i) {
      output_.store(row + i, gradient(input_.load(row + i), saved_.load(row + i), sum));
    });
  }

  // Runs body(lane, element) down the n rows of a block of columns.
  template <class Body>
  void down(Value base, Value width, Body body) {
    b_.loop(zero(), n_, [&](Value i) {
      const Value row = base + i * inner_;
      b_.vector_loop(zero(), width, [&](Value lane) { body(lane, row + lane); });
    });
  }

  void fill(const Lanes& lanes, double value) {
    b_.vector_loop(zero(), b_.i64(kernel_.width()),
                   [&](Value lane) { lanes.store(lane, first(value)); });
  }

  void block(Value line) {
    const int64_t most = kernel_.width();
    const Value blocks = (inner_ + (most - 1)) / most, column = line % blocks * most;
    const Value width = ir::minimum(inner_ - column, b_.i64(most));
    const Value base = line / blocks * n_ * inner_ + column;
    const Lanes sum(b_, type_, static_cast<uint32_t>(most));
    fill(sum, 0);
    if (kernel_.backward) {
      down(base, width, [&](Value lane, Value at) {
        sum.store(lane, sum.load(lane) + gradient_term(input_.load(at), saved_.load(at)));
      });
      return down(base, width, [&](Value lane, Value at) {
        output_.store(at, gradient(input_.load(at), saved_.load(at), sum.load(lane)));
      });
    }
    const Lanes largest(b_, type_, static_cast<uint32_t>(most));
    fill(largest, kLowest);
    down(base, width, [&](Value lane, Value at) {
      largest.store(lane, maximum(largest.load(lane), input_.load(at)));
    });
    down(base, width, [&](Value lane, Value at) {
      sum.store(lane, sum.load(lane) + exp(input_.load(at) - largest.load(lane)));
    });
    down(base, width, [&](Value lane, Value at) {
      output_.store(at, result(input_.load(at), largest.load(lane), sum.load(lane)));
    });
  }

  const SoftmaxKernel& kernel_;
  Builder b_;
  ir::Type type_;
  Address output_, input_, saved_;
  Value lines_, per_item_, n_, inner_;
};

}  // namespace

std::string SoftmaxKernel::key() const {
  return std::string(log ? "log_softmax" : "softmax") + (backward ? "_backward" : "") +
         (columns ? "_columns_"
          : brief ? "_brief_"
                  : "_lines_") +
         name_of(dtype) + suffix_of(deal);
}

int64_t SoftmaxKernel::width() const { return deal == WorkMapping::kSpans ? 64 : 1; }

ir::Kernel SoftmaxKernel::build() const { return SoftmaxWriter(*this).write(); }

}  // namespace graft

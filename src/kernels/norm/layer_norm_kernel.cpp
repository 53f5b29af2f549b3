// src/kernels/norm/layer_norm_kernel.cpp: the kernels behind layer normalisation.
#include "kernels/norm/layer_norm_kernel.h"

#include <functional>

#include "codegen/ir/builder.h"
#include "kernels/launch/line_loop.h"
#include "kernels/reduce/moments.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

class LayerNormWriter {
 public:
  explicit LayerNormWriter(const LayerNormKernel& kernel)
      : kernel_(kernel),
        b_(kernel.key(), family_of(kernel.deal)),
        type_(ir::compute_type(kernel.dtype)) {}

  ir::Kernel forward() {
    const Address output = b_.write(kernel_.dtype), mean = b_.write(kernel_.wide);
    const Address rstd = b_.write(kernel_.wide), input = b_.read(kernel_.dtype);
    parameters();
    const Value epsilon = cast(type_, b_.scalar(GRAFT_FLOAT64));
    LineMoments moments(b_, kernel_.deal, type_);
    LineLoop loop(b_, kernel_.deal, type_);
    loop.lines(lines_, per_item_, [&](Value line) {
      const Value row = line * n_, count = cast(type_, n_);
      const auto found = moments.of(n_, [&](Value i) { return input.load(row + i); });
      const Value average = found.mean, scale = 1 / sqrt(found.squares / count + epsilon);
      loop.once([&] {
        mean.store(line, average);
        rstd.store(line, scale);
      });
      loop.each(n_, [&](Value i) {
        Value y = (input.load(row + i) - average) * scale;
        if (kernel_.weight) y = y * cast(type_, weight_.load(i));
        if (kernel_.bias) y = y + cast(type_, bias_.load(i));
        output.store(row + i, y);
      });
    });
    return b_.finish();
  }

  ir::Kernel input_gradient() {
    const Address gradient = b_.write(kernel_.dtype), grad = b_.read(kernel_.dtype);
    const Address input = b_.read(kernel_.dtype), mean = b_.read(kernel_.wide);
    const Address rstd = b_.read(kernel_.wide);
    parameters();
    LineLoop loop(b_, kernel_.deal, type_);
    loop.lines(lines_, per_item_, [&](Value line) {
      const Value row = line * n_, count = cast(type_, n_);
      const Value average = cast(type_, mean.load(line)), scale = cast(type_, rstd.load(line));
      auto scaled = [&](Value i) {
        const Value g = grad.load(row + i);
        return kernel_.weight ? g * cast(type_, weight_.load(i)) : g;
      };
      auto hat = [&](Value i) { return (input.load(row + i) - average) * scale; };
      const Value plain = sum(loop, scaled) / count;
      const Value along = sum(loop, [&](Value i) { return scaled(i) * hat(i); }) / count;
      loop.each(n_, [&](Value i) {
        gradient.store(row + i, scale * (scaled(i) - plain - hat(i) * along));
      });
    });
    return b_.finish();
  }

  // A line is a chunk of rows; its sums gather in the chunk's row of the partial results.
  ir::Kernel parameter_gradients() {
    const Address weights = b_.update(kernel_.wide), biases = b_.update(kernel_.wide);
    const Address grad = b_.read(kernel_.dtype), input = b_.read(kernel_.dtype);
    const Address mean = b_.read(kernel_.wide), rstd = b_.read(kernel_.wide);
    parameters();
    const Value rows = b_.index(), rows_per_chunk = b_.index();
    if (kernel_.deal != WorkMapping::kSpans) {
      each_line(b_, lines_, per_item_, [&](Value line) {
        const Value begin = line / n_ * rows_per_chunk, column = line % n_;
        const Variable along(b_.constant(type_, 0.0)), plain(b_.constant(type_, 0.0));
        b_.loop(begin, ir::minimum(begin + rows_per_chunk, rows), [&](Value row) {
          const Value average = cast(type_, mean.load(row)), scale = cast(type_, rstd.load(row));
          const Value at = row * n_ + column, g = grad.load(at);
          along = along.get() + g * ((input.load(at) - average) * scale);
          plain = plain.get() + g;
        });
        weights.store(line, along.get());
        biases.store(line, plain.get());
      });
      return b_.finish();
    }
    each_line(b_, lines_, per_item_, [&](Value chunk) {
      const Value base = chunk * n_, begin = chunk * rows_per_chunk;
      const Value zero = b_.constant(type_, 0.0);
      b_.vector_loop(b_.i64(0), n_, [&](Value i) {
        weights.store(base + i, zero);
        biases.store(base + i, zero);
      });
      b_.loop(begin, ir::minimum(begin + rows_per_chunk, rows), [&](Value row) {
        const Value average = cast(type_, mean.load(row)), scale = cast(type_, rstd.load(row));
        const Value at = row * n_;
        b_.vector_loop(b_.i64(0), n_, [&](Value i) {
          const Value g = grad.load(at + i);
          const Value hat = (input.load(at + i) - average) * scale;
          weights.store(base + i, cast(type_, weights.load(base + i)) + g * hat);
          biases.store(base + i, cast(type_, biases.load(base + i)) + g);
        });
      });
    });
    return b_.finish();
  }

 private:
  void parameters() {
    if (kernel_.weight) weight_ = b_.read(kernel_.parameter);
    if (kernel_.bias) bias_ = b_.read(kernel_.parameter);
    lines_ = b_.index();
    per_item_ = b_.index();
    n_ = b_.index();
  }
  template <class Body>
  Value sum(LineLoop& loop, Body body) {
    return loop.reduce(b_.constant(type_, 0.0), n_, body, std::plus<>());
  }

  const LayerNormKernel& kernel_;
  Builder b_;
  ir::Type type_;
  Address weight_, bias_;
  Value lines_, per_item_, n_;
};

}  // namespace

std::string LayerNormKernel::key() const {
  static const char* const kSteps[] = {"forward", "input", "parameters"};
  return std::string("layer_norm_") + kSteps[step] + (weight ? "_weight" : "") +
         (bias ? "_bias_" : "_") + name_of(dtype) + "_" + name_of(parameter) + "_" + name_of(wide) +
         suffix_of(deal);
}

ir::Kernel LayerNormKernel::build() const {
  LayerNormWriter writer(*this);
  if (step == kForward) return writer.forward();
  return step == kInput ? writer.input_gradient() : writer.parameter_gradients();
}

}  // namespace graft

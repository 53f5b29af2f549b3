// src/kernels/loss/multilabel_margin.cpp: the hinge loss of samples with several labels.
#include "kernels/loss/multilabel_margin.h"

#include <functional>
#include <string>

#include "kernels/launch/arguments.h"
#include "kernels/launch/checked_index.h"
#include "kernels/launch/work_split.h"
#include "kernels/operation/offer.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

struct MarginKernel {
  graft_dtype dtype;
  bool backward;

  std::string key() const {
    return std::string("multilabel_margin_") + (backward ? "backward_" : "") + name_of(dtype);
  }
  ir::Kernel build() const { return backward ? build_backward() : build_forward(); }
  ir::Kernel build_forward() const;
  ir::Kernel build_backward() const;
};

// body(label) for the labels of the sample that begins at base.
template <class Body>
void each_label(Builder& b, const IndexChecker& checker, const Address& labels, Value base,
                Value classes, Body body) {
  b.loop(b.i64(0), classes, [&](Value k) {
    const Value given = labels.load(base + k);
    b.break_if(given < 0);
    body(checker.check(given, classes, false));
  });
}

ir::Kernel MarginKernel::build_forward() const {
  Builder b(key());
  const Type type = ir::compute_type(dtype);
  const Address losses = b.write(dtype), marks = b.update(dtype), scores = b.read(dtype);
  const Address labels = b.read(GRAFT_INT64);
  const IndexChecker checker(b);
  const Value lines = b.index(), per_item = b.index(), classes = b.index();
  each_line(b, lines, per_item, [&](Value line) {
    const Value base = line * classes;
    b.vector_loop(b.i64(0), classes,
                  [&](Value i) { marks.store(base + i, b.constant(type, 0.0)); });
    each_label(b, checker, labels, base, classes,
               [&](Value label) { marks.store(base + label, b.constant(type, 1.0)); });
    const Variable sum(b.constant(type, 0.0));
    each_label(b, checker, labels, base, classes, [&](Value label) {
      const Value bar = 1.0 - scores.load(base + label);
      sum = sum + ir::reduce(
                      b.constant(type, 0.0), b.i64(0), classes,
                      [&](Value i) {
                        const Value gap = bar + scores.load(base + i);
                        return select((gap > 0) & (marks.load(base + i) == 0), gap, 0.0);
                      },
                      std::plus<>(), 16);
    });
    losses.store(line, sum / cast(type, classes));
  });
  return b.finish();
}

ir::Kernel MarginKernel::build_backward() const {
  Builder b(key());
  const Type type = ir::compute_type(dtype);
  const Address slopes = b.update(dtype), scores = b.read(dtype), labels = b.read(GRAFT_INT64);
  const Address marks = b.read(dtype);
  const IndexChecker checker(b);
  const Value lines = b.index(), per_item = b.index(), classes = b.index();
  each_line(b, lines, per_item, [&](Value line) {
    const Value base = line * classes;
    b.vector_loop(b.i64(0), classes,
                  [&](Value i) { slopes.store(base + i, b.constant(type, 0.0)); });
    each_label(b, checker, labels, base, classes, [&](Value label) {
      const Value bar = 1.0 - scores.load(base + label);
      const Variable missed(b.constant(type, 0.0));
      b.loop(b.i64(0), classes, [&](Value i) {
        const Value gap = bar + scores.load(base + i);
        const Value misses = (gap > 0) & (marks.load(base + i) == 0);
        const Value slope = select(misses, b.constant(type, 1.0), 0.0);
        slopes.store(base + i, slopes.load(base + i) + slope);
        missed = missed + slope;
      });
      slopes.store(base + label, slopes.load(base + label) - missed);
    });
  });
  return b.finish();
}

void launch(Stream& stream, const MarginKernel& kernel, Arguments& arguments,
            const TensorView& scores) {
  const int64_t samples = scores.sizes[0], classes = scores.sizes[1];
  const WorkSplit split = split_work(samples, classes * 8);
  append_checker(arguments, stream);
  arguments.indices({split.lines, split.per_item, classes});
  launch_kernel(stream, kernel, split.grid, arguments);
}

}  // namespace

void multilabel_margin(Stream& stream, const TensorView& losses, const TensorView& marks,
                       const TensorView& scores, const TensorView& labels) {
  if (offer(stream, Operation::multilabel_margin,
            [&](VendorCall& to) { to.write(losses).write(marks).read(scores).read(labels); }))
    return;
  if (scores.count() == 0) return;
  Arguments arguments;
  arguments.write(losses).update(marks).read(scores).read(labels);
  launch(stream, {scores.dtype, false}, arguments, scores);
}

void multilabel_margin_backward(Stream& stream, const TensorView& slopes, const TensorView& scores,
                                const TensorView& labels, const TensorView& marks) {
  if (offer(stream, Operation::multilabel_margin_backward,
            [&](VendorCall& to) { to.write(slopes).read(scores).read(labels).read(marks); }))
    return;
  if (scores.count() == 0) return;
  Arguments arguments;
  arguments.update(slopes).read(scores).read(labels).read(marks);
  launch(stream, {scores.dtype, true}, arguments, scores);
}

}  // namespace graft

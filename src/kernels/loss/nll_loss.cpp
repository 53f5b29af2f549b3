// src/kernels/loss/nll_loss.cpp: the negative log-likelihood loss and its gradient.
#include <functional>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/checked_index.h"
#include "kernels/launch/work_split.h"
#include "kernels/launch/workspace.h"
#include "kernels/loss/loss.h"
#include "kernels/move/fill.h"
#include "kernels/operation/offer.h"
#include "kernels/reduce/programs.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

// Elements whose losses one work-item adds up.
constexpr int64_t kChunk = 4096;

struct NllKernel {
  enum Step { kEach, kSum, kFinish, kBackward } step;
  bool weighted;
  LossReduction reduction;  // kFinish: mean or sum; kBackward: all
  graft_dtype data, target;

  std::string key() const {
    static const char* const kSteps[] = {"each", "sum", "finish", "backward"};
    static const char* const kReductions[] = {"_none_", "_mean_", "_sum_"};
    return std::string("nll_loss_") + kSteps[step] + (weighted ? "_weighted" : "") +
           kReductions[static_cast<int>(reduction)] + name_of(data) + "_" + name_of(target);
  }
  ir::Kernel build() const;
};

// Declares what all steps over elements share, and gives the position of each element.
struct Elements {
  Builder& b;
  Address scores, targets, weights;
  bool weighted;
  IndexChecker checker;
  Value count, plane, classes, ignored, score_image, score_class, score_pixel, target_image,
      target_pixel;

  Elements(Builder& builder, const NllKernel& kernel, bool writes_scores)
      : b(builder),
        scores(writes_scores ? b.update(kernel.data) : b.read(kernel.data)),
        targets(b.read(kernel.target)),
        weights(kernel.weighted ? b.read(kernel.data) : scores),
        weighted(kernel.weighted),
        checker(b) {
    b.indices({&count, &plane, &classes, &ignored, &score_image, &score_class, &score_pixel,
               &target_image, &target_pixel});
  }

  // body(position of the score, weight) for an element that counts.
  template <class Body>
  void visit(Value element, Body body) {
    const Value image = element / plane, pixel = element % plane;
    const Value given =
        cast(ir::Type::kI64, targets.load(image * target_image + pixel * target_pixel));
    b.if_(given != ignored, [&] {
      const Value target = checker.check(given, classes, false);
      const Value weight =
          weighted ? weights.load(target) : b.constant(ir::compute_type(scores.dtype), 1.0);
      body(image * score_image + pixel * score_pixel + target * score_class, weight);
    });
  }
};

ir::Kernel build_each(const NllKernel& kernel) {
  Builder b(kernel.key());
  const Address output = b.write(kernel.data);
  Elements elements(b, kernel, false);
  const Value lines = b.index(), per_item = b.index(), image = b.index(), pixel = b.index();
  each_line(b, lines, per_item, [&](Value i) {
    const Value to = i / elements.plane * image + i % elements.plane * pixel;
    output.store(to, b.constant(ir::compute_type(kernel.data), 0.0));
    elements.visit(i, [&](Value score, Value weight) {
      output.store(to, -(elements.scores.load(score) * weight));
    });
  });
  return b.finish();
}

ir::Kernel build_sum(const NllKernel& kernel) {
  Builder b(kernel.key());
  const graft_dtype wide = wide_dtype(kernel.data);
  const Address losses = b.write(wide), totals = b.write(wide);
  Elements elements(b, kernel, false);
  const Value lines = b.index(), per_item = b.index();
  each_line(b, lines, per_item, [&](Value chunk) {
    const Value zero = b.constant(ir::compute_type(wide), 0.0);
    ir::Variable loss(zero), total(zero);
    b.loop(chunk * kChunk, ir::minimum((chunk + 1) * kChunk, elements.count), [&](Value i) {
      elements.visit(i, [&](Value score, Value weight) {
        loss = loss.get() - elements.scores.load(score) * weight;
        total = total.get() + weight;
      });
    });
    losses.store(chunk, loss.get());
    totals.store(chunk, total.get());
  });
  return b.finish();
}

ir::Kernel build_finish(const NllKernel& kernel) {
  Builder b(kernel.key());
  const graft_dtype wide = wide_dtype(kernel.data);
  const Address output = b.write(kernel.data), total_weight = b.write(kernel.data);
  const Address losses = b.read(wide), totals = b.read(wide);
  const Value chunks = b.index();
  auto sum = [&](const Address& from) {
    return ir::reduce(
        b.constant(ir::compute_type(wide), 0.0), b.i64(0), chunks,
        [&](Value i) { return from.load(i); }, std::plus<>());
  };
  const Value loss = sum(losses), total = sum(totals);
  output.store(b.i64(0), kernel.reduction == LossReduction::kMean ? loss / total : loss);
  total_weight.store(b.i64(0), total);
  return b.finish();
}

ir::Kernel build_backward(const NllKernel& kernel) {
  Builder b(kernel.key());
  const Address gradient = b.read(kernel.data), total = b.read(kernel.data);
  Elements elements(b, kernel, true);
  const Value lines = b.index(), per_item = b.index(), image = b.index(), pixel = b.index();
  each_line(b, lines, per_item, [&](Value i) {
    elements.visit(i, [&](Value score, Value weight) {
      Value g = gradient.load(i / elements.plane * image + i % elements.plane * pixel);
      if (kernel.reduction == LossReduction::kMean) g = g / total.load(b.i64(0));
      elements.scores.store(score, -(weight * g));
    });
  });
  return b.finish();
}

ir::Kernel NllKernel::build() const {
  switch (step) {
    case kEach:
      return build_each(*this);
    case kSum:
      return build_sum(*this);
    case kFinish:
      return build_finish(*this);
    default:
      return build_backward(*this);
  }
}

// Sizes and strides of scores [n, c, plane] and of what has one element per target.
struct Shape {
  int64_t n = 1, classes = 0, plane = 1;
  int64_t image_stride = 0, class_stride = 0, pixel_stride = 0;
};

TensorView pixels_of(const TensorView& view, int first) {
  TensorView pixels = view;
  pixels.rank = view.rank - first;
  for (int d = 0; d < pixels.rank; ++d) {
    pixels.sizes[d] = view.sizes[d + first];
    pixels.strides[d] = view.strides[d + first];
  }
  Axes axes = Axes::of({&pixels});
  axes.merge();
  if (axes.rank > 1) {
    throw Error(GRAFT_UNSUPPORTED,
                "nll_loss: the spatial dimensions do not merge into one; make them contiguous");
  }
  return axes.view(0, view.address, view.dtype);
}

Shape shape_of(const TensorView& scores) {
  Shape shape;
  const int channel = scores.rank == 1 ? 0 : 1;
  shape.classes = scores.sizes[channel];
  shape.class_stride = scores.strides[channel];
  if (channel == 1) shape.n = scores.sizes[0], shape.image_stride = scores.strides[0];
  const TensorView pixels = pixels_of(scores, channel + 1);
  if (pixels.rank > 0) shape.plane = pixels.sizes[0], shape.pixel_stride = pixels.strides[0];
  return shape;
}

// Image and pixel strides of a view with one element per target.
void append_strides(Arguments& arguments, const TensorView& view) {
  if (view.rank == 0) {
    arguments.index(0).index(0);
    return;
  }
  const TensorView pixels = pixels_of(view, 1);
  arguments.index(view.strides[0]).index(pixels.rank > 0 ? pixels.strides[0] : 0);
}

void append_elements(Arguments& arguments, Stream& stream, const Shape& shape,
                     const TensorView& target, int64_t ignore_index) {
  if (shape.n * shape.plane > 0) require_elements(shape.classes, 1);
  append_checker(arguments, stream);
  arguments.indices({shape.n * shape.plane, shape.plane, shape.classes, ignore_index,
                     shape.image_stride, shape.class_stride, shape.pixel_stride});
  append_strides(arguments, target);
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  const graft_dtype f32 = GRAFT_FLOAT32, i64 = GRAFT_INT64;
  const auto put = [&](const NllKernel& kernel) { PackEntry::put(add, kernel); };
  for (bool weighted : {false, true}) {
    put({NllKernel::kSum, weighted, LossReduction::kSum, f32, i64});
    put({NllKernel::kEach, weighted, LossReduction::kNone, f32, i64});
    for (auto reduction : {LossReduction::kNone, LossReduction::kMean, LossReduction::kSum}) {
      put({NllKernel::kBackward, weighted, reduction, f32, i64});
    }
  }
  for (auto reduction : {LossReduction::kMean, LossReduction::kSum}) {
    put({NllKernel::kFinish, false, reduction, f32, i64});
  }
});

}  // namespace

void nll_loss(Stream& stream, const TensorView& output, const TensorView& total_weight,
              const TensorView& input, const TensorView& target, const TensorView* weight,
              LossReduction reduction, int64_t ignore_index) {
  if (offer(stream, Operation::nll_loss, [&](VendorCall& to) {
        to.write(output).write(total_weight).read(input).read(target).read(weight);
        to.integers({static_cast<int>(reduction), ignore_index});
      }))
    return;
  const Shape shape = shape_of(input);
  const int64_t count = shape.n * shape.plane;
  NllKernel kernel{NllKernel::kEach, weight != nullptr, reduction, input.dtype, target.dtype};
  if (reduction == LossReduction::kNone) {
    fill(stream, total_weight, Scalar::of(0.0));
    if (count == 0) return;
    const WorkSplit split = split_work(count, 8);
    Arguments arguments;
    arguments.write(output).read(input).read(target);
    if (weight != nullptr) arguments.read(*weight);
    append_elements(arguments, stream, shape, target, ignore_index);
    arguments.index(split.lines).index(split.per_item);
    append_strides(arguments, output);
    return launch_kernel(stream, kernel, split.grid, arguments);
  }
  const int64_t chunks = (count + kChunk - 1) / kChunk;
  const graft_dtype wide = wide_dtype(input.dtype);
  const uint64_t bytes = static_cast<uint64_t>(std::max<int64_t>(chunks, 1)) * size_of(wide);
  Workspace losses(stream, bytes), totals(stream, bytes);
  kernel.step = NllKernel::kSum;
  kernel.reduction = LossReduction::kSum;
  if (chunks > 0) {
    Arguments arguments;
    arguments.address(losses.address(), bytes, GRAFT_ACCESS_WRITE);
    arguments.address(totals.address(), bytes, GRAFT_ACCESS_WRITE).read(input).read(target);
    if (weight != nullptr) arguments.read(*weight);
    append_elements(arguments, stream, shape, target, ignore_index);
    arguments.index(chunks).index(1);
    launch_kernel(stream, kernel, chunks, arguments);
  }
  kernel.step = NllKernel::kFinish;
  kernel.weighted = false;
  kernel.reduction = reduction;
  Arguments arguments;
  arguments.write(output).write(total_weight);
  arguments.address(losses.address(), bytes, GRAFT_ACCESS_READ);
  arguments.address(totals.address(), bytes, GRAFT_ACCESS_READ).index(chunks);
  launch_kernel(stream, kernel, 1, arguments);
}

void nll_loss_backward(Stream& stream, const TensorView& grad_input, const TensorView& grad_output,
                       const TensorView& target, const TensorView* weight,
                       const TensorView& total_weight, LossReduction reduction,
                       int64_t ignore_index) {
  if (offer(stream, Operation::nll_loss_backward, [&](VendorCall& to) {
        to.write(grad_input).read(grad_output).read(target).read(weight).read(total_weight);
        to.integers({static_cast<int>(reduction), ignore_index});
      }))
    return;
  fill(stream, grad_input, Scalar::of(0.0));
  const Shape shape = shape_of(grad_input);
  const int64_t count = shape.n * shape.plane;
  if (count == 0) return;
  const NllKernel kernel{NllKernel::kBackward, weight != nullptr, reduction, grad_input.dtype,
                         target.dtype};
  const WorkSplit split = split_work(count, 8);
  Arguments arguments;
  arguments.read(grad_output).read(total_weight).update(grad_input).read(target);
  if (weight != nullptr) arguments.read(*weight);
  append_elements(arguments, stream, shape, target, ignore_index);
  arguments.index(split.lines).index(split.per_item);
  if (reduction == LossReduction::kNone) {
    append_strides(arguments, grad_output);
  } else {
    arguments.index(0).index(0);
  }
  launch_kernel(stream, kernel, split.grid, arguments);
}

}  // namespace graft

// src/kernels/norm/group_norm.cpp: normalisation of groups of channels, with its gradients.
#include "kernels/norm/group_norm.h"

#include <fmt/format.h>

#include <functional>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/move/staging.h"
#include "kernels/operation/offer.h"
#include "kernels/reduce/moments.h"
#include "kernels/reduce/programs.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

// One kind of kernel: its key and the parts that all share. Parameters: the kind's tensors, then
// lines, lines per item, channels, length, groups and channels of a group.
struct GroupKernel {
  const char* name;
  ir::Kernel (*make)(const GroupKernel&);
  graft_dtype data, statistics, parameters;
  bool weighted = false, biased = false;

  std::string key() const {
    return fmt::format("group_norm_{}{}{}_{}_{}_{}", name, weighted ? "_weighted" : "",
                       biased ? "_biased" : "", name_of(data), name_of(statistics),
                       name_of(parameters));
  }
  ir::Kernel build() const { return make(*this); }
};

class GroupWriter {
 public:
  explicit GroupWriter(const GroupKernel& kernel)
      : k(kernel), b(kernel.key()), type(ir::compute_type(wide_dtype(kernel.data))) {}

  Value zero() { return b.constant(type, 0); }
  Value wide(const Address& address, Value element) { return cast(type, address.load(element)); }
  void shape() {
    for (Value* value : {&lines, &per_item, &channels, &length, &groups, &width}) {
      *value = b.index();
    }
  }
  template <class Body>
  ir::Kernel each(Body body) {
    each_line(b, lines, per_item, body);
    return b.finish();
  }
  Value sum(Value begin, Value end, const std::function<Value(Value)>& term) {
    return ir::reduce(zero(), begin, end, term, std::plus<>());
  }
  // The group of a channel of all images, as an element of mean and rstd.
  Value group(Value line) { return line / channels * groups + line % channels / width; }

  const GroupKernel k;
  Builder b;
  const ir::Type type;
  Value lines, per_item, channels, length, groups, width;
};

// A line is a group: mean, rstd; input; epsilon.
ir::Kernel build_statistics(const GroupKernel& kernel) {
  GroupWriter w(kernel);
  const Address mean = w.b.write(kernel.statistics), rstd = w.b.write(kernel.statistics);
  const Address input = w.b.read(kernel.data);
  const Value epsilon = cast(w.type, w.b.scalar(GRAFT_FLOAT64));
  w.shape();
  LineMoments moments(w.b, WorkMapping::kSpans, w.type);
  return w.each([&](Value line) {
    const Value count = w.width * w.length, begin = line * count;
    const auto [center, squares] =
        moments.of(count, [&](Value i) { return w.wide(input, begin + i); });
    mean.store(line, center);
    rstd.store(line, ir::rsqrt(squares / cast(w.type, count) + epsilon));
  });
}

// A line is a channel of an image: output; input, mean, rstd, weight, bias.
ir::Kernel build_apply(const GroupKernel& kernel) {
  GroupWriter w(kernel);
  const Address output = w.b.write(kernel.data), input = w.b.read(kernel.data);
  const Address mean = w.b.read(kernel.statistics), rstd = w.b.read(kernel.statistics);
  const Address weight = kernel.weighted ? w.b.read(kernel.parameters) : mean;
  const Address bias = kernel.biased ? w.b.read(kernel.parameters) : mean;
  w.shape();
  return w.each([&](Value line) {
    const Value group = w.group(line), channel = line % w.channels;
    Value scale = w.wide(rstd, group);
    if (kernel.weighted) scale = scale * w.wide(weight, channel);
    const Value center = w.wide(mean, group);
    const Value shift = kernel.biased ? w.wide(bias, channel) : w.zero();
    const Value begin = line * w.length;
    w.b.vector_loop(begin, begin + w.length,
                    [&](Value i) { output.store(i, (w.wide(input, i) - center) * scale + shift); });
  });
}

// Elements whose sums are added to the rest at once.
constexpr int64_t kSumBlock = 16384;

// A line is a channel of an image: sums of g * (x - mean) and of g; g, x, mean.
ir::Kernel build_sums(const GroupKernel& kernel) {
  GroupWriter w(kernel);
  const graft_dtype sums = wide_dtype(kernel.data);
  const Address products = w.b.write(sums), plain = w.b.write(sums);
  const Address gradient = w.b.read(kernel.data), input = w.b.read(kernel.data);
  const Address mean = w.b.read(kernel.statistics);
  w.shape();
  return w.each([&](Value line) {
    const Value first = line * w.length, last = first + w.length;
    const Value center = w.wide(mean, w.group(line));
    const ir::Variable all_products(w.zero()), all(w.zero());
    const auto in_block = [&](Value begin) {
      const Values both = ir::fold(
          {w.zero(), w.zero()}, begin, ir::minimum(begin + kSumBlock, last),
          [&](const Values& sum, Value i) {
            const Value g = w.wide(gradient, i);
            return Values{sum[0] + g * (w.wide(input, i) - center), sum[1] + g};
          },
          [](const Values& x, const Values& y) {
            return Values{x[0] + y[0], x[1] + y[1]};
          });
      all_products = all_products + both[0];
      all = all + both[1];
    };
    w.b.loop(first, last, in_block, w.b.i64(kSumBlock));
    products.store(line, all_products);
    plain.store(line, all);
  });
}

// A line is a channel of an image: grad_input; g, x, mean, rstd, those sums, weight.
ir::Kernel build_input_gradient(const GroupKernel& kernel) {
  GroupWriter w(kernel);
  const graft_dtype sums = wide_dtype(kernel.data);
  const Address output = w.b.write(kernel.data), gradient = w.b.read(kernel.data);
  const Address input = w.b.read(kernel.data);
  const Address mean = w.b.read(kernel.statistics), rstd = w.b.read(kernel.statistics);
  const Address products = w.b.read(sums), plain = w.b.read(sums);
  const Address weight = kernel.weighted ? w.b.read(kernel.parameters) : mean;
  w.shape();
  return w.each([&](Value line) {
    const Value group = w.group(line), channel = line % w.channels;
    const Value first = channel / w.width * w.width, image = line - channel;
    const auto weighted = [&](const Address& from, Value c) {
      const Value x = from.load(image + c);
      return kernel.weighted ? x * w.wide(weight, c) : x;
    };
    const auto total = [&](const Address& from) {
      return w.sum(first, first + w.width, [&](Value c) { return weighted(from, c); });
    };
    const Value ds = total(products), db = total(plain);
    const Value center = w.wide(mean, group), spread = w.wide(rstd, group);
    const Value n = cast(w.type, w.width * w.length);
    const Value by_input = -ds * spread * spread * spread / n;
    const Value constant = -db * spread / n;
    const Value scale = kernel.weighted ? spread * w.wide(weight, channel) : spread;
    const Value begin = line * w.length;
    w.b.vector_loop(begin, begin + w.length, [&](Value i) {
      const Value apart = w.wide(input, i) - center;
      output.store(i, w.wide(gradient, i) * scale + apart * by_input + constant);
    });
  });
}

// A line is a channel: grad_weight, grad_bias; rstd, those sums; images.
ir::Kernel build_parameter_gradients(const GroupKernel& kernel) {
  GroupWriter w(kernel);
  const graft_dtype sums = wide_dtype(kernel.data);
  const Address to_weight = w.b.write(kernel.parameters), to_bias = w.b.write(kernel.parameters);
  const Address rstd = w.b.read(kernel.statistics);
  const Address products = w.b.read(sums), plain = w.b.read(sums);
  const Value images = w.b.index();
  w.shape();
  return w.each([&](Value channel) {
    const ir::Variable by_weight(w.zero()), by_bias(w.zero());
    w.b.loop(w.b.i64(0), images, [&](Value n) {
      const Value line = n * w.channels + channel, group = w.group(line);
      by_weight = by_weight.get() + products.load(line) * w.wide(rstd, group);
      by_bias = by_bias.get() + plain.load(line);
    });
    to_weight.store(channel, by_weight.get());
    to_bias.store(channel, by_bias.get());
  });
}

void launch(Stream& stream, const GroupKernel& kernel, Arguments& arguments,
            const GroupShape& shape, int64_t lines, int64_t work) {
  const WorkSplit split = split_work(lines, work);
  arguments.index(split.lines).index(split.per_item).index(shape.channels).index(shape.length);
  arguments.index(shape.groups).index(shape.channels / shape.groups);
  launch_kernel(stream, kernel, split.grid, arguments);
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  const graft_dtype f = GRAFT_FLOAT32;
  for (const GroupKernel& kernel : {GroupKernel{"statistics", build_statistics, f, f, f},
                                    {"apply", build_apply, f, f, f, true, true},
                                    {"sums", build_sums, f, f, f},
                                    {"input", build_input_gradient, f, f, f, true},
                                    {"parameters", build_parameter_gradients, f, f, f}}) {
    PackEntry::put(add, kernel);
  }
});

}  // namespace

void group_norm(Stream& stream, const TensorView& output, const TensorView& mean,
                const TensorView& rstd, const TensorView& input, const TensorView* weight,
                const TensorView* bias, const GroupShape& shape, double epsilon) {
  if (offer(stream, Operation::group_norm, writes(output, mean, rstd), reads(input, weight, bias),
            integers(shape.n, shape.channels, shape.length, shape.groups), numbers(epsilon)))
    return;
  const int64_t lines = shape.n * shape.channels, rows = shape.n * shape.groups;
  if (rows == 0) return;
  const graft_dtype parameters = weight != nullptr ? weight->dtype
                                 : bias != nullptr ? bias->dtype
                                                   : mean.dtype;
  // Not rounded to the half type in which they are saved.
  StagedOutput center(stream, mean, false, wide_dtype(mean.dtype));
  StagedOutput spread(stream, rstd, false, wide_dtype(rstd.dtype));
  const graft_dtype wide = center.view().dtype;
  Arguments first;
  first.write(center.view()).write(spread.view()).read(input);
  first.scalar(Scalar::of(epsilon), sizeof(double));
  launch(stream, {"statistics", build_statistics, input.dtype, wide, wide}, first, shape, rows,
         3 * shape.channels / shape.groups * shape.length);
  center.finish();
  spread.finish();
  if (lines * shape.length == 0) return;
  const GroupKernel kernel{"apply",    build_apply,       input.dtype,    wide,
                           parameters, weight != nullptr, bias != nullptr};
  Arguments second;
  second.write(output).read(input).read(center.view()).read(spread.view());
  if (weight != nullptr) second.read(*weight);
  if (bias != nullptr) second.read(*bias);
  launch(stream, kernel, second, shape, lines, shape.length);
}

void group_norm_backward(Stream& stream, const NormGradients& gradients,
                         const TensorView& grad_output, const TensorView& input,
                         const TensorView& mean, const TensorView& rstd, const TensorView* weight,
                         const GroupShape& shape) {
  if (offer(stream, Operation::group_norm_backward,
            writes(gradients.input, gradients.weight, gradients.bias),
            reads(grad_output, input, mean, rstd, weight),
            integers(shape.n, shape.channels, shape.length, shape.groups)))
    return;
  const int64_t lines = shape.n * shape.channels;
  if (shape.channels == 0) return;
  const graft_dtype wide = wide_dtype(input.dtype), data = input.dtype;
  const ScratchTensor products(stream, wide, {lines}), plain(stream, wide, {lines});
  if (lines > 0) {
    Arguments arguments;
    arguments.write(products.view()).write(plain.view());
    arguments.read(grad_output).read(input).read(mean);
    launch(stream, {"sums", build_sums, data, mean.dtype, mean.dtype}, arguments, shape, lines,
           2 * shape.length);
  }
  if (gradients.input != nullptr && lines * shape.length > 0) {
    const bool weighted = weight != nullptr;
    const graft_dtype parameters = weighted ? weight->dtype : mean.dtype;
    const GroupKernel kernel{"input", build_input_gradient, data, mean.dtype, parameters, weighted};
    Arguments arguments;
    arguments.write(*gradients.input).read(grad_output).read(input).read(mean).read(rstd);
    arguments.read(products.view()).read(plain.view());
    if (weighted) arguments.read(*weight);
    launch(stream, kernel, arguments, shape, lines, 2 * shape.length);
  }
  if (gradients.weight == nullptr && gradients.bias == nullptr) return;
  const TensorView& one = gradients.weight != nullptr ? *gradients.weight : *gradients.bias;
  const ScratchTensor unwanted(stream, one, one.dtype);
  Arguments arguments;
  arguments.write(gradients.weight != nullptr ? *gradients.weight : unwanted.view());
  arguments.write(gradients.bias != nullptr ? *gradients.bias : unwanted.view());
  arguments.read(rstd).read(products.view()).read(plain.view()).index(shape.n);
  launch(stream, {"parameters", build_parameter_gradients, data, mean.dtype, one.dtype}, arguments,
         shape, shape.channels, 8 * shape.n);
}

}  // namespace graft

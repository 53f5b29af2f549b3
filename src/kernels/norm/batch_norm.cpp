// src/kernels/norm/batch_norm.cpp: batch normalisation over channels and its gradients.
#include <optional>

#include "kernels/move/copy.h"
#include "kernels/move/staging.h"
#include "kernels/norm/batch_norm_programs.h"
#include "kernels/norm/normalization.h"
#include "kernels/operation/offer.h"
#include "kernels/pointwise/channel_affine.h"
#include "kernels/reduce/programs.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

bool dense_channels_last(const TensorView& view) {
  int64_t stride = view.sizes[1];
  for (int d = view.rank - 1; d >= 0; --d) {
    if (d == 1) continue;
    if (view.sizes[d] != 1 && view.strides[d] != stride) return false;
    stride *= view.sizes[d];
  }
  return view.strides[1] == 1 || view.sizes[1] == 1;
}

ImageLayout layout_of(const TensorView& input, const TensorView& other) {
  ImageLayout layout;
  const bool rows = input.contiguous() && other.contiguous();
  const bool fits = input.rank >= 2 && other.rank == input.rank &&
                    (rows || (dense_channels_last(input) && dense_channels_last(other)));
  if (!fits) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                "batch_norm: tensors must be [n, c, ...], dense and all row-major or all "
                "channels-last; make them contiguous first");
  }
  layout.n = input.sizes[0];
  layout.channels = input.sizes[1];
  layout.plane = 1;
  for (int d = 2; d < input.rank; ++d) layout.plane *= input.sizes[d];
  layout.channels_last = !rows;
  return layout;
}

// Channels are kept, everything else is reduced.
struct ChannelLoops {
  Axes kept, reduced;
  FoldForm form;
  FoldChunks chunks;
  PartialLoops partials;

  explicit ChannelLoops(const ImageLayout& layout) {
    const int64_t c = layout.channels, plane = layout.plane;
    Axis channels, images, pixels;
    channels.size = c;
    channels.strides[0] = layout.channels_last ? 1 : plane;
    for (int i = 1; i < kMaxOperands; ++i) channels.strides[i] = 1;
    images.size = layout.channels_last ? 1 : layout.n;
    images.strides[0] = c * plane;
    pixels.size = layout.channels_last ? layout.n * plane : plane;
    pixels.strides[0] = layout.channels_last ? c : 1;
    kept.push(Axis{});
    kept.push(channels);
    reduced.push(images);
    reduced.push(pixels);
    form = choose_form(kept, reduced);
    chunks = choose_chunks(form, kept, reduced);
    partials = partial_loops(form, kept, chunks);
  }
  int64_t partial_count() const { return kept.count() * chunks.count(); }
};

// Running statistics that move with a batch. What they were is kept.
class RunningStatistics {
 public:
  RunningStatistics(Stream& stream, const TensorView& mean, const TensorView& variance)
      : mean_(mean),
        variance_(variance),
        old_mean_(stream, mean, mean.dtype),
        old_variance_(stream, mean, mean.dtype) {}

  // In the order of batch_norm_statistics.
  void append(std::vector<TensorView>& outputs) const {
    outputs.insert(outputs.end(), {mean_, variance_, old_mean_.view(), old_variance_.view()});
  }
  void put_back(Stream& stream) const {
    copy(stream, mean_, old_mean_.view());
    copy(stream, variance_, old_variance_.view());
  }

 private:
  TensorView mean_, variance_;
  ScratchTensor old_mean_, old_variance_;
};

std::vector<TensorView> present(std::initializer_list<const TensorView*> views) {
  std::vector<TensorView> result;
  for (const TensorView* view : views) {
    if (view != nullptr) result.push_back(*view);
  }
  return result;
}

// Runs a program over the images' elements.
void run_partial(Stream& stream, const ChannelLoops& loops, const FoldProgram& program,
                 std::span<const TensorView> images, std::span<const TensorView> kept_inputs,
                 std::span<const TensorView> partials) {
  launch_fold(stream, program,
              {loops.form, loops.partials.written.at, loops.reduced.at, loops.chunks,
               loops.partials.chunk_stride, images, kept_inputs, partials});
}

// Runs a program without elements, or over partial results.
void run_final(Stream& stream, const ChannelLoops& loops, const FoldProgram& program,
               std::span<const TensorView> partials, std::span<const TensorView> kept_inputs,
               std::span<const TensorView> outputs, std::span<const double> scalars) {
  launch_fold(stream, program,
              {loops.form, loops.partials.kept.at, loops.partials.reduced.at, loops.partials.chunks,
               0, partials, kept_inputs, outputs, scalars});
}

// The partial sums of the gradient and of gradient * (input - mean).
void launch_gradient_sums(Stream& stream, const ChannelLoops& loops,
                          std::span<const TensorView> partials, const TensorView& gradient,
                          const TensorView& input, const TensorView& mean) {
  const TensorView images[2] = {gradient, input};
  run_partial(stream, loops,
              batch_norm_gradient_sums(gradient.dtype, input.dtype, mean.dtype, partials[0].dtype),
              images, {&mean, 1}, partials);
}

BatchNormOptions options_of(const TensorView* weight, const TensorView* bias, bool running,
                            graft_dtype image) {
  return {weight != nullptr, bias != nullptr, running, wide_dtype(image)};
}

graft_dtype dtype_or(const TensorView* view, const TensorView* other, graft_dtype otherwise) {
  return view != nullptr ? view->dtype : other != nullptr ? other->dtype : otherwise;
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  const graft_dtype f32 = GRAFT_FLOAT32;
  const BatchNormOptions train{true, true, true, f32}, given{true, true, false, f32};
  for (FoldForm form : {FoldForm::kLines, FoldForm::kColumns}) {
    for (graft_dtype image : {GRAFT_FLOAT32, GRAFT_BFLOAT16}) {
      pack_fold(add, variance_program(FoldStage::kPartial, f32, image, false, false), form, true);
      pack_fold(add, batch_norm_gradient_sums(image, image, f32, f32), form, true);
    }
    for (const BatchNormOptions& one : {train, given}) {
      pack_fold(add, batch_norm_statistics(one, f32, f32, f32), form, true);
    }
    pack_fold(add, batch_norm_given(given, f32, f32), form, true);
    pack_fold(add, batch_norm_gradients({true, false, false, f32}, true, f32, f32), form, true);
  }
  // Columns whose channels lie apart: small images, several channels to a line.
  pack_fold(add, variance_program(FoldStage::kPartial, f32, f32, false, false), FoldForm::kColumns,
            false);
  pack_fold(add, batch_norm_gradient_sums(f32, f32, f32, f32), FoldForm::kColumns, false);
});

}  // namespace

void batch_norm_train(Stream& stream, const TensorView& output, const TensorView& save_mean,
                      const TensorView& save_invstd, const TensorView* running_mean,
                      const TensorView* running_var, const TensorView& input,
                      const TensorView* weight, const TensorView* bias, double momentum,
                      double epsilon, const MovedStatistics& moved) {
  const bool moves = moved.mean != nullptr && moved.variance != nullptr;
  if (offer(stream, Operation::batch_norm_train,
            writes(output, save_mean, save_invstd, moves ? moved.mean : running_mean,
                   moves ? moved.variance : running_var),
            reads(input, weight, bias, running_mean, running_var), numbers(momentum, epsilon)))
    return;
  const ImageLayout layout = layout_of(input, output);
  if (input.count() == 0) return;
  const ChannelLoops loops(layout);
  std::optional<RunningStatistics> running;
  if (running_mean != nullptr && running_var != nullptr) {
    running.emplace(stream, moved.mean != nullptr ? *moved.mean : *running_mean,
                    moved.variance != nullptr ? *moved.variance : *running_var);
  }
  const BatchNormOptions options = options_of(weight, bias, running.has_value(), input.dtype);
  const graft_dtype wide = options.wide;
  std::optional<ScratchTensor> memory[kMomentParts];
  TensorView partials[kMomentParts];
  for (size_t i = 0; i < kMomentParts; ++i) {
    partials[i] = memory[i]
                      .emplace(stream, wide, std::initializer_list<int64_t>{loops.partial_count()})
                      .view();
  }
  run_partial(stream, loops, variance_program(FoldStage::kPartial, wide, input.dtype, false, false),
              {&input, 1}, {}, partials);

  const auto vector = [&] { return ScratchTensor(stream, wide, {layout.channels}); };
  const ScratchTensor scale = vector(), shift = vector(), center = vector();
  const auto kept =
      present({running ? running_mean : nullptr, running ? running_var : nullptr, weight, bias});
  auto outputs = present({&scale.view(), &shift.view(), &center.view(), &save_mean, &save_invstd});
  if (running) running->append(outputs);
  const double scalars[2] = {epsilon, momentum};
  const FoldProgram statistics = batch_norm_statistics(
      options, save_mean.dtype, running ? running_mean->dtype : wide, dtype_or(weight, bias, wide));
  run_final(stream, loops, statistics, partials, kept, outputs, scalars);
  try {
    channel_affine(stream, layout, output, input, scale.view(), nullptr, nullptr, shift.view(),
                   &center.view());
  } catch (const Error&) {  // whoever computes it elsewhere moves the statistics itself
    if (running) running->put_back(stream);
    throw;
  }
}

void batch_norm_inference(Stream& stream, const TensorView& output, const TensorView& input,
                          const TensorView* weight, const TensorView* bias,
                          const TensorView& running_mean, const TensorView& running_var,
                          double epsilon) {
  if (offer(stream, Operation::batch_norm_inference, writes(output),
            reads(input, weight, bias, running_mean, running_var), numbers(epsilon)))
    return;
  const ImageLayout layout = layout_of(input, output);
  if (input.count() == 0) return;
  ChannelLoops loops(layout);
  loops.partials.chunks = FoldChunks{};
  const BatchNormOptions options = options_of(weight, bias, false, input.dtype);
  const auto vector = [&] { return ScratchTensor(stream, options.wide, {layout.channels}); };
  const ScratchTensor scale = vector(), shift = vector();
  const auto kept = present({&running_mean, &running_var, weight, bias});
  const TensorView outputs[2] = {scale.view(), shift.view()};
  run_final(stream, loops,
            batch_norm_given(options, running_mean.dtype, dtype_or(weight, bias, options.wide)), {},
            kept, outputs, {&epsilon, 1});
  channel_affine(stream, layout, output, input, scale.view(), nullptr, nullptr, shift.view(),
                 nullptr);
}

void batch_norm_backward(Stream& stream, const NormGradients& gradients,
                         const TensorView& grad_output, const TensorView& input,
                         const TensorView* weight, const TensorView& mean, const TensorView& spread,
                         bool train, double epsilon) {
  if (offer(stream, Operation::batch_norm_backward,
            writes(gradients.input, gradients.weight, gradients.bias),
            reads(grad_output, input, weight, mean, spread), integers(train), numbers(epsilon)))
    return;
  const ImageLayout layout = layout_of(input, grad_output);
  if (input.count() == 0) return;
  const ChannelLoops loops(layout);
  const BatchNormOptions options = options_of(weight, nullptr, false, input.dtype);
  const graft_dtype wide = options.wide;
  const ScratchTensor sum(stream, wide, {loops.partial_count()}),
      along(stream, wide, {loops.partial_count()});
  const TensorView partials[2] = {sum.view(), along.view()};
  launch_gradient_sums(stream, loops, partials, grad_output, input, mean);

  const int64_t c = layout.channels;
  const auto unless = [&](const TensorView* wanted) {
    return ScratchTensor(stream, wide, {wanted != nullptr ? 0 : c});
  };
  const ScratchTensor no_weight = unless(gradients.weight), no_bias = unless(gradients.bias);
  StagedOutput to_weight(stream, gradients.weight != nullptr ? *gradients.weight : no_weight.view(),
                         false, wide);
  StagedOutput to_bias(stream, gradients.bias != nullptr ? *gradients.bias : no_bias.view(), false,
                       wide);
  const auto vector = [&] { return ScratchTensor(stream, wide, {c}); };
  const ScratchTensor factor = vector(), slope = vector(), constant = vector(), center = vector();
  const TensorView outputs[6] = {to_weight.view(), to_bias.view(),  factor.view(),
                                 slope.view(),     constant.view(), center.view()};
  const auto kept = present({&mean, &spread, weight});
  const double scalars[2] = {epsilon, static_cast<double>(layout.n * layout.plane)};
  run_final(stream, loops,
            batch_norm_gradients(options, train, mean.dtype, dtype_or(weight, nullptr, wide)),
            partials, kept, outputs, scalars);
  to_weight.finish();
  to_bias.finish();
  if (gradients.input == nullptr) return;
  layout_of(input, *gradients.input);
  channel_affine(stream, layout, *gradients.input, grad_output, factor.view(),
                 train ? &input : nullptr, train ? &slope.view() : nullptr, constant.view(),
                 train ? &center.view() : nullptr);
}

void batch_norm_sums(Stream& stream, const TensorView& sum, const TensorView& along,
                     const TensorView& grad_output, const TensorView& input,
                     const TensorView& mean) {
  if (offer(stream, Operation::batch_norm_sums, writes(sum, along),
            reads(grad_output, input, mean)))
    return;
  const ImageLayout layout = layout_of(input, grad_output);
  if (input.count() == 0) return;
  const ChannelLoops loops(layout);
  const graft_dtype wide = wide_dtype(input.dtype);
  const ScratchTensor sums(stream, wide, {loops.partial_count()});
  const ScratchTensor products(stream, wide, {loops.partial_count()});
  const TensorView partials[2] = {sums.view(), products.view()}, outputs[2] = {sum, along};
  launch_gradient_sums(stream, loops, partials, grad_output, input, mean);
  run_final(stream, loops, batch_norm_whole_sums(wide), partials, {}, outputs, {});
}

void batch_norm_affine(Stream& stream, const TensorView& output, const TensorView& x,
                       const TensorView& scale, const TensorView* y, const TensorView* slope,
                       const TensorView& shift, const TensorView* center) {
  if (offer(stream, Operation::batch_norm_affine, writes(output),
            reads(x, scale, y, slope, shift, center)))
    return;
  const ImageLayout layout = layout_of(x, output);
  if (y != nullptr) layout_of(x, *y);
  if (x.count() == 0) return;
  channel_affine(stream, layout, output, x, scale, y, slope, shift, center);
}

}  // namespace graft

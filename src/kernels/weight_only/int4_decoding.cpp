// src/kernels/weight_only/int4_decoding.cpp: a few rows times a weight of 4 bits.
#include "kernels/weight_only/int4_decoding.h"

#include <optional>
#include <string>

#include "codegen/ir/local_array.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/lanes.h"
#include "kernels/launch/work_split.h"
#include "kernels/move/staging.h"
#include "kernels/weight_only/decoding_factor.h"
#include "kernels/weight_only/int4_panels.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

// A group of kLanes work-items sums a panel: the words of its rows lie side by side, and kLanes /
// kWords of them take turns along the depth.
ir::Kernel write_group_kernel(const Int4Decoding& kernel) {
  Builder b(kernel.key(WorkMapping::kLanes), ir::Family::kGpuLike);
  const Address to = b.write(kernel.output), words = b.read(GRAFT_INT32);
  const Address factor = b.read(kernel.factor);
  const Int4ScaleReader scales(b, kernel);
  Value words_of_row, words_of_group, row_stride, depth_stride, to_row, to_column;
  for (Value* value :
       {&words_of_row, &words_of_group, &row_stride, &depth_stride, &to_row, &to_column}) {
    *value = b.index();
  }
  std::vector<LocalArray> parts;
  for (int64_t r = 0; r < kernel.rows; ++r) parts.emplace_back(b, Type::kF32, kLanes);
  const Value lane = cast(Type::kI64, b.local_item()), panel = b.item() / kLanes;
  const Value row = panel * kWords + lane % kWords;
  std::vector<Variable> sums;
  for (int64_t r = 0; r < kernel.rows; ++r) sums.emplace_back(b.f32(0));
  const auto step = [&](Value word) {
    const Value at = (panel * words_of_row + word) * kWords + lane % kWords;
    const Value bits = cast(Type::kU32, words.load(at));
    const auto [scale, shift] = scales.load(word / words_of_group, row);
    for (uint32_t j = 0; j < kNibblesOfWord; ++j) {
      const Value integer = cast(Type::kI32, (bits >> 4 * j) & 15);
      const Value number = cast(Type::kF32, integer) * scale + shift;
      const Value from = (word * kNibblesOfWord + int64_t{j}) * depth_stride;
      for (int64_t r = 0; r < kernel.rows; ++r) {
        const Variable& sum = sums[static_cast<size_t>(r)];
        sum = sum.get() + cast(Type::kF32, factor.load(row_stride * r + from)) * number;
      }
    }
  };
  b.loop(lane / kWords, words_of_row, step, b.i64(kLanes / kWords));
  for (size_t r = 0; r < parts.size(); ++r) parts[r].store(lane, sums[r].get());
  for (int64_t half = kLanes / 2; half >= kWords; half /= 2) {
    b.barrier();
    b.if_(lane < half, [&] {
      for (const LocalArray& part : parts)
        part.store(lane, part.load(lane) + part.load(lane + half));
    });
  }
  b.if_(lane < kWords, [&] {
    for (int64_t r = 0; r < kernel.rows; ++r) {
      to.store(to_row * r + row * to_column, parts[static_cast<size_t>(r)].load(lane));
    }
  });
  return b.finish();
}

// The scales and zeros as kernels take them, and how they lie.
class LaidOutScales {
 public:
  LaidOutScales(Stream& stream, const WeightScales& given) : scales_(given.scales) {
    if (given.zeros != nullptr) zeros_ = *given.zeros;
    layout_ = layout_of(zeros_ ? &*zeros_ : nullptr);
    if (layout_) return;
    staged_scales_.emplace(stream, scales_, true, GRAFT_FLOAT32);
    scales_ = staged_scales_->view();
    if (zeros_) {
      staged_zeros_.emplace(stream, *zeros_, true, GRAFT_FLOAT32);
      zeros_ = staged_zeros_->view();
    }
    layout_ = zeros_ ? ScaleLayout::kDense : ScaleLayout::kSymmetric;
  }

  ScaleLayout layout() const { return *layout_; }
  graft_dtype dtype() const { return scales_.dtype; }

  void append(Arguments& arguments) const {
    if (*layout_ == ScaleLayout::kBfloat16Pairs) {
      arguments.address(scales_.address, extent_bytes(scales_) + 2, GRAFT_ACCESS_READ);
      arguments.index(scales_.strides[0] / 2);
      return;
    }
    arguments.read(scales_);
    if (zeros_) arguments.read(*zeros_);
    arguments.index(scales_.strides[0]);
    if (zeros_) arguments.index(zeros_->strides[0]);
  }

 private:
  std::optional<ScaleLayout> layout_of(const TensorView* zeros) const {
    const int64_t stride = scales_.sizes[1] == 1 ? 1 : scales_.strides[1];
    if (zeros == nullptr) {
      if (stride == 1) return ScaleLayout::kSymmetric;
      return std::nullopt;
    }
    if (zeros->dtype != scales_.dtype || zeros->strides[1] != scales_.strides[1]) return {};
    if (stride == 1) return ScaleLayout::kDense;
    if (stride != 2) return std::nullopt;
    const bool words = scales_.dtype == GRAFT_BFLOAT16 && scales_.address % 4 == 0 &&
                       zeros->address == scales_.address + 2 && scales_.strides[0] % 2 == 0 &&
                       scales_.strides[0] == zeros->strides[0];
    return words ? ScaleLayout::kBfloat16Pairs : ScaleLayout::kPairs;
  }

  TensorView scales_;
  std::optional<TensorView> zeros_;
  std::optional<ScaleLayout> layout_;
  std::optional<StagedInput> staged_scales_, staged_zeros_;
};

}  // namespace

void int4_decoding(Stream& stream, const TensorView& output, const TensorView& a,
                   const TensorView& packed, const WeightScales& scales) {
  const int64_t n = output.sizes[1], k = a.sizes[1], groups = scales.groups();
  const LaidOutScales laid_out(stream, scales);
  Int4Decoding kernel{output.dtype, laid_out.dtype(), a.dtype, laid_out.layout(), output.sizes[0]};
  const int64_t words_of_group = scales.group / kNibblesOfWord;
  Arguments arguments;
  arguments.write(output).read(packed);
  if (deal_of_lines(stream.device()) != WorkMapping::kSpans) {
    arguments.read(a);
    laid_out.append(arguments);
    arguments.index(k / kNibblesOfWord).index(words_of_group);
    arguments.index(a.strides[0]).index(a.strides[1]);
    arguments.index(output.strides[0]).index(output.strides[1]);
    return launch_kernel(
        stream, kernel.key(WorkMapping::kLanes), n / kWords, arguments,
        [&] { return write_group_kernel(kernel); }, kLanes);
  }
  const DecodingFactor factor(stream, a, WordKind::kNibbles, scales);
  kernel.factor = factor.dtype();
  factor.append(arguments);
  laid_out.append(arguments);
  const int64_t panels = n / kWords, each = kernel.panels();
  const WorkSplit split = split_work((panels + each - 1) / each, each * kWords * k);
  arguments.index(split.lines).index(split.per_item).index(panels).index(k).index(groups);
  arguments.index(words_of_group).index(output.strides[0]).index(output.strides[1]);
  launch_kernel(stream, kernel.key(WorkMapping::kSpans), split.grid, arguments,
                [&] { return write_int4_panels(kernel); });
}

}  // namespace graft

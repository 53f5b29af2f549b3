// src/kernels/patch_panels.cpp: the patches of a convolution, packed for register-blocked products.
#include "kernels/patch_panels.h"

#include <algorithm>

#include "codegen/program_cache.h"
#include "kernels/arguments.h"
#include "kernels/blocked_matmul.h"
#include "kernels/staging.h"
#include "kernels/work_split.h"
#include "runtime/device.h"
#include "runtime/dtype.h"

namespace graft {
namespace {

using ir::Address;
using ir::Builder;
using ir::Lanes;
using ir::Type;
using ir::Value;

constexpr int64_t kDepths = 64;                     // rows of a panel that one item gathers
constexpr int64_t kPatchBytes = int64_t{64} << 20;  // of one launch, where one image needs less

std::string key_of(graft_dtype dtype, int64_t width) {
  return "pack_patches_" + std::to_string(width) + "_" + name_of(dtype);
}

// Row (channel, z, y, x) of the patches of an image, for the output positions of a panel.
class PatchWriter {
 public:
  PatchWriter(graft_dtype dtype, int64_t width)
      : b_(key_of(dtype, width)),
        width_(width),
        to_(b_.write(GRAFT_FLOAT32)),
        from_(b_.read(dtype)) {
    for (Value* value : {&lines_, &per_item_, &depth_, &image_, &channel_}) *value = b_.index();
    for (Value* triple : {input_, kernel_, output_, step_, padding_, dilation_, stride_}) {
      for (int d = 0; d < 3; ++d) triple[d] = b_.index();
    }
  }

  ir::Kernel write() {
    each_line(b_, lines_, per_item_, [&](Value line) { gather(line); });
    return b_.finish();
  }

 private:
  void gather(Value line) {
    const Value positions = output_[0] * output_[1] * output_[2];
    const Value panels = (positions + (width_ - 1)) / width_;
    const Value chunks = (depth_ + (kDepths - 1)) / kDepths;
    const Value first = line % chunks * kDepths, rest = line / chunks;
    const Value panel = rest % panels, image = rest / panels * image_;
    const auto width = static_cast<uint32_t>(width_);
    const Lanes corner[3] = {
        {b_, Type::kI64, width}, {b_, Type::kI64, width}, {b_, Type::kI64, width}};
    b_.loop(b_.i64(0), b_.i64(width_), [&](Value i) {
      Value left = panel * width_ + i;
      const Value beyond = left >= positions;
      for (int d = 2; d >= 0; --d) {
        const Value at = left % output_[d] * step_[d] - padding_[d];
        // What lies beyond the last position is outside of the input at every row.
        corner[d].store(i, select(beyond, INT32_MIN, at));
        left = left / output_[d];
      }
    });
    b_.loop(first, ir::minimum(depth_, first + kDepths), [&](Value row) {
      Value left = row, tap[3];
      for (int d = 2; d >= 0; --d) {
        tap[d] = left % kernel_[d] * dilation_[d];
        left = left / kernel_[d];
      }
      const Value base = image + left * channel_, target = (rest * depth_ + row) * width_;
      b_.vector_loop(b_.i64(0), b_.i64(width_), [&](Value i) {
        Value inside = b_.boolean(true), offset = base;
        for (int d = 0; d < 3; ++d) {
          const Value at = corner[d].load(i) + tap[d];
          inside = inside & (at >= 0) & (at < input_[d]);
          offset = offset + at * stride_[d];
        }
        const Value value = from_.load(select(inside, offset, base));
        to_.store(target + i, select(inside, value, 0));
      });
    });
  }

  Builder b_;
  const int64_t width_;
  Address to_, from_;
  Value lines_, per_item_, depth_, image_, channel_;
  Value input_[3], kernel_[3], output_[3], step_[3], padding_[3], dilation_[3], stride_[3];
};

// The last dimensions as three, with leading ones.
void append(Arguments& arguments, const int64_t* values, int rank, int64_t leading) {
  for (int d = rank; d < 3; ++d) arguments.index(leading);
  for (int d = 0; d < rank; ++d) arguments.index(values[d]);
}

int64_t product(const int64_t* sizes, int rank) {
  int64_t count = 1;
  for (int d = 0; d < rank; ++d) count *= sizes[d];
  return count;
}

TensorView matrices(const TensorView& view, int64_t batch, int64_t rows, int64_t columns) {
  TensorView result = view;
  result.rank = 3;
  const int64_t sizes[3] = {batch, rows, columns};
  std::copy(sizes, sizes + 3, result.sizes);
  return result;
}

void pack(Stream& stream, const Workspace& panels, uint64_t bytes, const TensorView& input,
          const ConvolutionViews& views, const ConvolutionParameters& parameters, int64_t depth) {
  const int rank = input.rank - 2;
  const int64_t width = panel_columns(stream.device());
  const int64_t positions = product(views.output.sizes + 2, rank);
  const int64_t lines =
      input.sizes[0] * ((positions + width - 1) / width) * ((depth + kDepths - 1) / kDepths);
  const WorkSplit split = split_work(lines, width * kDepths);
  Arguments arguments;
  arguments.address(panels.address(), bytes, GRAFT_ACCESS_WRITE).read(input);
  arguments.index(split.lines).index(split.per_item).index(depth);
  arguments.index(input.strides[0]).index(input.strides[1]);
  append(arguments, input.sizes + 2, rank, 1);
  append(arguments, views.weight.sizes + 2, rank, 1);
  append(arguments, views.output.sizes + 2, rank, 1);
  append(arguments, parameters.stride, rank, 1);
  append(arguments, parameters.padding, rank, 0);
  append(arguments, parameters.dilation, rank, 1);
  append(arguments, input.strides + 2, rank, 0);
  const auto make = [&] { return PatchWriter(input.dtype, width).write(); };
  stream.launch(get_kernel(stream.device(), key_of(input.dtype, width), make),
                static_cast<uint64_t>(split.grid), arguments.span());
}

bool is_contiguous_from(const TensorView& view, int first) {
  int64_t stride = 1;
  for (int d = view.rank - 1; d >= first; --d) {
    if (view.sizes[d] > 1 && view.strides[d] != stride) return false;
    stride *= view.sizes[d];
  }
  return true;
}

}  // namespace

bool blocked_convolution(Stream& stream, const ConvolutionViews& views, const TensorView* bias,
                         const ConvolutionParameters& parameters) {
  const int rank = views.input.rank - 2;
  const int64_t images = views.output.sizes[0], outs = views.output.sizes[1];
  const int64_t depth = product(views.weight.sizes + 1, rank + 1);
  const int64_t positions = product(views.output.sizes + 2, rank);
  if (parameters.groups != 1 || (bias != nullptr && bias->dtype != views.output.dtype))
    return false;
  if (!fits_blocks(stream.device(), matrices(views.output, 1, outs, positions),
                   matrices(views.weight, 1, outs, depth),
                   matrices(views.input, 1, depth, positions))) {
    return false;
  }
  StagedInput weight(stream, views.weight, !is_contiguous_from(views.weight, 0));
  StagedOutput output(stream, views.output, !is_contiguous_from(views.output, 2));
  const int64_t width = panel_columns(stream.device());
  const int64_t stride = (positions + width - 1) / width * width * depth;
  const int64_t each = stride * static_cast<int64_t>(sizeof(float));
  const int64_t together = std::clamp<int64_t>(kPatchBytes / each, 1, images);
  const Workspace panels(stream, static_cast<uint64_t>(each * together));
  TensorView factor = matrices(weight.view(), together, outs, depth);
  factor.strides[0] = 0, factor.strides[1] = depth, factor.strides[2] = 1;
  for (int64_t first = 0; first < images; first += together) {
    const int64_t count = std::min(together, images - first);
    const auto bytes = static_cast<uint64_t>(each * count);
    TensorView input = views.input;
    input.sizes[0] = factor.sizes[0] = count;
    input.address += static_cast<uint64_t>(first * input.strides[0]) * size_of(input.dtype);
    pack(stream, panels, bytes, input, views, parameters, depth);
    TensorView result = matrices(output.view(), count, outs, positions);
    result.address += static_cast<uint64_t>(first * result.strides[0]) * size_of(result.dtype);
    result.strides[2] = 1;
    MatmulEpilogue epilogue;
    TensorView added = result;
    if (bias != nullptr) {
      added.address = bias->address;
      added.strides[0] = added.strides[2] = 0, added.strides[1] = bias->strides[0];
      epilogue.addend = &added;
      epilogue.beta = 1.0;
    }
    blocked_matmul(stream, result, factor, {panels.address(), bytes, stride, depth}, epilogue);
  }
  output.finish();
  return true;
}

}  // namespace graft

// src/kernels/fft/fft.cpp: discrete Fourier transforms, dimension by dimension.
#include "kernels/fft/fft.h"

#include <algorithm>
#include <optional>
#include <string>

#include "kernels/fft/lines.h"
#include "kernels/launch/workspace.h"
#include "kernels/move/copy.h"
#include "kernels/move/fill.h"
#include "kernels/move/staging.h"
#include "kernels/operation/offer.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/tensor/axes.h"
#include "kernels/tensor/image_views.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

// In units of parts, along dim.
FftSide side_of(const TensorView& view, int dim) {
  const int64_t unit = is_complex(view.dtype) ? 2 : 1;
  FftSide side{.address = view.address, .bytes = extent_bytes(view)};
  side.step = view.strides[dim] * unit;
  side.part = unit - 1;
  side.count = view.sizes[dim];
  return side;
}

TensorView without(const TensorView& view, int dim) {
  TensorView rest = view;
  std::copy(view.sizes + dim + 1, view.sizes + view.rank, rest.sizes + dim);
  std::copy(view.strides + dim + 1, view.strides + view.rank, rest.strides + dim);
  --rest.rank;
  return rest;
}

Axes line_axes(const TensorView& output, const TensorView& input, int dim) {
  const TensorView to = without(output, dim), from = without(input, dim);
  const TensorView* views[] = {&to, &from};
  return Axes::joined(views);
}

// The lines along dim of views that agree in the other dimensions. REQUIRES: at most 3 axes.
FftLaunch lines_of(const TensorView& output, const TensorView& input, int dim) {
  const Axes axes = line_axes(output, input, dim);
  FftLaunch lines;
  lines.out = side_of(output, dim);
  lines.in = side_of(input, dim);
  for (int i = 0; i < axes.rank; ++i) {
    const int at = 3 - axes.rank + i;
    lines.sizes[at] = axes.at[i].size;
    lines.out.strides[at] = axes.at[i].strides[0] * (is_complex(output.dtype) ? 2 : 1);
    lines.in.strides[at] = axes.at[i].strides[1] * (is_complex(input.dtype) ? 2 : 1);
  }
  return lines;
}

// Views that lie as lines of few axes, else contiguous stand-ins of them. apart: the input's
// numbers along dim must have addresses of their own.
class Sides {
 public:
  Sides(Stream& stream, const TensorView& output, const TensorView& input, int dim,
        bool apart = false)
      : input_(
            stream, input,
            line_axes(output, input, dim).rank > kMostAxes || (apart && input.strides[dim] == 0)),
        output_(stream, output, line_axes(output, input_.view(), dim).rank > kMostAxes),
        dim_(dim) {}

  FftLaunch lines() const { return lines_of(output_.view(), input_.view(), dim_); }
  void finish() { output_.finish(); }

 private:
  static constexpr int kMostAxes = 2;

  StagedInput input_;
  StagedOutput output_;
  const int dim_;
};

TensorView with_length(const TensorView& view, int dim, int64_t length) {
  TensorView longer = view;
  longer.sizes[dim] = length;
  return longer;
}

class Fft {
 public:
  Fft(Stream& stream, graft_dtype part) : stream_(stream), part_(part), lines_(stream, part) {}

  void complex(const TensorView& output, const TensorView& input, int dim, bool backward,
               double scale) {
    Sides sides(stream_, output, input, dim);
    FftLaunch lines = sides.lines();
    lines.length = input.sizes[dim];
    lines.in.plane = lines.out.plane = backward ? 1 : 0;
    lines.scale = scale;
    lines_.run(lines);
    sides.finish();
  }

  void from_real(const TensorView& output, const TensorView& input, int dim, double scale) {
    const int64_t length = input.sizes[dim], half = length / 2;
    const bool paired = length % 2 == 0 && lines_.direct(half);
    if (!paired && !lines_.direct(length)) {
      const TensorView all = with_length(output, dim, length);
      const ScratchTensor spectrum(stream_, all, all.dtype);
      complex(spectrum.view(), input, dim, false, scale);
      return copy(stream_, output, part(spectrum.view(), dim, 0, half + 1));
    }
    // A side whose parts lie 0 apart is one of real numbers.
    Sides sides(stream_, output, input, dim, paired);
    FftLaunch lines = sides.lines();
    lines.length = paired ? half : length;
    lines.scale = scale;
    if (paired) pair(lines, lines.in, FftMiddle::kUnpack);
    lines_.run(lines);
    sides.finish();
  }

  void to_real(const TensorView& output, const TensorView& input, int dim, double scale) {
    const int64_t length = output.sizes[dim], half = length / 2;
    const bool paired = length % 2 == 0 && lines_.direct(half);
    if (!paired && !lines_.direct(length)) return long_to_real(output, input, dim, scale);
    Sides sides(stream_, output, input, dim);
    FftLaunch lines = sides.lines();
    lines.length = paired ? half : length;
    lines.scale = paired ? scale : 2 * scale;
    if (paired) {
      pair(lines, lines.out, FftMiddle::kPack);
    } else {
      lines.in.plane = lines.out.plane = 1;
      lines.middle = FftMiddle::kHalveMean;
    }
    lines_.run(lines);
    sides.finish();
  }

 private:
  // Numbers 2m and 2m + 1 of a real side as the parts of one.
  static void pair(FftLaunch& lines, FftSide& side, FftMiddle middle) {
    side.part = side.step;
    side.step *= 2;
    side.count = lines.length;
    lines.root_step = 2;
    lines.middle = middle;
  }

  // The real part of the sum over half of the spectrum, twice; what has no twin counts half.
  void long_to_real(const TensorView& output, const TensorView& input, int dim, double scale) {
    const int64_t length = output.sizes[dim], half = length / 2;
    const TensorView all = with_length(input, dim, length);
    const ScratchTensor memory(stream_, all, all.dtype);
    const TensorView& spectrum = memory.view();
    fill(stream_, spectrum, Scalar::of(part_, 0));
    copy(stream_, part(spectrum, dim, 0, half + 1), input);
    for (const int64_t single : {int64_t{0}, half}) {
      if (single > 0 && length % 2 == 1) continue;
      const TensorView alone = part(spectrum, dim, single, 1);
      static const Op& product = *find_op("mul");
      const Operand operands[] = {alone, Scalar::of(part_, 0.5)};
      pointwise(stream_, product, all.dtype, {&alone, 1}, operands);
    }
    complex(output, spectrum, dim, true, 2 * scale);
  }

  Stream& stream_;
  const graft_dtype part_;
  FftLines lines_;
};

void check(const TensorView& complex, const TensorView& other, std::span<const int> dims) {
  const graft_dtype part = part_of(complex.dtype);
  if (part != GRAFT_FLOAT32 && part != GRAFT_FLOAT64) {
    throw Error(GRAFT_UNSUPPORTED, std::string("fft: no kernel for ") + name_of(part) +
                                       "; convert to float32 or float64");
  }
  bool fits = is_complex(complex.dtype) && part_of(other.dtype) == part &&
              complex.rank == other.rank && !dims.empty();
  for (const int dim : dims) fits = fits && dim >= 0 && dim < complex.rank && other.sizes[dim] > 0;
  for (int d = 0; fits && d < complex.rank; ++d) {
    const bool same = complex.sizes[d] == other.sizes[d];
    const bool half = d == dims.back() && complex.sizes[d] == other.sizes[d] / 2 + 1;
    fits = same || half;
  }
  if (!fits)
    throw Error(GRAFT_INVALID_ARGUMENT,
                "fft: sizes, dtypes or dims of input and output do not fit each other");
}

}  // namespace

void fft(Stream& stream, const TensorView& output, const TensorView& input,
         std::span<const int> dims, bool backward, double scale) {
  check(output, input, dims);
  if (output.count() == 0) return;
  const auto call = [&](VendorCall& to) {
    to.write(output).read(input).integers({backward}).integers(dims).numbers({scale});
  };
  if (offer(stream, Operation::fft, call)) return;
  Fft transform(stream, part_of(output.dtype));
  for (size_t i = dims.size(); i-- > 0;) {
    const bool first = i + 1 == dims.size();
    transform.complex(output, first ? input : output, dims[i], backward, first ? scale : 1);
  }
}

void fft_from_real(Stream& stream, const TensorView& output, const TensorView& input,
                   std::span<const int> dims, double scale) {
  check(output, input, dims);
  if (output.count() == 0) return;
  const auto call = [&](VendorCall& to) {
    to.write(output).read(input).integers(dims).numbers({scale});
  };
  if (offer(stream, Operation::fft_from_real, call)) return;
  Fft transform(stream, part_of(output.dtype));
  transform.from_real(output, input, dims.back(), scale);
  for (size_t i = dims.size() - 1; i-- > 0;) transform.complex(output, output, dims[i], false, 1);
}

void fft_to_real(Stream& stream, const TensorView& output, const TensorView& input,
                 std::span<const int> dims, double scale) {
  check(input, output, dims);
  if (output.count() == 0) return;
  const auto call = [&](VendorCall& to) {
    to.write(output).read(input).integers(dims).numbers({scale});
  };
  if (offer(stream, Operation::fft_to_real, call)) return;
  Fft transform(stream, part_of(output.dtype));
  if (dims.size() == 1) return transform.to_real(output, input, dims.back(), scale);
  const ScratchTensor between(stream, input, input.dtype);
  fft(stream, between.view(), input, dims.first(dims.size() - 1), true, 1);
  transform.to_real(output, between.view(), dims.back(), scale);
}

}  // namespace graft

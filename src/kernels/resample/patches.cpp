// src/kernels/resample/patches.cpp: lines and images cut into overlapping pieces.
#include "kernels/resample/patches.h"

#include <array>

#include "kernels/move/copy.h"
#include "kernels/move/staging.h"
#include "kernels/operation/offer.h"
#include "kernels/resample/resample.h"
#include "kernels/tensor/axes.h"

namespace graft {
namespace {

using Pair = std::array<LinearMap, 2>;

Pair maps_of(const TensorView& image, const TensorView& columns, const PatchWindow& window) {
  if (image.rank != 4 || columns.rank != 6) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                "patches: expected an image of rank 4 and columns of rank 6");
  }
  Pair maps;
  for (int d = 0; d < 2; ++d) {
    maps[static_cast<size_t>(d)] =
        patch_taps({image.sizes[2 + d], columns.sizes[4 + d], columns.sizes[2 + d],
                    window.dilation[d], window.padding[d], window.stride[d]});
  }
  return maps;
}

// The pieces side by side, row by row: [n, c, kernel0 * count0, kernel1 * count1].
ScratchTensor cut_for(Stream& stream, const TensorView& columns) {
  const int64_t* const sizes = columns.sizes;
  return {stream, columns.dtype, {sizes[0], sizes[1], sizes[2] * sizes[4], sizes[3] * sizes[5]}};
}

// The same memory in the order of columns.
TensorView in_order(const ScratchTensor& cut, const TensorView& columns) {
  TensorView view = columns;
  std::swap(view.sizes[3], view.sizes[4]);
  view = contiguous_like(view, cut.view().address, columns.dtype);
  std::swap(view.sizes[3], view.sizes[4]);
  std::swap(view.strides[3], view.strides[4]);
  return view;
}

auto described(const PatchWindow& window) {
  return integers(window.stride, window.padding, window.dilation);
}

}  // namespace

LinearMap patch_taps(const PatchLine& line) {
  LinearMap taps{line.kernel * line.count, line.from, {}};
  for (int64_t k = 0; k < line.kernel; ++k) {
    for (int64_t i = 0; i < line.count; ++i) {
      const int64_t at = i * line.stride - line.padding + k * line.dilation;
      if (at >= 0 && at < line.from) taps.add(k * line.count + i, at);
    }
  }
  return taps;
}

void unfold(Stream& stream, const TensorView& columns, const TensorView& image,
            const PatchWindow& window) {
  if (columns.count() == 0) return;
  if (offer(stream, Operation::unfold, writes(columns), reads(image), described(window))) return;
  const ScratchTensor cut = cut_for(stream, columns);
  resample(stream, cut.view(), image, maps_of(image, columns, window));
  copy(stream, columns, in_order(cut, columns));
}

void fold(Stream& stream, const TensorView& image, const TensorView& columns,
          const PatchWindow& window) {
  if (image.count() == 0) return;
  if (offer(stream, Operation::fold, writes(image), reads(columns), described(window))) return;
  const ScratchTensor cut = cut_for(stream, columns);
  copy(stream, in_order(cut, columns), columns);
  resample_back(stream, image, cut.view(), maps_of(image, columns, window));
}

}  // namespace graft

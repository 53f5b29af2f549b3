// src/kernels/resample/patches.cpp: lines and images cut into overlapping pieces.
#include "kernels/resample/patches.h"

#include <array>

#include "kernels/launch/workspace.h"
#include "kernels/move/copy.h"
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

// The pieces side by side, row by row: [n, c, kernel0 * count0, kernel1 * count1] of its own
// memory.
class Cut {
 public:
  Cut(Stream& stream, const TensorView& columns)
      : memory_(stream, static_cast<uint64_t>(columns.count()) * size_of(columns.dtype)) {
    pieces_ = columns;
    for (const auto& [at, from] : {std::pair(3, 4), {4, 3}})
      pieces_.sizes[at] = columns.sizes[from];
    pieces_ = contiguous_like(pieces_, memory_.address(), columns.dtype);
    whole_ = pieces_;
    whole_.rank = 4;
    whole_.sizes[2] = pieces_.sizes[2] * pieces_.sizes[3];
    whole_.sizes[3] = pieces_.sizes[4] * pieces_.sizes[5];
    whole_ = contiguous_like(whole_, memory_.address(), columns.dtype);
  }

  const TensorView& whole() const { return whole_; }
  // In the order of columns.
  TensorView columns() const {
    TensorView view = pieces_;
    std::swap(view.sizes[3], view.sizes[4]);
    std::swap(view.strides[3], view.strides[4]);
    return view;
  }

 private:
  Workspace memory_;
  TensorView pieces_, whole_;
};

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
  const Cut cut(stream, columns);
  resample(stream, cut.whole(), image, maps_of(image, columns, window));
  copy(stream, columns, cut.columns());
}

void fold(Stream& stream, const TensorView& image, const TensorView& columns,
          const PatchWindow& window) {
  if (image.count() == 0) return;
  if (offer(stream, Operation::fold, writes(image), reads(columns), described(window))) return;
  const Cut cut(stream, columns);
  copy(stream, cut.columns(), columns);
  Pair maps = maps_of(image, columns, window);
  for (LinearMap& map : maps) map = map.transposed();
  resample(stream, image, cut.whole(), maps);
}

}  // namespace graft

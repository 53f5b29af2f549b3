// src/kernels/convolution/patch_matmul.cpp: patches are one factor, packed into panels.
#include "kernels/convolution/patch_matmul.h"

#include <algorithm>

#include "kernels/convolution/channel_views.h"
#include "kernels/matmul/blocked_matmul.h"
#include "kernels/matmul/panels.h"
#include "kernels/move/staging.h"
#include "kernels/tensor/image_views.h"

namespace graft {
namespace {

// Whether every position meets the one element at the same place of the image.
bool is_pointwise(const PatchGeometry& geometry) {
  for (int d = 0; d < geometry.rank; ++d) {
    if (geometry.kernel[d] != 1 || geometry.step[d] != 1) return false;
    if (geometry.padding[d] != 0) return false;
  }
  return true;
}

// What a convolution multiplies: images in turns that fit the memory for their patches.
struct PatchProduct {
  const TensorView& result;
  const TensorView& weight;  // contiguous [out, channels, kernel...]
  const TensorView& input;
  const PatchGeometry& geometry;
  const TensorView* bias;

  int64_t images() const { return input.sizes[0]; }
  int64_t outs() const { return weight.sizes[0]; }
  int64_t depth() const { return weight.count() / weight.sizes[0]; }

  // The weight as [out, depth], the same for each of a batch.
  TensorView factor(int64_t batch) const {
    TensorView matrix = matrices(weight, batch, outs(), depth());
    matrix.strides[0] = 0, matrix.strides[1] = depth(), matrix.strides[2] = 1;
    return matrix;
  }

  int64_t together(int64_t width) const {
    return images_in_a_turn(input, geometry, PatchLines::kPositions, width);
  }
  uint64_t bytes(int64_t together, int64_t width) const {
    return patch_bytes(part(input, 0, 0, together), geometry, PatchLines::kPositions, width);
  }
};

PackedFactor pack_images(Stream& stream, const PatchProduct& what, const TensorView& images,
                         const Workspace& space, int64_t width) {
  pack_patches(stream, space.address(), images, what.geometry, PatchLines::kPositions, width);
  return {space.address(), patch_bytes(images, what.geometry, PatchLines::kPositions, width), 0,
          what.depth(), true};
}

// Channels last: patches on the left, so that the rows of the product are the result's.
void multiply_last(Stream& stream, const PatchProduct& what) {
  const int64_t depth = what.depth(), positions = what.geometry.count();
  const int64_t width = panel_columns(stream.device());
  const bool direct = is_pointwise(what.geometry) && as_matrix(what.input);
  const Panels weights(stream, what.factor(1), 2, width);
  const PackedFactor right{weights.address(), weights.bytes(), 0, depth};
  const int64_t together = direct ? what.images() : what.together(width);
  for (int64_t first = 0; first < what.images(); first += together) {
    const int64_t count = std::min(together, what.images() - first);
    const TensorView images = part(what.input, 0, first, count);
    const TensorView to = *as_matrix(part(what.result, 0, first, count));
    std::optional<TensorView> added;
    if (what.bias != nullptr) added = over_channels(to, *what.bias);
    const MatmulEpilogue epilogue{1.0, added ? 1.0 : 0.0, added ? &*added : nullptr};
    if (direct) {
      blocked_matmul(stream, to, *as_matrix(images), right, epilogue);
    } else {
      const int64_t height = panel_rows(stream.device(), count * positions);
      const Workspace panels(stream, what.bytes(count, height));
      const PackedFactor left = pack_images(stream, what, images, panels, height);
      blocked_matmul(stream, to, left, right, epilogue);
    }
  }
}

void multiply_first(Stream& stream, const PatchProduct& what) {
  const int64_t outs = what.outs(), depth = what.depth(), positions = what.geometry.count();
  const int64_t width = panel_columns(stream.device()), together = what.together(width);
  StagedOutput output(stream, what.result, !is_contiguous_from(what.result, 2));
  const bool direct =
      is_pointwise(what.geometry) && is_contiguous_from(what.input, 2) && positions >= width;
  const Workspace panels(stream, direct ? 0 : what.bytes(together, width));
  for (int64_t first = 0; first < what.images(); first += together) {
    const int64_t count = std::min(together, what.images() - first);
    const TensorView images = part(what.input, 0, first, count);
    const TensorView factor = what.factor(count);
    TensorView to = matrices(part(output.view(), 0, first, count), count, outs, positions);
    to.strides[2] = 1;
    std::optional<TensorView> added;
    if (what.bias != nullptr) added = over_channels(to, *what.bias);
    const MatmulEpilogue epilogue{1.0, added ? 1.0 : 0.0, added ? &*added : nullptr};
    if (direct) {
      TensorView right = matrices(images, count, depth, positions);
      right.strides[2] = 1;
      blocked_matmul(stream, to, factor, right, epilogue);
    } else {
      blocked_matmul(stream, to, factor, pack_images(stream, what, images, panels, width),
                     epilogue);
    }
  }
  output.finish();
}

}  // namespace

void multiply_patches(Stream& stream, const TensorView& result, const TensorView& weight,
                      const TensorView& input, const PatchGeometry& geometry,
                      const TensorView* bias) {
  const PatchProduct what{result, weight, input, geometry, bias};
  const bool wide = 2 * what.outs() >= panel_columns(stream.device());
  if (wide && result.strides[1] == 1 && !is_contiguous_from(result, 2) && as_matrix(result)) {
    return multiply_last(stream, what);
  }
  multiply_first(stream, what);
}

}  // namespace graft

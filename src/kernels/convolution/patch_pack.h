// src/kernels/convolution/patch_pack.h: gathers the patches of images into panels.
#pragma once

#include "kernels/launch/workspace.h"
#include "kernels/tensor/view.h"

namespace graft {

// Which elements make up the patches of an image: position o meets kernel element k at
// o * step - padding + k * dilation, and zeros where that lies outside. rank spatial dimensions (up
// to three); padding may be negative.
struct PatchGeometry {
  int rank = 0;
  int64_t kernel[3], positions[3], step[3], padding[3], dilation[3];

  int64_t taps() const;   // elements of the kernel
  int64_t count() const;  // positions of an image
};

// What a line of the panels (panels.h) is.
enum class PatchLines {
  kPositions,  // a position of an image, image after image; channels * taps() deep
  kRows,       // a row (channel, kernel element); images * count() deep
};

// Bytes of the panels for the images of input [n, c, spatial...].
uint64_t patch_bytes(const TensorView& input, const PatchGeometry& geometry, PatchLines lines,
                     int64_t width);

// As many of the images of input as need 64 MB together, but at least one.
int64_t images_in_a_turn(const TensorView& input, const PatchGeometry& geometry, PatchLines lines,
                         int64_t width);

// Packs all images into panels of patch_bytes() bytes, in float32. input: float32 or a half type,
// any strides. REQUIRES: places and elements are less than 2^30 apart.
void pack_patches(Stream& stream, graft_address panels, const TensorView& input,
                  const PatchGeometry& geometry, PatchLines lines, int64_t width);

}  // namespace graft

// src/kernels/detection/region_writer.h: what all kernels on regions of images have in common.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "kernels/detection/region.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/checked_index.h"

namespace graft {

struct RegionKernel {
  const char* name = "";
  graft_dtype dtype = GRAFT_FLOAT32;  // of images and bins
  bool positional = false;
  bool backward = false;  // from bins to images, whose dtype is wide() then

  graft_dtype wide() const { return dtype == GRAFT_FLOAT64 ? GRAFT_FLOAT64 : GRAFT_FLOAT32; }
  std::string key() const;
};

// Writes a kernel with the parameters that append_regions() appends; further ones follow.
class RegionWriter {
 public:
  explicit RegionWriter(const RegionKernel& kernel);

 protected:
  using Value = ir::Value;

  // Lines of a forward kernel: a row of bins of a region, in a block of channels.
  ir::Kernel each_row(const std::function<void(Value region, Value y)>& body);
  // Lines of a gradient: some rows of an image, in a block of channels; body is called for each of
  // the image's regions.
  ir::Kernel each_region(const std::function<void(Value region)>& body);

  // Inside each_region: the bins whose channels the line has.
  void each_bin(const std::function<void(Value y, Value x)>& body);
  // body(i) for the channels of the line, in vectors.
  void each_channel(const std::function<void(Value i)>& body) {
    b_.vector_loop(b_.i64(0), width_, body);
  }
  ir::Lanes filled(ir::Type type, Value first);

  // A number of a region's box, in elements of the images: x1 is 0, y1 is 1, x2 is 2, y2 is 3.
  Value corner(Value region, int which);
  // The image of a region, checked.
  Value image_of(Value region);

  // The element of the line's first channel that a bin begins with; the next channel's is
  // image_step() further.
  Value in_image(Value image, Value bin_y, Value bin_x);
  Value image_step();
  Value in_bins(Value region, Value y, Value x) {
    return region * bin_strides_[0] + block_ * bin_strides_[1] + y * bin_strides_[2] +
           x * bin_strides_[3];
  }
  // The same in a contiguous tensor of the bins' sizes, whose channels are bin_count() apart.
  Value in_positions(Value region, Value y, Value x) {
    return ((region * channels_ + block_) * bins_[0] + y) * bins_[1] + x;
  }
  Value bin_count() { return bins_[0] * bins_[1]; }
  Value in_plane(Value y, Value x) { return y * image_strides_[2] + x * image_strides_[3]; }
  Value zero() { return b_.constant(type_, 0); }

  const RegionKernel kernel_;
  ir::Builder b_;
  const ir::Type type_;
  ir::Address boxes_;
  std::optional<IndexChecker> checker_;
  Value lines_, per_item_, regions_, channels_, images_, bands_, band_rows_;
  Value size_[2], bins_[2], image_strides_[4], bin_strides_[4], scale_;

  // Of the line.
  Value block_, width_, image_, first_row_, end_row_, bin_;

 private:
  void channels_of(Value block, int64_t length);
};

// Appends a launch's first arguments and says how many work-items it has. images and bins give
// sizes and strides; samples: how many elements of an image a bin reads, about.
int64_t append_regions(Arguments& arguments, Stream& stream, const RegionKernel& kernel,
                       const BinnedRegions& regions, const TensorView& images,
                       const TensorView& bins, int64_t samples);

// Calls add(sums) with grad_images filled with 0, or a tensor of the wide dtype in its place that
// is copied there afterwards.
void sum_into(Stream& stream, const TensorView& grad_images, graft_dtype wide,
              const std::function<void(const TensorView& sums)>& add);

// Throws Error UNSUPPORTED for a dtype without kernels.
void require_region_dtype(const char* name, graft_dtype dtype);

}  // namespace graft

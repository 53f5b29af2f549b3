// src/kernels/detection/region_writer.cpp: what all kernels on regions of images have in common.
#include "kernels/detection/region_writer.h"

#include <algorithm>

#include "kernels/detection/exact_product.h"
#include "kernels/launch/lanes.h"
#include "kernels/launch/work_split.h"
#include "kernels/launch/workspace.h"
#include "kernels/move/copy.h"
#include "kernels/move/fill.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using ir::Value;

constexpr int64_t kBlock = 64;            // channels of a line
constexpr int64_t kBackwardBlock = 16;    // fewer, as gradients have fewer lines
constexpr int64_t kGradientLines = 4096;  // that keep a GPU busy

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::string RegionKernel::key() const {
  return std::string(name) + (backward ? "_backward" : "") + (positional ? "_positional_" : "_") +
         name_of(dtype);
}

RegionWriter::RegionWriter(const RegionKernel& kernel)
    : kernel_(kernel), b_(kernel.key()), type_(ir::compute_type(kernel.dtype)) {
  boxes_ = b_.read(kernel.dtype);
  if (!kernel.backward) checker_.emplace(b_);
  b_.indices({&lines_, &per_item_, &regions_, &channels_, &images_, &bands_, &band_rows_});
  b_.indices({size_, bins_}, 2);
  b_.indices({image_strides_, bin_strides_}, 4);
  scale_ = b_.scalar(kernel.wide());
}

void RegionWriter::channels_of(Value block, int64_t length) {
  block_ = block * length;
  width_ = ir::minimum(channels_ - block_, b_.i64(length));
}

ir::Kernel RegionWriter::each_row(const std::function<void(Value, Value)>& body) {
  each_line(b_, lines_, per_item_, [&](Value line) {
    const Value blocks = (channels_ + (kBlock - 1)) / kBlock, rest = line / bins_[0];
    channels_of(rest % blocks, kBlock);
    body(rest / blocks, line % bins_[0]);
  });
  return b_.finish();
}

ir::Kernel RegionWriter::each_region(const std::function<void(Value)>& body) {
  each_line(b_, lines_, per_item_, [&](Value line) {
    const Value blocks = (channels_ + (kBackwardBlock - 1)) / kBackwardBlock;
    first_row_ = line % bands_ * band_rows_;
    end_row_ = ir::minimum(first_row_ + band_rows_, size_[0]);
    Value rest = line / bands_;
    channels_of(rest % blocks, kBackwardBlock);
    rest = rest / blocks;
    image_ = rest % images_;
    if (kernel_.positional) bin_ = rest / images_;
    b_.loop(b_.i64(0), regions_, [&](Value region) {
      const Value number = cast(type_, boxes_.load(region * 5));
      // -0.5 is image 0, as on the CPU.
      const Value whole = select((number > -1) & (number < cast(type_, images_)), number, -1);
      b_.if_(cast(ir::Type::kI64, whole) == image_, [&] { body(region); });
    });
  });
  return b_.finish();
}

void RegionWriter::each_bin(const std::function<void(Value, Value)>& body) {
  if (kernel_.positional) return body(bin_ / bins_[1], bin_ % bins_[1]);
  b_.loop(b_.i64(0), bins_[0],
          [&](Value y) { b_.loop(b_.i64(0), bins_[1], [&](Value x) { body(y, x); }); });
}

ir::Lanes RegionWriter::filled(ir::Type type, Value first) {
  const ir::Lanes lanes(b_, type, kBlock);
  b_.vector_loop(b_.i64(0), b_.i64(kBlock), [&](Value i) { lanes.store(i, first); });
  return lanes;
}

Value RegionWriter::corner(Value region, int which) {
  return exact_product(cast(type_, boxes_.load(region * 5 + (1 + which))), scale_);
}

Value RegionWriter::image_of(Value region) {
  const Value number = cast(type_, boxes_.load(region * 5));
  const Value whole = select((number > -1) & (number < 2147483648.0), number, -1);
  return checker_->check(cast(ir::Type::kI64, whole), images_, false);
}

Value RegionWriter::in_image(Value image, Value bin_y, Value bin_x) {
  const Value channel =
      kernel_.positional ? block_ * bin_count() + bin_y * bins_[1] + bin_x : block_;
  return image * image_strides_[0] + channel * image_strides_[1];
}

Value RegionWriter::image_step() {
  return kernel_.positional ? bin_count() * image_strides_[1] : image_strides_[1];
}

int64_t append_regions(Arguments& arguments, Stream& stream, const RegionKernel& kernel,
                       const BinnedRegions& regions, const TensorView& images,
                       const TensorView& bins, int64_t samples) {
  const int64_t channels = bins.sizes[1], rows = bins.sizes[2], columns = bins.sizes[3];
  const int64_t block = kernel.backward ? kBackwardBlock : kBlock;
  const int64_t blocks = divided_up(channels, block), width = std::min(channels, block);
  int64_t bands = 1, lines = regions.boxes.sizes[0] * blocks * rows;
  int64_t elements = columns * samples * width;
  if (kernel.backward) {
    lines = images.sizes[0] * blocks * (kernel.positional ? rows * columns : 1);
    if (is_gpu_like(stream.device())) {
      bands = std::clamp<int64_t>(kGradientLines / lines, 1, images.sizes[2]);
    }
    const int64_t all = regions.boxes.sizes[0] * (kernel.positional ? 1 : rows * columns);
    elements = all * samples * width / images.sizes[0] / bands;
  }
  const int64_t band_rows = divided_up(images.sizes[2], bands);
  bands = divided_up(images.sizes[2], band_rows);
  const WorkSplit split = split_work(lines * bands, 4 * elements);
  arguments.read(regions.boxes);
  if (!kernel.backward) append_checker(arguments, stream);
  arguments.indices({split.lines, split.per_item, regions.boxes.sizes[0], channels, images.sizes[0],
                     bands, band_rows, images.sizes[2], images.sizes[3], rows, columns});
  for (const TensorView* view : {&images, &bins}) {
    for (int d = 0; d < 4; ++d) arguments.index(view->strides[d]);
  }
  arguments.scalar(Scalar::of(kernel.wide(), regions.scale), size_of(kernel.wide()));
  return split.grid;
}

void sum_into(Stream& stream, const TensorView& grad_images, graft_dtype wide,
              const std::function<void(const TensorView&)>& add) {
  TensorView sums = grad_images;
  std::optional<ScratchTensor> memory;
  if (sums.dtype != wide) sums = memory.emplace(stream, grad_images, wide).view();
  fill(stream, sums, Scalar::of(0.0));
  add(sums);
  if (memory) copy(stream, grad_images, sums);
}

void require_region_dtype(const char* name, graft_dtype dtype) {
  if (dtype == GRAFT_FLOAT16 || dtype == GRAFT_FLOAT32 || dtype == GRAFT_FLOAT64) return;
  throw Error(GRAFT_UNSUPPORTED, std::string(name) + ": no kernel for " + name_of(dtype));
}

}  // namespace graft

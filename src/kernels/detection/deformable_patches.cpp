// src/kernels/detection/deformable_patches.cpp: patches of images whose elements are read at
// positions that come from data.
#include "kernels/detection/deformable_patches.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "kernels/detection/region_writer.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/lanes.h"
#include "kernels/launch/work_split.h"
#include "kernels/operation/offer.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

constexpr int64_t kLocations = 64;        // of a line
constexpr int64_t kChannels = 16;         // of a line of images' gradients
constexpr int64_t kGradientLines = 4096;  // that keep a GPU busy

struct PatchKernel {
  enum Kind { kColumns, kImages, kOffsets } kind;
  graft_dtype dtype;
  bool masked;

  graft_dtype wide() const { return dtype == GRAFT_FLOAT64 ? GRAFT_FLOAT64 : GRAFT_FLOAT32; }
  std::string key() const {
    static const char* const kKinds[] = {"", "_images", "_offsets"};
    return std::string("deformable_patches") + kKinds[kind] + (masked ? "_masked_" : "_") +
           name_of(dtype);
  }
};

class PatchWriter {
 public:
  explicit PatchWriter(const PatchKernel& kernel)
      : k_(kernel), b_(kernel.key()), type_(ir::compute_type(kernel.dtype)) {
    const bool adds = k_.kind == PatchKernel::kImages;
    to_ = adds ? b_.update(k_.wide()) : b_.write(k_.dtype);
    if (k_.kind == PatchKernel::kOffsets && k_.masked) mask_slopes_ = b_.write(k_.dtype);
    if (k_.kind != PatchKernel::kColumns) columns_ = b_.read(k_.dtype);
    if (!adds) images_ = b_.read(k_.dtype);
    offsets_ = b_.read(k_.dtype);
    if (k_.masked) mask_ = b_.read(k_.dtype);
    b_.indices({&lines_, &per_item_, &groups_, &channels_, &patch_, &locations_, &bands_,
                &band_rows_, &out_width_, &kernel_width_});
    b_.indices({size_, stride_, padding_, dilation_}, 2);
    for (Value& value : pitch_) value = b_.index();
  }

  ir::Kernel write() {
    each_line(b_, lines_, per_item_, [&](Value line) {
      if (k_.kind == PatchKernel::kImages) return add_to_images(line);
      const Value blocks = (locations_ + (kLocations - 1)) / kLocations;
      first_ = line % blocks * kLocations;
      count_ = ir::minimum(locations_ - first_, b_.i64(kLocations));
      Value rest = line / blocks;
      element_ = rest % patch_;
      rest = rest / patch_;
      group_ = rest % groups_;
      image_ = rest / groups_;
      k_.kind == PatchKernel::kColumns ? sample() : slopes();
    });
    return b_.finish();
  }

 private:
  // Rows or columns beside a position.
  struct Tap {
    Value low, part;            // low: a whole number
    Value low_fits, high_fits;  // whether the image has them
  };
  struct Corner {
    Value offset, fits;  // offset is 0 where the image has no such element
  };
  struct Point {
    Tap y, x;
    Corner corner(int which, const Value* pitch) const {
      const bool down = which >= 2, right = which % 2 == 1;
      const Value fits = (down ? y.high_fits : y.low_fits) & (right ? x.high_fits : x.low_fits);
      const auto at = [&](const Tap& tap, bool high) {
        return cast(Type::kI64, select(fits, high ? tap.low + 1 : tap.low, 0));
      };
      return {at(y, down) * pitch[2] + at(x, right) * pitch[3], fits};
    }
    Value weight(int which) const {
      const Value a = which >= 2 ? y.part : 1 - y.part, b = which % 2 == 1 ? x.part : 1 - x.part;
      return a * b;
    }
  };

  Tap tap(Value at, int d) {
    const Value low = floor(at), last = cast(type_, size_[d] - 1);
    const Value low_fits = (low >= 0) & (low <= last), high_fits = (low >= -1) & (low < last);
    return {low, select(low_fits | high_fits, at - low, 0), low_fits, high_fits};
  }
  // The group's plane of offsets or masks at an element of the patch.
  Value plane(Value image, Value group, Value element) {
    return (image * groups_ + group) * patch_ + element;
  }
  Point point(Value image, Value group, Value element, Value location) {
    const Value base = plane(image, group, element) * 2 * locations_ + location;
    const Value out[] = {location / out_width_, location % out_width_};
    const Value in[] = {element / kernel_width_, element % kernel_width_};
    Value at[2];
    for (int d = 0; d < 2; ++d) {
      const Value whole = out[d] * stride_[d] - padding_[d] + in[d] * dilation_[d];
      const Value offset = cast(type_, offsets_.load(d == 0 ? base : base + locations_));
      at[d] = cast(type_, whole) + offset;
    }
    return {tap(at[0], 0), tap(at[1], 1)};
  }
  Value mask(Value image, Value group, Value element, Value location) {
    if (!k_.masked) return b_.constant(type_, 1);
    return cast(type_, mask_.load(plane(image, group, element) * locations_ + location));
  }
  Value column(Value image, Value channel, Value element) {
    return ((image * groups_ * channels_ + channel) * patch_ + element) * locations_;
  }

  // body(i) for the locations of the line, in vectors.
  template <class Body>
  void each_location(Body body) {
    b_.vector_loop(b_.i64(0), count_, body);
  }
  Lanes lanes(Type type) { return {b_, type, static_cast<uint32_t>(kLocations)}; }

  // What the channels of a group share: elements beside each location's position (-1: none).
  std::vector<Lanes> corner_offsets() {
    std::vector<Lanes> found;
    for (int k = 0; k < 4; ++k) found.push_back(lanes(Type::kI64));
    each_location([&](Value i) {
      const Point at = point(image_, group_, element_, first_ + i);
      for (int k = 0; k < 4; ++k) {
        const Corner corner = at.corner(k, pitch_);
        found[static_cast<size_t>(k)].store(i, select(corner.fits, corner.offset, -1));
      }
    });
    return found;
  }
  // An element of a channel that begins at base; 0 where there is none.
  Value element(const Lanes& offsets, Value base, Value i) {
    const Value offset = offsets.load(i);
    const Value value = images_.load(base + select(offset < 0, 0, offset));
    return select(offset < 0, 0, cast(type_, value));
  }
  // body(the channel's first element, its number) for the channels of the line's group.
  template <class Body>
  void each_channel(Body body) {
    b_.loop(b_.i64(0), channels_, [&](Value c) {
      const Value channel = group_ * channels_ + c;
      body(image_ * pitch_[0] + channel * pitch_[1], channel);
    });
  }

  void sample() {
    const std::vector<Lanes> offsets = corner_offsets();
    std::vector<Lanes> weights;
    for (int k = 0; k < 4; ++k) weights.push_back(lanes(type_));
    const Lanes factor = lanes(type_);
    each_location([&](Value i) {
      const Point at = point(image_, group_, element_, first_ + i);
      for (int k = 0; k < 4; ++k) weights[static_cast<size_t>(k)].store(i, at.weight(k));
      factor.store(i, mask(image_, group_, element_, first_ + i));
    });
    each_channel([&](Value base, Value channel) {
      const Value to = column(image_, channel, element_) + first_;
      each_location([&](Value i) {
        const auto part = [&](size_t k) {
          return weights[k].load(i) * element(offsets[k], base, i);
        };
        to_.store(to + i, factor.load(i) * (part(0) + part(1) + part(2) + part(3)));
      });
    });
  }

  void slopes() {
    const std::vector<Lanes> offsets = corner_offsets();
    const Lanes factor = lanes(type_), parts[] = {lanes(type_), lanes(type_)};
    const Lanes sums[] = {lanes(type_), lanes(type_), lanes(type_)};  // y, x, mask
    each_location([&](Value i) {
      const Point at = point(image_, group_, element_, first_ + i);
      parts[0].store(i, at.y.part);
      parts[1].store(i, at.x.part);
      factor.store(i, mask(image_, group_, element_, first_ + i));
      for (const Lanes& sum : sums) sum.store(i, b_.constant(type_, 0));
    });
    each_channel([&](Value base, Value channel) {
      const Value from = column(image_, channel, element_) + first_;
      each_location([&](Value i) {
        Value v[4];
        for (size_t k = 0; k < 4; ++k) v[k] = element(offsets[k], base, i);
        const Value y = parts[0].load(i), x = parts[1].load(i),
                    g = cast(type_, columns_.load(from + i));
        const Value along_y = x * (v[3] - v[1]) + (1 - x) * (v[2] - v[0]);
        const Value along_x = y * (v[3] - v[2]) + (1 - y) * (v[1] - v[0]);
        const Value here =
            (1 - y) * (1 - x) * v[0] + (1 - y) * x * v[1] + y * (1 - x) * v[2] + y * x * v[3];
        sums[0].store(i, sums[0].load(i) + factor.load(i) * along_y * g);
        sums[1].store(i, sums[1].load(i) + factor.load(i) * along_x * g);
        sums[2].store(i, sums[2].load(i) + g * here);
      });
    });
    const Value at = plane(image_, group_, element_) * locations_;
    each_location([&](Value i) {
      to_.store(at * 2 + first_ + i, sums[0].load(i));
      to_.store(at * 2 + locations_ + first_ + i, sums[1].load(i));
      if (k_.masked) mask_slopes_.store(at + first_ + i, sums[2].load(i));
    });
  }

  // A line: some rows of an image, in a block of a group's channels.
  void add_to_images(Value line) {
    const Value blocks = (channels_ + (kChannels - 1)) / kChannels;
    const Value first_row = line % bands_ * band_rows_;
    const Value end_row = ir::minimum(first_row + band_rows_, size_[0]);
    Value rest = line / bands_;
    const Value block = rest % blocks * kChannels;
    rest = rest / blocks;
    const Value group = rest % groups_, image = rest / groups_;
    const Value width = ir::minimum(channels_ - block, b_.i64(kChannels));
    const Value channel = group * channels_ + block;
    const Value base = image * pitch_[0] + channel * pitch_[1];
    const Value first = cast(type_, first_row), end = cast(type_, end_row);
    b_.loop(b_.i64(0), patch_, [&](Value element) {
      const Value from = column(image, channel, element);
      b_.loop(b_.i64(0), locations_, [&](Value location) {
        const Point at = point(image, group, element, location);
        const Value factor = mask(image, group, element, location);
        for (int k = 0; k < 4; ++k) {
          const Corner corner = at.corner(k, pitch_);
          const Value row = k >= 2 ? at.y.low + 1 : at.y.low;
          const Value weight = factor * at.weight(k), to = base + corner.offset;
          b_.if_(corner.fits & (row >= first) & (row < end), [&] {
            b_.vector_loop(b_.i64(0), width, [&](Value i) {
              const Value g = cast(type_, columns_.load(from + location + i * patch_ * locations_));
              to_.store(to + i * pitch_[1], to_.load(to + i * pitch_[1]) + weight * g);
            });
          });
        }
      });
    });
  }

  const PatchKernel k_;
  Builder b_;
  const Type type_;
  Address to_, mask_slopes_, columns_, images_, offsets_, mask_;
  Value lines_, per_item_, groups_, channels_, patch_, locations_, bands_, band_rows_, out_width_,
      kernel_width_;
  Value size_[2], stride_[2], padding_[2], dilation_[2], pitch_[4];
  Value first_, count_, element_, group_, image_;  // of the line
};

// arguments hold the tensors; images gives sizes and strides.
void launch(Stream& stream, const PatchKernel& kernel, Arguments& arguments,
            const TensorView& images, const TensorView& offsets, const DeformablePatches& patches) {
  const int64_t groups = offsets.sizes[1], patch = offsets.sizes[2], locations = offsets.sizes[4];
  const int64_t channels = images.sizes[1] / groups, rows = images.sizes[2];
  int64_t lines = images.sizes[0] * groups, elements = 0, bands = 1;
  if (kernel.kind == PatchKernel::kImages) {
    lines *= (channels + kChannels - 1) / kChannels;
    if (is_gpu_like(stream.device())) bands = std::clamp<int64_t>(kGradientLines / lines, 1, rows);
    elements = patch * locations * kChannels;
  } else {
    lines *= patch * ((locations + kLocations - 1) / kLocations);
    elements = 4 * channels * kLocations;
  }
  const int64_t band_rows = (rows + bands - 1) / bands;
  bands = (rows + band_rows - 1) / band_rows;
  if (kernel.kind == PatchKernel::kImages) lines *= bands;
  const WorkSplit split = split_work(lines, elements);
  arguments.indices({split.lines, split.per_item, groups, channels, patch, locations, bands,
                     band_rows, patches.columns, patches.kernel[1], rows, images.sizes[3]});
  for (const int64_t* pair : {patches.stride, patches.padding, patches.dilation}) {
    arguments.index(pair[0]).index(pair[1]);
  }
  for (int d = 0; d < 4; ++d) arguments.index(images.strides[d]);
  launch_kernel(stream, kernel.key(), split.grid, arguments,
                [&] { return PatchWriter(kernel).write(); });
}

void require_dtype(graft_dtype dtype) {
  if (is_floating(dtype)) return;
  throw Error(GRAFT_UNSUPPORTED,
              std::string("deformable_patches: no kernel for ") + name_of(dtype));
}

void attributes(VendorCall& to, const DeformablePatches& patches) {
  for (const int64_t* pair : {patches.kernel, patches.stride, patches.padding, patches.dilation}) {
    to.integers({pair[0], pair[1]});
  }
  to.integers({patches.columns});
}

}  // namespace

void deformable_patches(Stream& stream, const TensorView& columns, const TensorView& images,
                        const TensorView& offsets, const TensorView* mask,
                        const DeformablePatches& patches) {
  if (offer(stream, Operation::deformable_patches, [&](VendorCall& to) {
        attributes(to.write(columns).read(images).read(offsets).read(mask), patches);
      }))
    return;
  require_dtype(images.dtype);
  if (columns.count() == 0) return;
  Arguments arguments;
  arguments.write(columns).read(images).read(offsets);
  if (mask != nullptr) arguments.read(*mask);
  launch(stream, {PatchKernel::kColumns, images.dtype, mask != nullptr}, arguments, images, offsets,
         patches);
}

void deformable_patches_images_backward(Stream& stream, const TensorView& grad_images,
                                        const TensorView& grad_columns, const TensorView& offsets,
                                        const TensorView* mask, const DeformablePatches& patches) {
  if (offer(stream, Operation::deformable_patches_images_backward, [&](VendorCall& to) {
        attributes(to.write(grad_images).read(grad_columns).read(offsets).read(mask), patches);
      }))
    return;
  require_dtype(grad_images.dtype);
  if (grad_images.count() == 0) return;
  const PatchKernel kernel{PatchKernel::kImages, grad_images.dtype, mask != nullptr};
  sum_into(stream, grad_images, kernel.wide(), [&](const TensorView& sums) {
    if (grad_columns.count() == 0) return;
    Arguments arguments;
    arguments.update(sums).read(grad_columns).read(offsets);
    if (mask != nullptr) arguments.read(*mask);
    launch(stream, kernel, arguments, sums, offsets, patches);
  });
}

void deformable_patches_offsets_backward(Stream& stream, const TensorView& grad_offsets,
                                         const TensorView* grad_mask,
                                         const TensorView& grad_columns, const TensorView& images,
                                         const TensorView& offsets, const TensorView* mask,
                                         const DeformablePatches& patches) {
  if (offer(stream, Operation::deformable_patches_offsets_backward, [&](VendorCall& to) {
        to.write(grad_offsets).write(grad_mask).read(grad_columns).read(images).read(offsets);
        attributes(to.read(mask), patches);
      }))
    return;
  require_dtype(images.dtype);
  if (grad_offsets.count() == 0) return;
  Arguments arguments;
  arguments.write(grad_offsets);
  if (mask != nullptr) arguments.write(*grad_mask);
  arguments.read(grad_columns).read(images).read(offsets);
  if (mask != nullptr) arguments.read(*mask);
  launch(stream, {PatchKernel::kOffsets, images.dtype, mask != nullptr}, arguments, images, offsets,
         patches);
}

}  // namespace graft

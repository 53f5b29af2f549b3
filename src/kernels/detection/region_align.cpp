// src/kernels/detection/region_align.cpp: bins of regions as means of interpolated samples.
#include "kernels/detection/exact_product.h"
#include "kernels/detection/region.h"
#include "kernels/detection/region_writer.h"
#include "kernels/move/fill.h"
#include "kernels/operation/offer.h"

namespace graft {
namespace {

using namespace ir;

constexpr const char* kName = "region_align";

class AlignWriter : RegionWriter {
 public:
  explicit AlignWriter(const RegionKernel& kernel) : RegionWriter(kernel) {
    ratio_ = b_.index();
    half_pixel_ = b_.index();
    to_ = kernel.backward ? b_.update(kernel.wide()) : b_.write(kernel.dtype);
    from_ = b_.read(kernel.dtype);
  }

  ir::Kernel write() {
    if (kernel_.backward) return each_region([&](Value region) { add(region); });
    return each_row([&](Value region, Value y) { average(region, y); });
  }

 private:
  // A region along one axis, y first. A region of negative length has a negative count, and no
  // samples.
  struct Side {
    Value start, bin, count, samples;
  };
  struct Place {
    Side sides[2];
    Value count;  // that a bin is divided by
  };
  // An axis of a sample: rows or columns beside it, and their weights.
  struct Tap {
    Value low, high, low_weight, high_weight;
  };

  Side side(Value region, int d) {
    const Value half = select(half_pixel_ != 0, b_.constant(type_, 0.5), 0);
    const Value start = corner(region, 1 - d) - half, end = corner(region, 3 - d) - half;
    const Value length = end - start;
    // As std::max: NaN stays.
    const Value least = select(length < 1, b_.constant(type_, 1), length);
    const Value extent = select(half_pixel_ != 0, length, least);
    const Value bin = extent / cast(type_, bins_[d]), fitting = ceil(bin);
    const Value count = select(ratio_ > 0, cast(type_, ratio_), fitting);
    const Value above = select(count > 0, count, 0);
    const Value whole = cast(ir::Type::kI64, select(above < kMostSamples, above, kMostSamples));
    return {start, bin, count, whole};
  }
  Place place(Value region) {
    Place found{{side(region, 0), side(region, 1)}, {}};
    found.count = found.sides[0].count * found.sides[1].count;
    return found;
  }

  // body(coordinate) for the samples of a bin within [low, high], elements of that axis.
  template <class Body>
  void each_sample(const Side& side, Value bin, Value low, Value high, Body body) {
    const Value count = side.count, step = side.bin / count;
    const Value start = side.start + exact_product(cast(type_, bin), side.bin);
    // A region may have far more samples than the image has elements.
    const auto bounded = [&](Value at) {
      const Value most = cast(type_, side.samples), above = select(at > 0, at, 0);
      return cast(ir::Type::kI64, select(above < most, above, most));
    };
    const Value forward = !(step <= 0);
    const Value first = select(forward, bounded(floor((low - start) / step - 1.5)), b_.i64(0));
    const Value end = select(forward, bounded(ceil((high - start) / step + 1.5)), side.samples);
    b_.loop(first, end, [&](Value i) {
      const Value at = start + (cast(type_, i) + 0.5) * side.bin / count;
      b_.if_((at >= low) & (at <= high), [&] { body(at); });
    });
  }

  Tap tap(Value at, Value size) {
    const Value inside = select(at <= 0, 0, at), last = size - 1;
    const Value whole = cast(ir::Type::kI64, inside), edge = whole >= last;
    const Value low = select(edge, last, whole), high = select(edge, last, whole + 1);
    const Value part = select(edge, 0, inside - cast(type_, whole));
    return {low, high, 1 - part, part};
  }

  void average(Value region, Value y) {
    const Value image = image_of(region);
    const Place at = place(region);
    // An empty positional bin is 0 / 0, another one 0.
    const Value divisor =
        kernel_.positional ? at.count : select(at.count < 1, b_.constant(type_, 1), at.count);
    b_.loop(b_.i64(0), bins_[1], [&](Value x) {
      const Lanes sums = filled(type_, zero());
      const Value base = in_image(image, y, x), step = image_step();
      each_sample(at.sides[0], y, low(), size(0), [&](Value row) {
        const Tap v = tap(row, size_[0]);
        each_sample(at.sides[1], x, low(), size(1), [&](Value column) {
          const Tap h = tap(column, size_[1]);
          const Value offsets[] = {in_plane(v.low, h.low), in_plane(v.low, h.high),
                                   in_plane(v.high, h.low), in_plane(v.high, h.high)};
          const Value weights[] = {v.low_weight * h.low_weight, v.low_weight * h.high_weight,
                                   v.high_weight * h.low_weight, v.high_weight * h.high_weight};
          each_channel([&](Value i) {
            const auto part = [&](int k) {
              return weights[k] * cast(type_, from_.load(base + offsets[k] + i * step));
            };
            sums.store(i, sums.load(i) + (part(0) + part(1) + part(2) + part(3)));
          });
        });
      });
      const Value to = in_bins(region, y, x);
      each_channel([&](Value i) { to_.store(to + i * bin_strides_[1], sums.load(i) / divisor); });
    });
  }

  // Adds the slopes of a region's bins to the rows of the line.
  void add(Value region) {
    const Place at = place(region);
    const Value above = cast(type_, first_row_) - 1, below = cast(type_, end_row_);
    each_bin([&](Value y, Value x) {
      const Value from = in_bins(region, y, x), base = in_image(image_, y, x);
      each_sample(at.sides[0], y, above, below, [&](Value row) {
        const Tap v = tap(row, size_[0]);
        each_sample(at.sides[1], x, low(), size(1), [&](Value column) {
          const Tap h = tap(column, size_[1]);
          for (const bool high : {false, true}) {
            const Value line = high ? v.high : v.low, weight = high ? v.high_weight : v.low_weight;
            b_.if_((line >= first_row_) & (line < end_row_), [&] {
              add_to(from, base + in_plane(line, h.low), weight * h.low_weight, at.count);
              add_to(from, base + in_plane(line, h.high), weight * h.high_weight, at.count);
            });
          }
        });
      });
    });
  }

  void add_to(Value from, Value to, Value weight, Value count) {
    const Value step = image_step();
    each_channel([&](Value i) {
      const Value slope = cast(type_, from_.load(from + i * bin_strides_[1]));
      to_.store(to + i * step, to_.load(to + i * step) + slope * weight / count);
    });
  }

  Value low() { return b_.constant(type_, -1); }
  Value size(int d) { return cast(type_, size_[d]); }

  static constexpr double kMostSamples = 1 << 30;  // along an axis, of a region without end

  Value ratio_, half_pixel_;
  Address to_, from_;
};

void launch(Stream& stream, const RegionKernel& kernel, const TensorView& images,
            const TensorView& bins, const BinnedRegions& regions, const RegionSamples& samples) {
  const int64_t ratio = samples.ratio > 0 ? samples.ratio : 2;
  Arguments arguments;
  const int64_t grid =
      append_regions(arguments, stream, kernel, regions, images, bins, ratio * ratio * 4);
  arguments.index(samples.ratio).index(samples.half_pixel);
  kernel.backward ? arguments.update(images).read(bins) : arguments.write(bins).read(images);
  launch_kernel(stream, kernel.key(), grid, arguments, [&] { return AlignWriter(kernel).write(); });
}

void append(VendorCall& to, const BinnedRegions& regions, const RegionSamples& samples) {
  to.read(regions.boxes).integers({regions.positional, samples.ratio, samples.half_pixel});
  to.numbers({regions.scale});
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  for (const bool backward : {false, true}) {
    const RegionKernel kernel{kName, GRAFT_FLOAT32, false, backward};
    add(kernel.key(), [kernel] { return AlignWriter(kernel).write(); });
  }
});

}  // namespace

void region_align(Stream& stream, const TensorView& bins, const TensorView& images,
                  const BinnedRegions& regions, const RegionSamples& samples) {
  if (offer(stream, Operation::region_align,
            [&](VendorCall& to) { append(to.write(bins).read(images), regions, samples); }))
    return;
  require_region_dtype(kName, images.dtype);
  if (bins.count() == 0) return;
  if (images.count() == 0) return fill(stream, bins, Scalar::of(0.0));
  launch(stream, {kName, images.dtype, regions.positional, false}, images, bins, regions, samples);
}

void region_align_backward(Stream& stream, const TensorView& grad_images,
                           const TensorView& grad_bins, const BinnedRegions& regions,
                           const RegionSamples& samples) {
  if (offer(stream, Operation::region_align_backward, [&](VendorCall& to) {
        append(to.write(grad_images).read(grad_bins), regions, samples);
      }))
    return;
  require_region_dtype(kName, grad_images.dtype);
  if (grad_images.count() == 0) return;
  const RegionKernel kernel{kName, grad_images.dtype, regions.positional, true};
  sum_into(stream, grad_images, kernel.wide(), [&](const TensorView& sums) {
    if (grad_bins.count() > 0) launch(stream, kernel, sums, grad_bins, regions, samples);
  });
}

}  // namespace graft

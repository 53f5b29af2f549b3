// src/kernels/detection/region_pool.cpp: bins of regions as the largest or the mean of elements.
#include <limits>

#include "kernels/detection/exact_product.h"
#include "kernels/detection/region.h"
#include "kernels/detection/region_writer.h"
#include "kernels/move/fill.h"
#include "kernels/operation/offer.h"

namespace graft {
namespace {

using namespace ir;

constexpr const char* kMax = "region_max";
constexpr const char* kAverage = "region_average";

class PoolWriter : RegionWriter {
 public:
  explicit PoolWriter(const RegionKernel& kernel)
      : RegionWriter(kernel), takes_largest_(kernel.name == kMax) {
    to_ = kernel.backward ? b_.update(kernel.wide()) : b_.write(kernel.dtype);
    from_ = b_.read(kernel.dtype);
    if (takes_largest_) positions_ = kernel.backward ? b_.read(GRAFT_INT32) : b_.write(GRAFT_INT32);
  }

  ir::Kernel write() {
    if (!kernel_.backward) {
      return each_row([&](Value region, Value y) {
        const Value image = image_of(region);
        const Place at = place(region);
        b_.loop(b_.i64(0), bins_[1], [&](Value x) {
          takes_largest_ ? largest(region, image, at, y, x) : average(region, image, at, y, x);
        });
      });
    }
    if (takes_largest_) return each_region([&](Value region) { add_largest(region); });
    return each_region([&](Value region) { add_average(region); });
  }

 private:
  // A region along an axis, y first, in whole elements.
  struct Side {
    Value start, bin;
  };
  struct Place {
    Side sides[2];
  };
  struct Range {
    Value begin, end;
  };

  // Halves away from 0; what no image reaches as one number.
  Value rounded(Value x) {
    const Value whole = trunc(x);
    const Value near = whole + select(abs(x - whole) >= 0.5, copysign(like(x, 1), x), 0);
    const Value above = select(near > -kFar, near, -kFar);
    return cast(Type::kI64, select(above < kFar, above, kFar));
  }
  Side side(Value region, int d) {
    const Value start = rounded(corner(region, 1 - d)), end = rounded(corner(region, 3 - d));
    const Value length = ir::maximum(end - start + (takes_largest_ ? 1 : 0), b_.i64(1));
    return {start, cast(type_, length) / cast(type_, bins_[d])};
  }
  Place place(Value region) { return {{side(region, 0), side(region, 1)}}; }

  // Of a bin, within [0, limit].
  Range range(const Side& side, Value bin, Value limit) {
    const auto edge = [&](Value from) {
      const Value at = cast(Type::kI64, from) + side.start;
      return ir::minimum(ir::maximum(at, b_.i64(0)), limit);
    };
    return {edge(floor(cast(type_, bin) * side.bin)), edge(ceil(cast(type_, bin + 1) * side.bin))};
  }

  template <class Body>
  void over(const Range& rows, const Range& columns, Body body) {
    b_.loop(rows.begin, rows.end,
            [&](Value h) { b_.loop(columns.begin, columns.end, [&](Value w) { body(h, w); }); });
  }

  void largest(Value region, Value image, const Place& at, Value y, Value x) {
    const Range rows = range(at.sides[0], y, size_[0]), columns = range(at.sides[1], x, size_[1]);
    const Value empty = (rows.end <= rows.begin) | (columns.end <= columns.begin);
    const Value least = b_.constant(type_, -static_cast<double>(std::numeric_limits<float>::max()));
    const Lanes best = filled(type_, select(empty, 0, least));
    const Lanes where = filled(Type::kI32, b_.constant(Type::kI32, -1));
    const Value base = in_image(image, y, x);
    over(rows, columns, [&](Value h, Value w) {
      const Value from = base + in_plane(h, w), position = cast(Type::kI32, h * size_[1] + w);
      each_channel([&](Value i) {
        const Value value = cast(type_, from_.load(from + i * image_strides_[1]));
        const Value before = best.load(i), takes = value > before;
        best.store(i, select(takes, value, before));
        where.store(i, select(takes, position, where.load(i)));
      });
    });
    const Value to = in_bins(region, y, x), note = in_positions(region, y, x);
    each_channel([&](Value i) {
      to_.store(to + i * bin_strides_[1], best.load(i));
      positions_.store(note + i * bin_count(), where.load(i));
    });
  }

  void average(Value region, Value image, const Place& at, Value y, Value x) {
    const Range rows = range(at.sides[0], y, size_[0] - 1);
    const Range columns = range(at.sides[1], x, size_[1] - 1);
    const Lanes sums = filled(type_, zero());
    const Value base = in_image(image, y, x), step = image_step();
    over(rows, columns, [&](Value h, Value w) {
      const Value from = base + in_plane(h, w);
      each_channel(
          [&](Value i) { sums.store(i, sums.load(i) + cast(type_, from_.load(from + i * step))); });
    });
    const Value to = in_bins(region, y, x), divisor = area(rows, columns);
    each_channel([&](Value i) { to_.store(to + i * bin_strides_[1], sums.load(i) / divisor); });
  }

  // 1 for a bin without elements, whose sum is 0.
  Value area(const Range& rows, const Range& columns) {
    const Value height = rows.end - rows.begin, width = columns.end - columns.begin;
    return cast(type_, select((height > 0) & (width > 0), height * width, 1));
  }

  void add_largest(Value region) {
    const Value first = first_row_ * size_[1], end = end_row_ * size_[1];
    each_bin([&](Value y, Value x) {
      const Value from = in_bins(region, y, x), note = in_positions(region, y, x);
      const Value base = in_image(image_, y, x), step = image_step();
      each_channel([&](Value i) {
        const Value position = cast(Type::kI64, positions_.load(note + i * bin_count()));
        const Value inside = (position >= first) & (position < end);
        const Value safe = select(inside, position, first);
        const Value to = base + in_plane(safe / size_[1], safe % size_[1]) + i * step;
        const Value slope = cast(type_, from_.load(from + i * bin_strides_[1]));
        to_.store(to, to_.load(to) + select(inside, slope, 0));
      });
    });
  }

  void add_average(Value region) {
    const Place at = place(region);
    each_bin([&](Value y, Value x) {
      const Range rows = range(at.sides[0], y, size_[0]), columns = range(at.sides[1], x, size_[1]);
      const Value divisor = area(rows, columns), from = in_bins(region, y, x);
      const Value base = in_image(image_, y, x), step = image_step();
      const Range band{ir::maximum(rows.begin, first_row_), ir::minimum(rows.end, end_row_)};
      over(band, columns, [&](Value h, Value w) {
        const Value to = base + in_plane(h, w);
        each_channel([&](Value i) {
          const Value slope = cast(type_, from_.load(from + i * bin_strides_[1]));
          to_.store(to + i * step, to_.load(to + i * step) + slope / divisor);
        });
      });
    });
  }

  static constexpr double kFar = 1 << 30;

  const bool takes_largest_;
  Address to_, from_, positions_;
};

void launch(Stream& stream, const RegionKernel& kernel, const TensorView& images,
            const TensorView& bins, const TensorView* positions, const BinnedRegions& regions) {
  Arguments arguments;
  const int64_t grid = append_regions(arguments, stream, kernel, regions, images, bins, 16);
  kernel.backward ? arguments.update(images).read(bins) : arguments.write(bins).read(images);
  if (positions != nullptr) {
    kernel.backward ? arguments.read(*positions) : arguments.write(*positions);
  }
  launch_kernel(stream, kernel.key(), grid, arguments, [&] { return PoolWriter(kernel).write(); });
}

}  // namespace

void region_max(Stream& stream, const TensorView& bins, const TensorView& positions,
                const TensorView& images, const BinnedRegions& regions) {
  if (offer(stream, Operation::region_max, [&](VendorCall& to) {
        to.write(bins).write(positions).read(images).read(regions.boxes).numbers({regions.scale});
      }))
    return;
  require_region_dtype(kMax, images.dtype);
  if (bins.count() == 0) return;
  if (images.count() == 0) {
    fill(stream, positions, Scalar::of(int32_t{-1}));
    return fill(stream, bins, Scalar::of(0.0));
  }
  launch(stream, {kMax, images.dtype, false, false}, images, bins, &positions, regions);
}

void region_max_backward(Stream& stream, const TensorView& grad_images, const TensorView& grad_bins,
                         const TensorView& positions, const BinnedRegions& regions) {
  if (offer(stream, Operation::region_max_backward, [&](VendorCall& to) {
        to.write(grad_images).read(grad_bins).read(positions).read(regions.boxes);
        to.numbers({regions.scale});
      }))
    return;
  require_region_dtype(kMax, grad_images.dtype);
  if (grad_images.count() == 0) return;
  const RegionKernel kernel{kMax, grad_images.dtype, false, true};
  sum_into(stream, grad_images, kernel.wide(), [&](const TensorView& sums) {
    if (grad_bins.count() > 0) launch(stream, kernel, sums, grad_bins, &positions, regions);
  });
}

void region_average(Stream& stream, const TensorView& bins, const TensorView& images,
                    const BinnedRegions& regions) {
  if (offer(stream, Operation::region_average, [&](VendorCall& to) {
        to.write(bins).read(images).read(regions.boxes);
        to.integers({regions.positional}).numbers({regions.scale});
      }))
    return;
  require_region_dtype(kAverage, images.dtype);
  if (bins.count() == 0) return;
  if (images.count() == 0) return fill(stream, bins, Scalar::of(0.0));
  launch(stream, {kAverage, images.dtype, regions.positional, false}, images, bins, nullptr,
         regions);
}

void region_average_backward(Stream& stream, const TensorView& grad_images,
                             const TensorView& grad_bins, const BinnedRegions& regions) {
  if (offer(stream, Operation::region_average_backward, [&](VendorCall& to) {
        to.write(grad_images).read(grad_bins).read(regions.boxes);
        to.integers({regions.positional}).numbers({regions.scale});
      }))
    return;
  require_region_dtype(kAverage, grad_images.dtype);
  if (grad_images.count() == 0) return;
  const RegionKernel kernel{kAverage, grad_images.dtype, regions.positional, true};
  sum_into(stream, grad_images, kernel.wide(), [&](const TensorView& sums) {
    if (grad_bins.count() > 0) launch(stream, kernel, sums, grad_bins, nullptr, regions);
  });
}

}  // namespace graft

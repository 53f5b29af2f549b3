// src/kernels/resample/grid_taps.cpp: the kernel that turns positions of a grid into elements and
// weights.
#include "kernels/resample/grid_taps.h"

#include <fmt/format.h>

#include "codegen/ir/builder.h"
#include "kernels/launch/work_split.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

// A coordinate in elements, and how it changes with the grid's number.
struct Coordinate {
  Value at, slope;
};

struct Tap {
  Value position, weight, slope;
};

class Axis {
 public:
  // images: of two axes, else of three.
  Axis(const GridSampling& sampling, bool images, Value size)
      : sampling_(sampling), images_(images), size_(size) {}

  std::vector<Tap> taps(Value given) const {
    const Coordinate scaled = unnormalized(given);
    if (sampling_.mode == GridSampling::kCubic) return cubic(scaled);
    const Coordinate c = inside(scaled);
    if (sampling_.mode == GridSampling::kNearest) {
      return {tap(round(c.at), number(1), number(0))};
    }
    const Value low = floor(c.at), part = c.at - low;
    return {tap(low, 1 - part, -c.slope), tap(low + 1, part, c.slope)};
  }

 private:
  Value number(double value) const { return ir::like(size_, value); }
  Value largest() const { return size_ - 1; }

  Coordinate unnormalized(Value x) const {
    if (sampling_.align_corners) return {(x + 1) / 2 * largest(), largest() / 2};
    return {((x + 1) * size_ - 1) / 2, size_ / 2};
  }
  // Borders count as outside for the slope. NaN goes to the border that the CPU takes.
  Coordinate clipped(const Coordinate& c) const {
    const Value low = images_ ? !(c.at > 0) : c.at <= 0;
    const Value high = images_ ? c.at >= largest() : !(c.at < largest());
    const Value at = select(low, number(0), select(high, largest(), c.at));
    return {at, select(low | high, number(0), c.slope)};
  }
  Coordinate reflected(const Coordinate& c) const {
    const Value low = number(sampling_.align_corners ? 0 : -0.5);
    const Value span = sampling_.align_corners ? largest() : size_;
    const Value safe = select(span == 0, number(1), span);
    const Value moved = c.at - low, distance = abs(moved);
    const Value rest = fmod(distance, safe), flips = floor(distance / safe);
    const Value even = flips - floor(flips / 2) * 2 == 0;
    const Value at = select(even, rest, span - rest) + low;
    const Value turned = select(even == (moved < 0), -c.slope, c.slope);
    return {select(span == 0, number(0), at), select(span == 0, number(0), turned)};
  }
  Coordinate inside(const Coordinate& c) const {
    if (sampling_.padding == GridSampling::kZeros) return c;
    return clipped(sampling_.padding == GridSampling::kBorder ? c : reflected(c));
  }
  // Of a whole coordinate; position -1 and weight 0 for one outside or that is no number. In images
  // NaN stay in the weights, as on the CPU.
  Tap tap(Value whole, Value weight, Value slope) const {
    const Value fits = (whole >= 0) & (whole <= largest());
    const Value position = cast(ir::Type::kI32, select(fits, whole, number(-1)));
    const auto beyond = [&](Value number) { return images_ ? number * 0 : like(number, 0); };
    return {position, select(fits, weight, beyond(weight)), select(fits, slope, beyond(slope))};
  }

  std::vector<Tap> cubic(const Coordinate& c) const {
    const double a = -0.75;
    const Value low = floor(c.at), t = c.at - low;
    const auto near = [&](Value x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
    const auto far = [&](Value x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
    const Value weights[] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
    const Value x0 = -1 - t, x1 = -t, x2 = 1 - t, x3 = 2 - t;
    const Value slopes[] = {
        (-3 * a * x0 - 10 * a) * x0 - 8 * a, (-3 * (a + 2) * x1 - 2 * (a + 3)) * x1,
        (3 * (a + 2) * x2 - 2 * (a + 3)) * x2, (3 * a * x3 - 10 * a) * x3 + 8 * a};
    std::vector<Tap> result;
    for (int k = 0; k < 4; ++k) {
      const Value at = inside({low + (k - 1), c.slope}).at;
      result.push_back(tap(trunc(at), weights[k], slopes[k] * -c.slope));
    }
    return result;
  }

  const GridSampling& sampling_;
  const bool images_;
  Value size_;
};

}  // namespace

std::string GridTaps::key() const {
  static const char* const kModes[] = {"linear", "nearest", "cubic"};
  static const char* const kPaddings[] = {"zeros", "border", "reflection"};
  return fmt::format("grid_taps_{}_{}{}_{}_{}", kModes[sampling.mode], kPaddings[sampling.padding],
                     sampling.align_corners ? "_aligned" : "", axes, name_of(dtype));
}

ir::Kernel GridTaps::build() const {
  Builder b(key());
  const ir::Type type = ir::compute_type(wide());
  const Address positions = b.write(GRAFT_INT32), weights = b.write(wide());
  const Address slopes = b.write(wide()), grid = b.read(dtype);
  const Value lines = b.index(), per_item = b.index(), points = b.index(), blocks = b.index();
  std::vector<Value> sizes;
  for (int a = 0; a < axes; ++a) sizes.push_back(cast(type, b.index()));
  each_line(b, lines, per_item, [&](Value line) {
    const Value n = line / blocks, first = line % blocks * kBlock;
    const Value end = ir::minimum(first + kBlock, points);
    for (int a = 0; a < axes; ++a) {
      const Axis axis(sampling, axes == 2, sizes[static_cast<size_t>(a)]);
      const Value table = (n * axes + a) * taps();
      b.vector_loop(first, end, [&](Value p) {
        const Value given = cast(type, grid.load((n * points + p) * axes + a));
        const std::vector<Tap> found = axis.taps(given);
        for (size_t k = 0; k < found.size(); ++k) {
          const Value at = (table + static_cast<int64_t>(k)) * points + p;
          positions.store(at, found[k].position);
          weights.store(at, found[k].weight);
          slopes.store(at, found[k].slope);
        }
      });
    }
  });
  return b.finish();
}

}  // namespace graft

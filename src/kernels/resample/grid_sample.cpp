// src/kernels/resample/grid_sample.cpp: images and volumes sampled at positions that a grid gives.
#include "kernels/resample/grid_sample.h"

#include <fmt/format.h>

#include <functional>

#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/launch/workspace.h"
#include "kernels/move/fill.h"
#include "kernels/move/staging.h"
#include "kernels/operation/offer.h"
#include "kernels/resample/grid_taps.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

// What the tables of GridTaps are used for. Images have their own strides, x last.
struct SampleKernel {
  enum Kind {
    kForward,    // output; image, tables. A line: an image, a block of points
    kGridSlope,  // grad_grid; grad_output, image, tables. As kForward
    kInput,      // grad_input; grad_output, tables. A line: a channel of an image
  } kind;
  int axes, taps;
  graft_dtype dtype, wide;  // kInput adds to wide

  std::string key() const {
    static const char* const kKinds[] = {"forward", "slope", "input"};
    return fmt::format("grid_sample_{}_{}_{}_{}", kKinds[kind], axes, taps, name_of(dtype));
  }
};

class SampleWriter {
 public:
  explicit SampleWriter(const SampleKernel& kernel)
      : k_(kernel), b_(kernel.key()), type_(ir::compute_type(kernel.wide)) {
    to_ = k_.kind == SampleKernel::kInput ? b_.update(k_.wide) : b_.write(k_.dtype);
    if (k_.kind != SampleKernel::kForward) gradient_ = b_.read(k_.dtype);
    if (k_.kind != SampleKernel::kInput) image_ = b_.read(k_.dtype);
    positions_ = b_.read(GRAFT_INT32);
    weights_ = b_.read(k_.wide);
    slopes_ = b_.read(k_.wide);
    for (Value* value :
         {&lines_, &per_item_, &points_, &blocks_, &channels_, &of_image_, &of_channel_}) {
      *value = b_.index();
    }
    for (int a = 0; a < k_.axes; ++a) pitch_.push_back(b_.index());
  }

  ir::Kernel write() {
    each_line(b_, lines_, per_item_, [&](Value line) {
      if (k_.kind == SampleKernel::kInput) return add_to_input(line);
      const Value n = line / blocks_, first = line % blocks_ * GridTaps::kBlock;
      const Value count = ir::minimum(points_ - first, b_.i64(GridTaps::kBlock));
      k_.kind == SampleKernel::kForward ? sample(n, first, count) : slope(n, first, count);
    });
    return b_.finish();
  }

 private:
  // A combination of one tap of each axis: where it lies, and its weights.
  struct Corner {
    Value offset, inside;
    std::vector<Value> weights, slopes;
  };

  // body(corner) for every combination of the taps of point p.
  void corners(Value n, Value p, bool with_slopes, const std::function<void(const Corner&)>& body) {
    std::vector<std::vector<Value>> at, weight, slope;
    for (int a = 0; a < k_.axes; ++a) {
      at.emplace_back(), weight.emplace_back(), slope.emplace_back();
      for (int t = 0; t < k_.taps; ++t) {
        const Value cell = ((n * k_.axes + a) * k_.taps + t) * points_ + p;
        at.back().push_back(positions_.load(cell));
        weight.back().push_back(weights_.load(cell));
        if (with_slopes) slope.back().push_back(slopes_.load(cell));
      }
    }
    int total = 1;
    for (int a = 0; a < k_.axes; ++a) total *= k_.taps;
    for (int i = 0; i < total; ++i) {
      Corner corner{b_.i64(0), b_.boolean(true), {}, {}};
      int rest = i;
      for (size_t a = 0; a < at.size(); ++a) {
        const size_t t = static_cast<size_t>(rest % k_.taps);
        rest /= k_.taps;
        const Value safe = ir::maximum(at[a][t], b_.constant(ir::Type::kI32, 0));
        corner.offset = corner.offset + cast(ir::Type::kI64, safe) * pitch_[a];
        corner.inside = corner.inside & (at[a][t] >= 0);
        corner.weights.push_back(weight[a][t]);
        if (with_slopes) corner.slopes.push_back(slope[a][t]);
      }
      body(corner);
    }
  }

  Value product(const Corner& corner, size_t slope_of) {
    Value result = b_.constant(type_, 1);
    for (size_t a = 0; a < corner.weights.size(); ++a) {
      result = result * (a == slope_of ? corner.slopes[a] : corner.weights[a]);
    }
    return result;
  }
  static constexpr size_t kNoSlope = 99;

  Value element(const Corner& corner, Value base) {
    const Value x = cast(type_, image_.load(base + corner.offset));
    return select(corner.inside, x, b_.constant(type_, 0));
  }

  void sample(Value n, Value first, Value count) {
    b_.loop(b_.i64(0), channels_, [&](Value c) {
      const Value base = n * of_image_ + c * of_channel_;
      const Value to = (n * channels_ + c) * points_ + first;
      b_.vector_loop(b_.i64(0), count, [&](Value i) {
        Value sum = b_.constant(type_, 0);
        corners(n, first + i, false, [&](const Corner& corner) {
          sum = sum + element(corner, base) * product(corner, kNoSlope);
        });
        to_.store(to + i, sum);
      });
    });
  }

  void slope(Value n, Value first, Value count) {
    std::vector<Lanes> sums;
    for (int a = 0; a < k_.axes; ++a) {
      sums.emplace_back(b_, type_, static_cast<uint32_t>(GridTaps::kBlock));
      b_.vector_loop(b_.i64(0), b_.i64(GridTaps::kBlock),
                     [&](Value i) { sums.back().store(i, b_.constant(type_, 0)); });
    }
    b_.loop(b_.i64(0), channels_, [&](Value c) {
      const Value base = n * of_image_ + c * of_channel_;
      const Value from = (n * channels_ + c) * points_ + first;
      b_.vector_loop(b_.i64(0), count, [&](Value i) {
        const Value g = cast(type_, gradient_.load(from + i));
        std::vector<Value> totals(sums.size(), b_.constant(type_, 0));
        corners(n, first + i, true, [&](const Corner& corner) {
          const Value x = element(corner, base);
          for (size_t a = 0; a < totals.size(); ++a) {
            totals[a] = totals[a] + x * product(corner, a);
          }
        });
        for (size_t a = 0; a < totals.size(); ++a) {
          sums[a].store(i, sums[a].load(i) + g * totals[a]);
        }
      });
    });
    const Value to = (n * points_ + first) * k_.axes;
    b_.vector_loop(b_.i64(0), count, [&](Value i) {
      for (size_t a = 0; a < sums.size(); ++a) {
        to_.store(to + i * k_.axes + static_cast<int64_t>(a), sums[a].load(i));
      }
    });
  }

  void add_to_input(Value line) {
    const Value n = line / channels_, c = line % channels_;
    const Value base = n * of_image_ + c * of_channel_;
    b_.loop(b_.i64(0), points_, [&](Value p) {
      const Value g = cast(type_, gradient_.load(line * points_ + p));
      corners(n, p, false, [&](const Corner& corner) {
        b_.if_(corner.inside, [&] {
          const Value at = base + corner.offset;
          to_.store(at, to_.load(at) + g * product(corner, kNoSlope));
        });
      });
    });
  }

  const SampleKernel k_;
  Builder b_;
  const ir::Type type_;
  Address to_, gradient_, image_, positions_, weights_, slopes_;
  Value lines_, per_item_, points_, blocks_, channels_, of_image_, of_channel_;
  std::vector<Value> pitch_;
};

// The tables of one grid, and launches that read them.
class Sampler {
 public:
  Sampler(Stream& stream, const TensorView& image, const TensorView& grid,
          const GridSampling& sampling)
      : stream_(stream),
        taps_{sampling, image.rank - 2, image.dtype},
        points_(grid.sizes[1]),
        cells_(static_cast<uint64_t>(image.sizes[0] * taps_.axes * taps_.taps() * points_)),
        positions_(stream, cells_ * sizeof(int32_t)),
        weights_(stream, cells_ * size_of(taps_.wide())),
        slopes_(stream, cells_ * size_of(taps_.wide())) {
    blocks_ = (points_ + GridTaps::kBlock - 1) / GridTaps::kBlock;
    Arguments arguments;
    tables(arguments, GRAFT_ACCESS_WRITE);
    arguments.read(grid);
    const WorkSplit split = split_work(image.sizes[0] * blocks_, 32 * GridTaps::kBlock);
    arguments.index(split.lines).index(split.per_item).index(points_).index(blocks_);
    for (int a = 0; a < taps_.axes; ++a) arguments.index(image.sizes[image.rank - 1 - a]);
    launch_kernel(stream_, taps_, split.grid, arguments);
  }

  // arguments hold what comes before the tables; image says sizes and strides.
  void launch(SampleKernel::Kind kind, Arguments& arguments, const TensorView& image) {
    const SampleKernel kernel{kind, taps_.axes, taps_.taps(), taps_.dtype, taps_.wide()};
    tables(arguments, GRAFT_ACCESS_READ);
    const bool input = kind == SampleKernel::kInput;
    const int64_t channels = image.sizes[1];
    const WorkSplit split = split_work(image.sizes[0] * (input ? channels : blocks_),
                                       8 * (input ? points_ : GridTaps::kBlock * channels));
    arguments.index(split.lines).index(split.per_item).index(points_).index(blocks_);
    arguments.index(channels).index(image.strides[0]).index(image.strides[1]);
    for (int a = 0; a < taps_.axes; ++a) arguments.index(image.strides[image.rank - 1 - a]);
    launch_kernel(stream_, kernel.key(), split.grid, arguments,
                  [&] { return SampleWriter(kernel).write(); });
  }
  graft_dtype wide() const { return taps_.wide(); }

 private:
  void tables(Arguments& arguments, uint32_t access) {
    arguments.address(positions_.address(), cells_ * sizeof(int32_t), access);
    arguments.address(weights_.address(), cells_ * size_of(wide()), access);
    arguments.address(slopes_.address(), cells_ * size_of(wide()), access);
  }

  Stream& stream_;
  const GridTaps taps_;
  const int64_t points_;
  const uint64_t cells_;
  const Workspace positions_, weights_, slopes_;
  int64_t blocks_ = 0;
};

void check(const TensorView& input) {
  if ((input.rank != 4 && input.rank != 5) || !is_floating(input.dtype)) {
    throw Error(GRAFT_INVALID_ARGUMENT, "grid_sample: expected floating images or volumes, got " +
                                            std::string(name_of(input.dtype)) + " of rank " +
                                            std::to_string(input.rank));
  }
}

}  // namespace

void grid_sample(Stream& stream, const TensorView& output, const TensorView& input,
                 const TensorView& grid, const GridSampling& sampling) {
  if (offer(stream, Operation::grid_sample, writes(output), reads(input, grid),
            integers(sampling.mode, sampling.padding, sampling.align_corners)))
    return;
  check(input);
  if (output.count() == 0) return;
  Sampler sampler(stream, input, grid, sampling);
  Arguments arguments;
  arguments.write(output).read(input);
  sampler.launch(SampleKernel::kForward, arguments, input);
}

void grid_sample_backward(Stream& stream, const TensorView* grad_input, const TensorView* grad_grid,
                          const TensorView& grad_output, const TensorView& input,
                          const TensorView& grid, const GridSampling& sampling) {
  if (offer(stream, Operation::grid_sample_backward, writes(grad_input, grad_grid),
            reads(grad_output, input, grid),
            integers(sampling.mode, sampling.padding, sampling.align_corners)))
    return;
  check(input);
  if (grad_output.count() == 0) {
    for (const TensorView* gradient : {grad_input, grad_grid}) {
      if (gradient != nullptr) fill(stream, *gradient, Scalar::of(0.0));
    }
    return;
  }
  Sampler sampler(stream, input, grid, sampling);
  if (grad_grid != nullptr) {
    Arguments arguments;
    arguments.write(*grad_grid).read(grad_output).read(input);
    sampler.launch(SampleKernel::kGridSlope, arguments, input);
  }
  if (grad_input == nullptr) return;
  StagedOutput sums(stream, *grad_input, false, sampler.wide());
  fill(stream, sums.view(), Scalar::of(0.0));
  Arguments arguments;
  arguments.update(sums.view()).read(grad_output);
  sampler.launch(SampleKernel::kInput, arguments, sums.view());
  sums.finish();
}

}  // namespace graft

// src/kernels/tuning/tile_tuning.cpp: measures which tile shapes are fastest on a device.
#include "kernels/tuning/tile_tuning.h"

#include <algorithm>
#include <chrono>

#include "kernels/convolution/tiled_convolution.h"
#include "kernels/matmul/tiled_matmul.h"
#include "kernels/matmul/vendor_tiles.h"
#include "kernels/move/fill.h"
#include "kernels/move/staging.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

constexpr int kRuns = 5;
constexpr double kLongEnough = 0.25;  // seconds of all runs of a shape

// A contiguous float32 tensor of ones.
class Ones : public ScratchTensor {
 public:
  Ones(Stream& stream, std::initializer_list<int64_t> sizes)
      : ScratchTensor(stream, GRAFT_FLOAT32, sizes) {
    fill(stream, view(), Scalar::of(1.0));
  }
};

// A product that stands for a row: m x n sums of k terms.
struct Problem {
  TileUse use;
  int64_t m, n, k;
  std::function<void(const TileShape& shape)> run;

  std::string row() const { return tile_row(use, 4, m, n); }
  double operations() const { return 2.0 * static_cast<double>(m * n * k); }
};

void measure_product(Stream& stream, int64_t side,
                     const std::function<void(const Problem&)>& visit) {
  const Ones a(stream, {side, side}), b(stream, {side, side}), c(stream, {side, side});
  visit({TileUse::kMatmul, side, side, side, [&](const TileShape& shape) {
           tiled_matmul(stream, c.view(), a.view(), b.view(), {}, shape);
         }});
}

void measure_convolution(Stream& stream, int64_t images, int64_t side,
                         const std::function<void(const Problem&)>& visit) {
  const int64_t channels = 64;
  const Ones input(stream, {images, channels, side, side}),
      weight(stream, {channels, channels, 3, 3});
  const Ones output(stream, {images, channels, side, side});
  ConvolutionParameters padded;
  padded.padding[0] = padded.padding[1] = 1;
  visit({TileUse::kConvolution, channels, images * side * side, channels * 9,
         [&](const TileShape& shape) {
           tiled_convolution(stream, GRAFT_CONVOLUTION_FORWARD,
                             {input.view(), weight.view(), output.view()}, nullptr, padded, shape);
         }});
}

double seconds_of(Stream& stream, const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  stream.synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// 0 for a shape that the device's compiler or the device itself refuses.
double gflops_of(Stream& stream, const Problem& problem, const TileShape& shape) {
  const auto once = [&] { return seconds_of(stream, [&] { problem.run(shape); }); };
  try {
    once();  // compiles
    double least = once(), total = least;
    for (int i = 1; i < kRuns && total < kLongEnough; ++i) {
      const double seconds = once();
      least = std::min(least, seconds);
      total += seconds;
    }
    return problem.operations() / std::max(least, 1e-9) / 1e9;
  } catch (const Error&) {
    stream.device().refuse_unusable();
    return 0;
  }
}

}  // namespace

std::vector<TileMeasurement> tune_tiles(Stream& stream, size_t candidates,
                                        const TuningProgress& progress) {
  OpenDevice& device = stream.device();
  if (candidates == 0) {
    throw Error(GRAFT_INVALID_ARGUMENT, "tune: candidates must be at least 1, got 0");
  }
  std::vector<TileShape> shapes;
  if (device.properties().device_class == GRAFT_GPU_LIKE) {
    shapes = candidate_tiles(device.properties(), 4);
  }
  if (shapes.empty()) {
    throw Error(GRAFT_UNSUPPORTED,
                "tune: " + device.label() +
                    " has no tiles to tune: only GPUs with local memory have tiles");
  }
  shapes.resize(std::min(shapes.size(), candidates));
  std::vector<TileMeasurement> made;
  TunedTiles best;
  const size_t all = shapes.size() * 4;
  const auto visit = [&](const Problem& problem) {
    double most = 0;
    for (const TileShape& shape : shapes) {
      const TileShape fitted = shrink_tile(shape, problem.m, problem.n);
      made.push_back({problem.row(), shape, gflops_of(stream, problem, fitted)});
      if (made.back().gflops > most) most = made.back().gflops, best[problem.row()] = shape;
      if (progress) progress(made.size(), all, made.back());
    }
  };
  measure_product(stream, 256, visit);
  measure_product(stream, 1024, visit);
  measure_convolution(stream, 1, 28, visit);
  measure_convolution(stream, 8, 56, visit);
  if (!best.empty()) keep_tuning(device, best);
  return made;
}

}  // namespace graft

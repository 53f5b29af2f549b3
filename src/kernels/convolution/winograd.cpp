// src/kernels/convolution/winograd.cpp: convolutions of 3 x 3 with fewer products, after Winograd.
#include "kernels/convolution/winograd.h"

#include <algorithm>
#include <utility>

#include "kernels/convolution/channel_views.h"
#include "kernels/convolution/winograd_kernels.h"
#include "kernels/convolution/winograd_tile.h"
#include "kernels/launch/workspace.h"
#include "kernels/matmul/blocked_matmul.h"
#include "kernels/matmul/kernel.h"
#include "kernels/move/staging.h"
#include "kernels/tensor/axes.h"
#include "kernels/tensor/image_views.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

constexpr uint64_t kBytes = uint64_t{8} << 20;  // of transformed elements at once, if images allow

// From which sizes on a tile is faster than the products of patches, measured on CPU-like devices:
// the weights' transform is shared by all tiles of a result, the elements' one by all outs. Tiles
// of 4 lose more digits than a float32 result has to spare.
struct Rule {
  bool half;  // of the half types, or of float32
  int results;
  int64_t channels, tiles;
};
constexpr Rule kRules[] = {
    {true, 4, 64, 128},
    {true, 2, 64, 48},
    {false, 2, 64, 48},
};

// The plain convolution that is computed: of the gradient of the input, one of the output's
// gradient with the weight turned about.
struct Plain {
  TensorView input, weight, output;
  int64_t padding[2];

  Plain(graft_convolution_kind kind, const ConvolutionViews& views,
        const ConvolutionParameters& parameters)
      : input(views.input), weight(views.weight), output(views.output) {
    std::copy(parameters.padding, parameters.padding + 2, padding);
    if (kind == GRAFT_CONVOLUTION_FORWARD) return;
    std::swap(input, output);
    weight = turned_about(weight);
    for (int64_t& each : padding) each = 2 - each;
  }
};

TensorView batch(const TensorView& like, graft_address address, int64_t count, int64_t rows,
                 int64_t columns) {
  TensorView result = matrices(like, count, rows, columns);
  result.dtype = GRAFT_FLOAT32, result.address = address;
  make_contiguous(result);
  return result;
}

// Rows of the left factor's panels and columns of the right one's; 0: as matrices lie.
struct Widths {
  int64_t rows = 0, columns = 0;
};

void multiply(Stream& stream, const TensorView& sums, const WinogradPanels& weights,
              const WinogradPanels& elements, const Widths& widths) {
  const int64_t count = sums.sizes[0];
  if (widths.rows > 0) {
    const auto factor = [&](const WinogradPanels& panels) {
      return PackedFactor{panels.address, panels.bytes(static_cast<int>(count)), panels.each(),
                          panels.depth};
    };
    return blocked_matmul(stream, sums, factor(weights), factor(elements), {});
  }
  generated_matmul(stream, sums, batch(sums, weights.address, count, weights.lines, weights.depth),
                   batch(sums, elements.address, count, elements.depth, elements.lines), {});
}

bool is_small(const TensorView& view) {
  return extent_bytes(view) / size_of(view.dtype) < (uint64_t{1} << 30);
}

bool takes(graft_convolution_kind kind, const ConvolutionViews& views, const TensorView* bias,
           const ConvolutionParameters& parameters) {
  const graft_dtype dtype = views.output.dtype;
  if (kind == GRAFT_CONVOLUTION_BACKWARD_WEIGHT || parameters.groups != 1) return false;
  if (dtype != GRAFT_FLOAT32 && !is_half(dtype)) return false;
  if (views.input.dtype != dtype || views.weight.dtype != dtype) return false;
  if (bias != nullptr && bias->dtype != dtype) return false;
  if (views.input.rank != 4 || views.weight.sizes[2] != 3 || views.weight.sizes[3] != 3) {
    return false;
  }
  for (int d = 0; d < 2; ++d) {
    if (parameters.stride[d] != 1 || parameters.dilation[d] != 1) return false;
  }
  return views.input.count() > 0 && views.output.count() > 0 && views.weight.count() > 0 &&
         is_small(views.input) && is_small(views.weight) && is_small(views.output);
}

}  // namespace

int winograd_results(const OpenDevice& device, graft_convolution_kind kind,
                     const ConvolutionViews& views, const TensorView* bias,
                     const ConvolutionParameters& parameters) {
  if (!takes(kind, views, bias, parameters)) return 0;
  const TensorView& output = kind == GRAFT_CONVOLUTION_FORWARD ? views.output : views.input;
  const int64_t channels = std::min(views.weight.sizes[0], views.weight.sizes[1]);
  for (const Rule& rule : kRules) {
    const int64_t m = rule.results;
    const int64_t tiles =
        output.sizes[0] * ((output.sizes[2] + m - 1) / m) * ((output.sizes[3] + m - 1) / m);
    if (is_half(output.dtype) != rule.half || channels < rule.channels || tiles < rule.tiles) {
      continue;
    }
    const bool products =
        fits_blocks(device, batch(output, 0, 1, channels, tiles),
                    batch(output, 0, 1, channels, channels), batch(output, 0, 1, channels, tiles));
    return products ? rule.results : 0;
  }
  return 0;
}

void winograd_convolution(Stream& stream, graft_convolution_kind kind,
                          const ConvolutionViews& views, const TensorView* bias,
                          const ConvolutionParameters& parameters, int results) {
  const Plain plain(kind, views, parameters);
  const int products = winograd_tile(results).products();
  const int64_t outs = plain.weight.sizes[0], channels = plain.weight.sizes[1];
  WinogradGrid grid{results,
                    (plain.output.sizes[2] + results - 1) / results,
                    (plain.output.sizes[3] + results - 1) / results,
                    {plain.padding[0], plain.padding[1]}};
  const int64_t tiles = grid.down * grid.across, count = plain.output.sizes[0];
  Widths widths;
  if (runs_blocks(stream.device())) {
    widths = {panel_rows(stream.device(), outs), panel_columns(stream.device())};
  }
  WinogradPanels weights{0, outs, channels, std::max<int64_t>(1, widths.rows)};
  const Workspace weight_space(stream, weights.bytes(products));
  weights.address = weight_space.address();
  const StagedInput turned(stream, plain.weight, kind != GRAFT_CONVOLUTION_FORWARD);
  winograd_weights(stream, weights, turned.view(), results, weights.width);

  const auto panels = [&](int64_t together) {
    const int64_t lines = tiles * together;
    return WinogradPanels{0, lines, channels, widths.columns > 0 ? widths.columns : lines};
  };
  const uint64_t one = std::max<uint64_t>(1, panels(1).bytes(products));
  const auto together =
      static_cast<int64_t>(std::clamp<uint64_t>(kBytes / one, 1, uint64_t(count)));
  const Workspace element_space(stream, panels(together).bytes(products));
  const Workspace sum_space(
      stream, static_cast<uint64_t>(products * outs * tiles * together) * sizeof(float));
  for (int64_t first = 0; first < count; first += together) {
    const int64_t taken = std::min(together, count - first);
    WinogradPanels elements = panels(taken);
    elements.address = element_space.address();
    winograd_elements(stream, elements, part(plain.input, 0, first, taken), grid,
                      std::max<int64_t>(1, widths.columns));
    const TensorView sums = batch(plain.output, sum_space.address(), products, outs, tiles * taken);
    multiply(stream, sums, weights, elements, widths);
    winograd_sums(stream, part(plain.output, 0, first, taken), sums, bias, grid);
  }
}

}  // namespace graft

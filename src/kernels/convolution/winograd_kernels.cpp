// src/kernels/convolution/winograd_kernels.cpp: the three transforms of Winograd's convolutions.
#include "kernels/convolution/winograd_kernels.h"

#include <string>

#include "kernels/convolution/winograd_tile.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

constexpr int64_t kDepths = 16;           // of a panel that one item transforms
constexpr int64_t kTiles = 16;            // whose sums one item takes together
constexpr int32_t kOutside = -(1 << 30);  // a place that no element of a tile brings back
constexpr int64_t kElementsPerValue = 4;  // what a transformed value costs beside a plain one

std::string key_of(const char* name, int results, int64_t lanes, graft_dtype dtype) {
  return std::string(name) + std::to_string(results) + "_" + std::to_string(lanes) + "_" +
         name_of(dtype);
}

// Blocks of lanes lines by kDepths: what the weights' and the elements' transforms share.
class PanelWriter {
 public:
  PanelWriter(const std::string& key, int results, int64_t lanes, graft_dtype dtype)
      : tile_(winograd_tile(results)),
        lanes_(lanes),
        b_(key),
        to_(b_.write(GRAFT_FLOAT32)),
        from_(b_.read(dtype)) {
    b_.indices({&blocks_, &per_item_, &lines_, &depth_, &width_, &each_});
    for (Value& stride : strides_) stride = b_.index32();
  }

 protected:
  Value narrow(Value value) { return cast(Type::kI32, value); }

  // body(first line, first depth, last depth) of the blocks of this item.
  template <class Body>
  void each_block(Body body) {
    each_line(b_, blocks_, per_item_, [&](Value block) {
      const Value across = (lines_ + (lanes_ - 1)) / lanes_, first = block / across * kDepths;
      body(block % across * lanes_, first, ir::minimum(depth_, first + kDepths));
    });
  }
  Value target(Value line, Value depth) {
    return (line / width_ * depth_ + depth) * width_ + line % width_;
  }
  void store(Value at, const Values& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      to_.store(each_ * static_cast<int64_t>(i) + at, values[i]);
    }
  }

  const WinogradTile& tile_;
  const int64_t lanes_;
  Builder b_;
  Address to_, from_;
  Value blocks_, per_item_, lines_, depth_, width_, each_;
  Value strides_[4];
};

class WeightWriter : PanelWriter {
 public:
  using PanelWriter::PanelWriter;

  ir::Kernel write() {
    each_block([&](Value line, Value first, Value last) {
      b_.loop(first, last, [&](Value c) {
        const Value at = target(line, c), channel = narrow(c) * strides_[1];
        b_.vector_loop(b_.i64(0), b_.i64(lanes_), [&](Value i) {
          const Value out = line + i, beyond = out >= lines_;
          const Value base = narrow(select(beyond, 0, out)) * strides_[0] + channel;
          Values values;
          for (int tap = 0; tap < 9; ++tap) {
            const Value place = base + strides_[2] * (tap / 3) + strides_[3] * (tap % 3);
            values.push_back(select(beyond, 0, from_.load(place)));
          }
          store(at + i, both_sides(tile_.weights, values, 3));
        });
      });
    });
    return b_.finish();
  }
};

class ElementWriter : PanelWriter {
 public:
  ElementWriter(const std::string& key, int results, int64_t lanes, graft_dtype dtype)
      : PanelWriter(key, results, lanes, dtype) {
    b_.indices({&down_, &across_});
    for (Value* pair : {input_, padding_}) {
      for (int d = 0; d < 2; ++d) pair[d] = b_.index32();
    }
  }

  ir::Kernel write() {
    each_block([&](Value line, Value first, Value last) { transform(line, first, last); });
    return b_.finish();
  }

 private:
  void transform(Value line, Value first, Value last) {
    const auto lanes = static_cast<uint32_t>(lanes_);
    const Lanes base(b_, Type::kI32, lanes), y(b_, Type::kI32, lanes), x(b_, Type::kI32, lanes);
    b_.loop(b_.i64(0), b_.i64(lanes_), [&](Value i) {
      const Value at = line + i, beyond = at >= lines_, row = at / across_;
      const Value top = narrow(row % down_) * tile_.results - padding_[0];
      const Value left = narrow(at % across_) * tile_.results - padding_[1];
      const Value image = narrow(row / down_) * strides_[0];
      base.store(i, select(beyond, 0, image + top * strides_[2] + left * strides_[3]));
      y.store(i, select(beyond, kOutside, top));
      x.store(i, left);
    });
    b_.loop(first, last, [&](Value c) {
      const Value to = target(line, c), channel = narrow(c) * strides_[1];
      b_.vector_loop(b_.i64(0), b_.i64(lanes_), [&](Value i) {
        const Values values = elements(base.load(i) + channel, y.load(i), x.load(i));
        store(to + i, both_sides(tile_.elements, values, tile_.side()));
      });
    });
  }

  Values elements(Value base, Value y, Value x) {
    const int side = tile_.side();
    Values rows, columns, result;
    for (int k = 0; k < side; ++k) {
      rows.push_back((y + k >= 0) & (y + k < input_[0]));
      columns.push_back((x + k >= 0) & (x + k < input_[1]));
    }
    for (int r = 0; r < side; ++r) {
      for (int q = 0; q < side; ++q) {
        const Value inside = rows[static_cast<size_t>(r)] & columns[static_cast<size_t>(q)];
        const Value place = base + strides_[2] * r + strides_[3] * q;
        result.push_back(select(inside, from_.load(select(inside, place, 0)), 0));
      }
    }
    return result;
  }

  Value down_, across_, input_[2], padding_[2];
};

class SumWriter {
 public:
  SumWriter(const std::string& key, int results, graft_dtype dtype, bool biased)
      : tile_(winograd_tile(results)),
        b_(key),
        to_(b_.write(dtype)),
        from_(b_.read(GRAFT_FLOAT32)),
        bias_(biased ? b_.read(dtype) : from_),
        biased_(biased) {
    b_.indices({&blocks_, &per_item_, &tiles_, &each_, &down_, &across_, &height_, &width_,
                &bias_stride_});
    for (Value& stride : strides_) stride = b_.index();
  }

  ir::Kernel write() {
    each_line(b_, blocks_, per_item_, [&](Value block) {
      const Value pieces = (tiles_ + (kTiles - 1)) / kTiles;
      const Value first = block % pieces * kTiles, out = block / pieces;
      sum(first, ir::minimum(tiles_ - first, b_.i64(kTiles)), out);
    });
    return b_.finish();
  }

 private:
  void sum(Value first, Value count, Value out) {
    const int m = tile_.results;
    const Lanes sums(b_, Type::kF32, static_cast<uint32_t>(m * m * kTiles));
    const Value added = biased_ ? bias_.load(out * bias_stride_) : b_.f32(0);
    const Value from = out * tiles_ + first;
    b_.vector_loop(b_.i64(0), count, [&](Value i) {
      Values values;
      for (int k = 0; k < tile_.products(); ++k) values.push_back(from_.load(each_ * k + from + i));
      const Values results = both_sides(tile_.sums, values, tile_.side());
      for (int k = 0; k < m * m; ++k) {
        sums.store(i + k * kTiles, results[static_cast<size_t>(k)] + added);
      }
    });
    b_.loop(b_.i64(0), count, [&](Value i) {
      const Value tile = first + i, row = tile / across_;
      const Value y = row % down_ * m, x = tile % across_ * m;
      const Value to =
          row / down_ * strides_[0] + out * strides_[1] + y * strides_[2] + x * strides_[3];
      b_.loop(b_.i64(0), ir::minimum(height_ - y, b_.i64(m)), [&](Value r) {
        b_.loop(b_.i64(0), ir::minimum(width_ - x, b_.i64(m)), [&](Value q) {
          to_.store(to + r * strides_[2] + q * strides_[3], sums.load((r * m + q) * kTiles + i));
        });
      });
    });
  }

  const WinogradTile& tile_;
  Builder b_;
  Address to_, from_, bias_;
  const bool biased_;
  Value blocks_, per_item_, tiles_, each_, down_, across_, height_, width_, bias_stride_;
  Value strides_[4];
};

WorkSplit append_panels(Arguments& arguments, const WinogradPanels& to, const TensorView& from,
                        int results, int64_t lanes) {
  const int products = winograd_tile(results).products();
  const int64_t blocks = (to.lines + lanes - 1) / lanes * ((to.depth + kDepths - 1) / kDepths);
  const WorkSplit split = split_work(blocks, lanes * kDepths * products * kElementsPerValue);
  arguments.address(to.address, to.bytes(products), GRAFT_ACCESS_WRITE).read(from);
  arguments.indices({split.lines, split.per_item, to.lines, to.depth, to.width, to.each()});
  for (int d = 0; d < 4; ++d) arguments.index(from.strides[d], true);
  return split;
}

}  // namespace

void winograd_weights(Stream& stream, const WinogradPanels& to, const TensorView& weight,
                      int results, int64_t lanes) {
  Arguments arguments;
  const WorkSplit split = append_panels(arguments, to, weight, results, lanes);
  const std::string key = key_of("winograd_weights_", results, lanes, weight.dtype);
  const auto make = [&] { return WeightWriter(key, results, lanes, weight.dtype).write(); };
  launch_kernel(stream, key, split.grid, arguments, make);
}

void winograd_elements(Stream& stream, const WinogradPanels& to, const TensorView& input,
                       const WinogradGrid& grid, int64_t lanes) {
  Arguments arguments;
  const WorkSplit split = append_panels(arguments, to, input, grid.results, lanes);
  arguments.index(grid.down).index(grid.across);
  arguments.indices({input.sizes[2], input.sizes[3], grid.padding[0], grid.padding[1]}, true);
  const std::string key = key_of("winograd_elements_", grid.results, lanes, input.dtype);
  const auto make = [&] { return ElementWriter(key, grid.results, lanes, input.dtype).write(); };
  launch_kernel(stream, key, split.grid, arguments, make);
}

void winograd_sums(Stream& stream, const TensorView& output, const TensorView& products,
                   const TensorView* bias, const WinogradGrid& grid) {
  const int64_t tiles = products.sizes[2], outs = products.sizes[1];
  const WorkSplit split = split_work(outs * ((tiles + kTiles - 1) / kTiles),
                                     kTiles * products.sizes[0] * kElementsPerValue);
  Arguments arguments;
  arguments.write(output).read(products);
  if (bias != nullptr) arguments.read(*bias);
  arguments.indices({split.lines, split.per_item, tiles, outs * tiles, grid.down, grid.across,
                     output.sizes[2], output.sizes[3], bias == nullptr ? 0 : bias->strides[0]});
  for (int d = 0; d < 4; ++d) arguments.index(output.strides[d]);
  const bool biased = bias != nullptr;
  const std::string key =
      key_of(biased ? "winograd_sums_bias_" : "winograd_sums_", grid.results, kTiles, output.dtype);
  const auto make = [&] { return SumWriter(key, grid.results, output.dtype, biased).write(); };
  launch_kernel(stream, key, split.grid, arguments, make);
}

}  // namespace graft

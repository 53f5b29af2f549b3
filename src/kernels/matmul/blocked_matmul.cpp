// src/kernels/matmul/blocked_matmul.cpp: the generated matrix product in registers, for CPU-like
// devices.
#include "kernels/matmul/blocked_matmul.h"

#include "kernels/launch/arguments.h"
#include "kernels/launch/lanes.h"
#include "kernels/launch/work_split.h"
#include "kernels/matmul/kernel.h"
#include "kernels/matmul/panels.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/open_device.h"

namespace graft {
namespace {

using namespace ir;

// The part of the result that a work-item holds: rows times two vectors.
struct Tile {
  int64_t rows;
  uint32_t lanes;
  int64_t columns() const { return 2 * int64_t{lanes}; }
};

constexpr uint32_t kMostLanes = 16;  // of the vectors of ir.h

// Sums, two vectors of b and one of a have to fit into 32 registers of 16 lanes, else into 16.
Tile choose_tile(uint32_t lanes, int64_t m) {
  const bool many = lanes >= kMostLanes;
  const int64_t choices[] = {many ? 8 : 6, many ? 6 : 5, 4};
  Tile best{4, many ? kMostLanes : lanes >= 8 ? 8u : 4u};
  int64_t least = INT64_MAX;
  for (const int64_t rows : choices) {
    const int64_t blocks = (m + rows - 1) / rows;
    const int64_t cost = blocks * (rows + 1);  // a row of products each, and the loads of b
    if (cost < least) best.rows = rows;
    least = std::min(least, cost);
  }
  return best;
}

class TileWriter {
 public:
  TileWriter(const std::string& key, const Tile& block, graft_dtype dtype, bool adds)
      : b_(key),
        block_(block),
        vector_(ir::vector_of(block.lanes)),
        output_(b_.write(dtype)),
        left_(b_.read(GRAFT_FLOAT32)),
        right_(b_.read(GRAFT_FLOAT32)),
        addend_(adds ? b_.read(dtype) : left_),
        adds_(adds) {
    b_.indices({&tiles_, &per_item_, &m_, &n_, &each_, &k_, &relu_, &left_batch_, &right_batch_});
    b_.indices({to_, from_}, 3);
    alpha_ = b_.scalar(GRAFT_FLOAT32);
    beta_ = b_.scalar(GRAFT_FLOAT32);
  }

  ir::Kernel write() {
    each_line(b_, tiles_, per_item_, [&](Value tile) { compute(tile); });
    return b_.finish();
  }

 private:
  // Neighbours share a panel of b, which stays in the second cache.
  void compute(Value tile) {
    const int64_t rows = block_.rows, columns = block_.columns();
    const Value down = (m_ + (rows - 1)) / rows, across = (n_ + (columns - 1)) / columns;
    const Value row = tile % down, rest = tile / down;
    const Value column = rest % across, batch = rest / across;
    const Value left = batch * left_batch_ + row * k_ * rows;
    const Value right = batch * right_batch_ + column * k_ * columns;
    const Lanes sums(b_, ir::Type::kF32, static_cast<uint32_t>(rows * columns));
    multiply(left, right, sums);
    const Value height = ir::minimum(m_ - row * rows, b_.i64(rows));
    const Value first = column * columns, last = ir::minimum(first + columns, n_);
    // The columns of each matrix of the batch that lies in the tile.
    b_.loop(first / each_, (last + each_ - 1) / each_, [&](Value i) {
      const Value begin = ir::maximum(first - i * each_, b_.i64(0));
      const Value end = ir::minimum(last - i * each_, each_);
      const Value from = i * each_ - first;
      b_.loop(b_.i64(0), height, [&](Value r) {
        store(sums, batch + i, row * rows + r, r * columns + from, begin, end);
      });
    });
  }

  void multiply(Value left, Value right, const Lanes& sums) {
    const int64_t rows = block_.rows, columns = block_.columns(), lanes = block_.lanes;
    const Value zero = splat(vector_, b_.f32(0));
    std::vector<Variable> held;
    for (int64_t i = 0; i < 2 * rows; ++i) held.emplace_back(zero);
    b_.loop(b_.i64(0), k_, [&](Value k) {
      const Value at = right + k * columns, from = left + k * rows;
      const Value first = right_.load_vector(vector_, at);
      const Value second = right_.load_vector(vector_, at + lanes);
      for (int64_t r = 0; r < rows; ++r) {
        const Value factor = splat(vector_, left_.load(from + r));
        const Variable *low = &held[static_cast<size_t>(2 * r)], *high = low + 1;
        *low = low->get() + factor * first;
        *high = high->get() + factor * second;
      }
    });
    for (int64_t i = 0; i < 2 * rows; ++i) {
      sums.store(b_.i64(i * lanes), held[static_cast<size_t>(i)].get());
    }
  }

  // Columns begin to end of a row, whose sums lie at place on.
  void store(const Lanes& sums, Value batch, Value row, Value place, Value begin, Value end) {
    const Value to = batch * to_[0] + row * to_[1];
    const Value from = batch * from_[0] + row * from_[1];
    b_.vector_loop(begin, end, [&](Value i) {
      Value value = sums.load(place + i) * alpha_;
      if (adds_) value = value + beta_ * addend_.load(from + i * from_[2]);
      const Value low = select(value < 0, 0, value);
      output_.store(to + i * to_[2], select(relu_ != 0, low, value));
    });
  }

  Builder b_;
  const Tile block_;
  const ir::Type vector_;
  Address output_, left_, right_, addend_;
  const bool adds_;
  Value tiles_, per_item_, m_, n_, each_, k_, relu_, left_batch_, right_batch_;
  Value to_[3], from_[3], alpha_, beta_;
};

}  // namespace

bool runs_blocks(const OpenDevice& device) {
  const graft_device_properties& properties = device.properties();
  if (properties.device_class != GRAFT_CPU_LIKE || properties.sub_group_size > kMostLanes) {
    return false;
  }
  return has_vectors(device);
}

bool fits_blocks(const OpenDevice& device, const TensorView& output, const TensorView& a,
                 const TensorView& b) {
  const graft_dtype dtype = output.dtype;
  const int last = output.rank - 1;
  const int64_t m = output.sizes[last - 1], n = output.sizes[last], k = a.sizes[last];
  if (dtype != GRAFT_FLOAT32 && !is_half(dtype)) return false;
  if (a.dtype != dtype || b.dtype != dtype) return false;
  if (m < 4 || n < 8 || k < 8 || m * n * k < 16384) return false;
  return runs_blocks(device);
}

int64_t panel_rows(const OpenDevice& device, int64_t m) {
  return choose_tile(device.properties().sub_group_size, m).rows;
}

int64_t panel_columns(const OpenDevice& device) {
  return choose_tile(device.properties().sub_group_size, 1).columns();
}

void blocked_matmul(Stream& stream, const TensorView& output, const TensorView& a,
                    const TensorView& b, const MatmulEpilogue& epilogue) {
  const Panels packed(stream, b, b.rank - 2, panel_columns(stream.device()));
  const PackedFactor right{packed.address(), packed.bytes(), packed.batch_stride(),
                           a.sizes[a.rank - 1]};
  blocked_matmul(stream, output, a, right, epilogue);
}

void blocked_matmul(Stream& stream, const TensorView& output, const TensorView& a,
                    const PackedFactor& right, const MatmulEpilogue& epilogue) {
  const int last = a.rank - 1;
  const Panels panels(stream, a, last, panel_rows(stream.device(), a.sizes[last - 1]));
  const PackedFactor left{panels.address(), panels.bytes(), panels.batch_stride(), a.sizes[last]};
  blocked_matmul(stream, output, left, right, epilogue);
}

void blocked_matmul(Stream& stream, const TensorView& output, const PackedFactor& left,
                    const PackedFactor& right, const MatmulEpilogue& epilogue) {
  const int last = output.rank - 1;
  const int64_t m = output.sizes[last - 1], each = output.sizes[last], k = right.k;
  const int64_t matrices = output.rank == 3 ? output.sizes[0] : 1;
  const int64_t batch = right.side_by_side ? 1 : matrices;
  const int64_t n = right.side_by_side ? matrices * each : each;
  const bool adds = epilogue.beta != 0.0;
  const Tile held = choose_tile(stream.device().properties().sub_group_size, m);
  const int64_t tiles =
      batch * ((m + held.rows - 1) / held.rows) * ((n + held.columns() - 1) / held.columns());
  const WorkSplit split = split_work(tiles, held.rows * k);
  Arguments arguments;
  arguments.write(output).address(left.address, left.bytes, GRAFT_ACCESS_READ);
  arguments.address(right.address, right.bytes, GRAFT_ACCESS_READ);
  if (adds) arguments.read(*epilogue.addend);
  arguments.indices({split.lines, split.per_item, m, n, each, k, epilogue.relu ? 1 : 0,
                     left.batch_stride, right.batch_stride});
  append_matrix_strides(arguments, {&output, adds ? epilogue.addend : &output});
  arguments.scalar(Scalar::of(static_cast<float>(epilogue.alpha)), sizeof(float));
  arguments.scalar(Scalar::of(static_cast<float>(epilogue.beta)), sizeof(float));
  const std::string key = std::string(adds ? "matmul_blocks_add_" : "matmul_blocks_") +
                          std::to_string(held.rows) + "_" + std::to_string(held.lanes) + "_" +
                          name_of(output.dtype);
  const auto make = [&] { return TileWriter(key, held, output.dtype, adds).write(); };
  launch_kernel(stream, key, split.grid, arguments, make);
}

}  // namespace graft

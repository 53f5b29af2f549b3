// src/kernels/attention/tiled_attention.cpp: attention with tiles in local memory, for GPU-like
// devices.
#include "kernels/attention/tiled_attention.h"

#include <functional>
#include <limits>

#include "kernels/attention/operands.h"
#include "kernels/matmul/row_exchange.h"
#include "kernels/matmul/tile_launch.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/open_device.h"

namespace graft {
namespace {

using namespace ir;

class ForwardWriter {
 public:
  ForwardWriter(const std::string& key, const TiledAttention& kernel)
      : tile_(kernel.tile),
        b_(key, ir::Family::kGpuLike),
        type_(ir::compute_type(kernel.dtype)),
        output_(b_.write(kernel.dtype)),
        logsumexp_(b_.write(kernel.sums())),
        in_(b_, kernel),
        to_(AttentionOperands::tensor(b_, output_)),
        step_(b_, type_, static_cast<uint64_t>(tile_.step_elements())),
        weights_(b_, type_, static_cast<uint64_t>(tile_.weights_elements())),
        scores_(b_, tile_.scores, step_),
        result_(b_, tile_.results[0], step_),
        exchange_(b_, scores_, tile_.scores, weights_),
        lowest_(b_.constant(type_, -std::numeric_limits<double>::infinity())) {}

  ir::Kernel write() {
    const int64_t lines = tile_.scores.rows;
    const Value tiles = (in_.rows + (lines - 1)) / lines;
    // With causal the last rows take longest: they come first.
    first_ = (tiles - 1 - scores_.group() % tiles) * lines;
    head_ = in_.head(scores_.group() / tiles);
    for (int64_t i = 0; i < tile_.scores.item_rows; ++i) {
      row_.push_back(first_ + cast(Type::kI64, scores_.row_of(i)));
      largest_.emplace_back(lowest_);
      sum_.emplace_back(b_.constant(type_, 0));
      if (in_.dropout) draws_.push_back(in_.draws(head_, row_.back()));
    }
    const Value end = in_.seen(first_ + (lines - 1));
    b_.loop(
        b_.i64(0), end, [&](Value column) { walk(column, end); }, b_.i64(tile_.scores.columns));
    finish();
    return b_.finish();
  }

 private:
  // The tile's columns from column on.
  void walk(Value column, Value end) {
    const AttentionOperands& in = in_;
    scores_.clear();
    scores_.multiply(
        cast(Type::kI32, in.depth),
        in.lines(in.query, in.query.head(head_.batch, head_.query), first_, in.rows, in.depth),
        in.lines(in.key, in.key.head(head_.batch, head_.key), column, end, in.depth));
    weigh(column);
    const Value width = ir::minimum(end - column, b_.i64(tile_.scores.columns));
    result_.multiply(
        cast(Type::kI32, width), weights_of(tile_, weights_),
        in.across(in.value, in.value.head(head_.batch, head_.key), column, end, in.value_depth));
  }

  // Scores become weights relative to the largest score so far, in local memory.
  void weigh(Value column) {
    const int64_t rows = tile_.scores.item_rows, columns = tile_.scores.item_columns;
    for (int64_t i = 0; i < rows; ++i) {
      Value most = lowest_;
      for (int64_t j = 0; j < columns; ++j) {
        const Value at = column + cast(Type::kI64, scores_.column_of(j));
        const Value score = in_.score(head_, scores_.sum(i, j), row_[index(i)], at);
        scores_.sum(i, j) = score;
        most = ir::maximum(most, score);
      }
      exchange_.share(i, most);
    }
    b_.barrier();
    std::vector<Value> base;
    for (int64_t i = 0; i < rows; ++i) {
      const Value before = largest_[index(i)].get();
      const Value now = exchange_.gather(i, before, ir::maximum);
      base.push_back(select(now == lowest_, 0, now));
      const Value factor = exp(before - base.back());
      largest_[index(i)] = now;
      sum_[index(i)] = sum_[index(i)].get() * factor;
      for (int64_t j = 0; j < tile_.results[0].item_columns; ++j) {
        result_.sum(i, j) = result_.sum(i, j).get() * factor;
      }
    }
    b_.barrier();
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        Value weight = exp(scores_.sum(i, j).get() - base[index(i)]);
        sum_[index(i)] = sum_[index(i)].get() + weight;
        if (in_.dropout) {
          const Value at = column + cast(Type::kI64, scores_.column_of(j));
          weight = in_.dropout->apply(draws_[index(i)], at, weight);
        }
        weights_.store(scores_.column_of(j) * tile_.weights_line() + scores_.row_of(i), weight);
      }
    }
    b_.barrier();
  }

  void finish() {
    for (int64_t i = 0; i < tile_.scores.item_rows; ++i) exchange_.share(i, sum_[index(i)].get());
    b_.barrier();
    const Value to = to_.head(head_.batch, head_.query);
    for (int64_t i = 0; i < tile_.scores.item_rows; ++i) {
      const Value sum = exchange_.gather(i, b_.constant(type_, 0), std::plus<>());
      const Value factor = select(sum == 0, 0, 1 / sum), row = row_[index(i)];
      b_.if_(row < in_.rows, [&] {
        b_.if_(scores_.place() == 0, [&] {
          const Value largest = largest_[index(i)].get();
          const Value base = select(largest == lowest_, 0, largest);
          logsumexp_.store(head_.number * in_.rows + row, base + log(sum));
        });
        for (int64_t j = 0; j < tile_.results[0].item_columns; ++j) {
          const Value column = cast(Type::kI64, result_.column_of(j));
          b_.if_(column < in_.value_depth, [&] {
            output_.store(to + row * to_.strides[2] + column * to_.strides[3],
                          result_.sum(i, j).get() * factor);
          });
        }
      });
    }
  }

  static size_t index(int64_t i) { return static_cast<size_t>(i); }

  const AttentionTile& tile_;
  Builder b_;
  const Type type_;
  Address output_, logsumexp_;
  AttentionOperands in_;
  AttentionOperands::Tensor to_;
  LocalArray step_, weights_;
  TileProduct scores_, result_;
  const RowExchange exchange_;
  Value lowest_, first_;
  AttentionOperands::Head head_;
  std::vector<Value> row_, draws_;
  std::vector<Variable> largest_, sum_;
};

}  // namespace

bool tiled_attention(Stream& stream, const TensorView& output, const TensorView& logsumexp,
                     const Attention& call) {
  const auto tile = AttentionTile::forward(stream.device().properties(), call);
  if (!tile) return false;
  const TiledAttention kernel(call, *tile);
  Arguments arguments;
  arguments.write(output).write(logsumexp);
  AttentionOperands::append(arguments, call, AttentionPlan(call).whole({&output}));
  AttentionOperands::append_tensor(arguments, output);
  const std::string key = kernel.key("attention_tiles");
  const auto make = [&] { return ForwardWriter(key, kernel).write(); };
  launch_kernel(stream, key, tiles_of(*tile, call.query), arguments, make, tile->scores.group());
  return true;
}

}  // namespace graft

// src/kernels/attention/tiled_key_gradient.cpp: the gradients of keys and values of attention on
// GPU-like devices.
#include <limits>

#include "kernels/attention/tiled_attention_gradients.h"

namespace graft {
namespace {

using namespace ir;

class KeyGradientWriter {
 public:
  KeyGradientWriter(const std::string& key, const TiledAttention& kernel)
      : tile_(kernel.tile),
        b_(key, ir::Family::kGpuLike),
        type_(ir::compute_type(kernel.dtype)),
        key_address_(b_.write(kernel.dtype)),
        value_address_(b_.write(kernel.dtype)),
        slopes_(b_.read(kernel.sums())),
        logsumexp_(b_.read(kernel.sums())),
        above_address_(b_.read(kernel.dtype)),
        key_(AttentionOperands::tensor(b_, key_address_)),
        value_(AttentionOperands::tensor(b_, value_address_)),
        above_(AttentionOperands::tensor(b_, above_address_)),
        in_(b_, kernel),
        step_(b_, type_, static_cast<uint64_t>(tile_.step_elements())),
        weights_(b_, type_, static_cast<uint64_t>(tile_.weights_elements())),
        scores_(b_, tile_.scores, step_),
        slope_(b_, tile_.scores, step_),
        values_(b_, tile_.results[0], step_),
        keys_(b_, tile_.results[1], step_) {}

  ir::Kernel write() {
    const int64_t lines = tile_.scores.rows;
    const Value tiles = (in_.columns + (lines - 1)) / lines, key_heads = in_.heads / in_.members;
    first_ = scores_.group() % tiles * lines;
    const Value number = scores_.group() / tiles;
    batch_ = number / key_heads, key_head_ = number % key_heads;
    // With causal no row before the tile's first key sees it.
    const Value start = select(in_.causal != 0, first_, 0);
    // One loop over heads and rows: each loop around barriers makes PoCL's code larger.
    const int64_t step = tile_.scores.columns;
    const Value steps = (ir::maximum(in_.rows - start, b_.i64(0)) + (step - 1)) / step;
    b_.loop(b_.i64(0), in_.members * steps, [&](Value turn) {
      const Value query = key_head_ * in_.members + turn / steps;
      walk({batch_ * in_.heads + query, batch_, query, key_head_}, start + turn % steps * step);
    });
    store(values_, value_, in_.value_depth, b_.constant(type_, 1));
    store(keys_, key_, in_.depth, in_.scale);
    return b_.finish();
  }

 private:
  // The head's queries from row on: columns of the tile.
  void walk(const AttentionOperands::Head& head, Value row) {
    const AttentionOperands& in = in_;
    const Value query = in.query.head(batch_, head.query), above = above_.head(batch_, head.query);
    scores_.clear();
    scores_.multiply(cast(Type::kI32, in.depth),
                     in.lines(in.key, in.key.head(batch_, key_head_), first_, in.columns, in.depth),
                     in.lines(in.query, query, row, in.rows, in.depth));
    slope_.clear();
    slope_.multiply(
        cast(Type::kI32, in.value_depth),
        in.lines(in.value, in.value.head(batch_, key_head_), first_, in.columns, in.value_depth),
        in.lines(above_, above, row, in.rows, in.value_depth));
    for (int64_t j = 0; j < tile_.scores.item_columns; ++j) weigh(head, row, j);
    b_.barrier();
    const Value width = cast(Type::kI32, ir::minimum(in.rows - row, b_.i64(tile_.scores.columns)));
    const TileProduct::Factor weights = weights_of(tile_, weights_);
    values_.multiply(width, weights, in.across(above_, above, row, in.rows, in.value_depth));
    for (int64_t j = 0; j < tile_.scores.item_columns; ++j) {
      for (int64_t i = 0; i < tile_.scores.item_rows; ++i) put(i, j, slope_.sum(i, j));
    }
    b_.barrier();
    keys_.multiply(width, weights, in.across(in.query, query, row, in.rows, in.depth));
  }

  // The weights of a query into local memory, and the slopes of its scores.
  void weigh(const AttentionOperands::Head& head, Value row, int64_t j) {
    const Value at = row + cast(Type::kI64, scores_.column_of(j)), inside = at < in_.rows;
    const Value place = select(inside, head.number * in_.rows + at, 0);
    const Value log = logsumexp_.load(place), total = slopes_.load(place);
    const Value lowest = b_.constant(type_, -std::numeric_limits<double>::infinity());
    const Value base = select(log == lowest, 0, log);
    const Value draws = in_.dropout ? in_.draws(head, at) : Value();
    for (int64_t i = 0; i < tile_.scores.item_rows; ++i) {
      const Value column = first_ + cast(Type::kI64, scores_.row_of(i));
      const Value score = in_.score(head, scores_.sum(i, j), at, column);
      const Value weight = select(inside, exp(score - base), 0);
      Value kept = weight, slope = slope_.sum(i, j);
      if (in_.dropout) {
        kept = in_.dropout->apply(draws, column, weight);
        slope = in_.dropout->apply(draws, column, slope);
      }
      slope_.sum(i, j) = weight * (slope - total);
      put(i, j, kept);
    }
  }

  void put(int64_t i, int64_t j, Value value) {
    weights_.store(scores_.column_of(j) * tile_.weights_line() + scores_.row_of(i), value);
  }

  void store(const TileProduct& result, const AttentionOperands::Tensor& to, Value width,
             Value factor) {
    const Value start = to.head(batch_, key_head_);
    result.each([&](Value i, Value j, Value sum) {
      const Value row = first_ + cast(Type::kI64, i), column = cast(Type::kI64, j);
      b_.if_((row < in_.columns) & (column < width), [&] {
        to.address.store(start + row * to.strides[2] + column * to.strides[3], sum * factor);
      });
    });
  }

  const AttentionTile& tile_;
  Builder b_;
  const Type type_;
  Address key_address_, value_address_, slopes_, logsumexp_, above_address_;
  AttentionOperands::Tensor key_, value_, above_;
  AttentionOperands in_;
  LocalArray step_, weights_;
  TileProduct scores_, slope_, values_, keys_;
  Value first_, batch_, key_head_;
};

}  // namespace

ir::Kernel key_gradient_kernel(const std::string& key, const TiledAttention& kernel) {
  return KeyGradientWriter(key, kernel).write();
}

}  // namespace graft

// src/kernels/attention/tiled_query_gradient.cpp: the queries' gradient of attention on GPU-like
// devices.
#include <functional>
#include <limits>

#include "kernels/attention/tiled_attention_gradients.h"
#include "kernels/matmul/row_exchange.h"

namespace graft {
namespace {

using namespace ir;

class QueryGradientWriter {
 public:
  QueryGradientWriter(const std::string& key, const TiledAttention& kernel)
      : tile_(kernel.tile),
        b_(key, ir::Family::kGpuLike),
        type_(ir::compute_type(kernel.dtype)),
        gradient_address_(b_.write(kernel.dtype)),
        slopes_(b_.write(kernel.sums())),
        logsumexp_(b_.read(kernel.sums())),
        output_address_(b_.read(kernel.dtype)),
        above_address_(b_.read(kernel.dtype)),
        gradient_(AttentionOperands::tensor(b_, gradient_address_)),
        output_(AttentionOperands::tensor(b_, output_address_)),
        above_(AttentionOperands::tensor(b_, above_address_)),
        in_(b_, kernel),
        step_(b_, type_, static_cast<uint64_t>(tile_.step_elements())),
        weights_(b_, type_, static_cast<uint64_t>(tile_.weights_elements())),
        scores_(b_, tile_.scores, step_),
        slope_(b_, tile_.scores, step_),
        result_(b_, tile_.results[0], step_) {}

  ir::Kernel write() {
    const int64_t lines = tile_.scores.rows;
    const Value tiles = (in_.rows + (lines - 1)) / lines;
    first_ = (tiles - 1 - scores_.group() % tiles) * lines;
    head_ = in_.head(scores_.group() / tiles);
    begin();
    const Value end = in_.seen(first_ + (lines - 1));
    b_.loop(
        b_.i64(0), end, [&](Value column) { walk(column, end); }, b_.i64(tile_.scores.columns));
    store();
    return b_.finish();
  }

 private:
  // What each row needs: its logarithm, and the sum of its output times the gradient.
  void begin() {
    const RowExchange exchange(b_, scores_, tile_.scores, weights_);
    const Value from = output_.head(head_.batch, head_.query);
    const Value beside = above_.head(head_.batch, head_.query);
    for (int64_t i = 0; i < tile_.scores.item_rows; ++i) {
      const Value row = first_ + cast(Type::kI64, scores_.row_of(i)), inside = row < in_.rows;
      const Variable sum(b_.constant(type_, 0));
      b_.if_(inside, [&] {
        b_.loop(
            cast(Type::kI64, scores_.place()), in_.value_depth,
            [&](Value d) {
              const Value a =
                  output_.address.load(from + row * output_.strides[2] + d * output_.strides[3]);
              const Value g =
                  above_.address.load(beside + row * above_.strides[2] + d * above_.strides[3]);
              sum = sum.get() + a * g;
            },
            b_.i64(tile_.scores.across()));
      });
      exchange.share(i, sum.get());
      const Value log = logsumexp_.load(select(inside, head_.number * in_.rows + row, 0));
      const Value none = log == b_.constant(type_, -std::numeric_limits<double>::infinity());
      row_.push_back(row);
      logs_.push_back(select(none, 0, log));
      if (in_.dropout) draws_.push_back(in_.draws(head_, row));
    }
    b_.barrier();
    for (int64_t i = 0; i < tile_.scores.item_rows; ++i) {
      const Value row = row_[static_cast<size_t>(i)];
      totals_.push_back(exchange.gather(i, b_.constant(type_, 0), std::plus<>()));
      b_.if_((row < in_.rows) & (scores_.place() == 0),
             [&] { slopes_.store(head_.number * in_.rows + row, totals_.back()); });
    }
    b_.barrier();
  }

  void walk(Value column, Value end) {
    const AttentionOperands& in = in_;
    const Value key = in.key.head(head_.batch, head_.key);
    scores_.clear();
    scores_.multiply(
        cast(Type::kI32, in.depth),
        in.lines(in.query, in.query.head(head_.batch, head_.query), first_, in.rows, in.depth),
        in.lines(in.key, key, column, end, in.depth));
    slope_.clear();
    slope_.multiply(
        cast(Type::kI32, in.value_depth),
        in.lines(above_, above_.head(head_.batch, head_.query), first_, in.rows, in.value_depth),
        in.lines(in.value, in.value.head(head_.batch, head_.key), column, end, in.value_depth));
    for (int64_t i = 0; i < tile_.scores.item_rows; ++i) {
      const size_t r = static_cast<size_t>(i);
      for (int64_t j = 0; j < tile_.scores.item_columns; ++j) {
        const Value at = column + cast(Type::kI64, scores_.column_of(j));
        const Value weight = exp(in.score(head_, scores_.sum(i, j), row_[r], at) - logs_[r]);
        Value slope = slope_.sum(i, j);
        if (in.dropout) slope = in.dropout->apply(draws_[r], at, slope);
        weights_.store(scores_.column_of(j) * tile_.weights_line() + scores_.row_of(i),
                       weight * (slope - totals_[r]));
      }
    }
    b_.barrier();
    const Value width = ir::minimum(end - column, b_.i64(tile_.scores.columns));
    result_.multiply(cast(Type::kI32, width), weights_of(tile_, weights_),
                     in.across(in.key, key, column, end, in.depth));
  }

  void store() {
    const Value to = gradient_.head(head_.batch, head_.query);
    result_.each([&](Value i, Value j, Value sum) {
      const Value row = first_ + cast(Type::kI64, i), column = cast(Type::kI64, j);
      b_.if_((row < in_.rows) & (column < in_.depth), [&] {
        gradient_.address.store(to + row * gradient_.strides[2] + column * gradient_.strides[3],
                                sum * in_.scale);
      });
    });
  }

  const AttentionTile& tile_;
  Builder b_;
  const Type type_;
  Address gradient_address_, slopes_, logsumexp_, output_address_, above_address_;
  AttentionOperands::Tensor gradient_, output_, above_;
  AttentionOperands in_;
  LocalArray step_, weights_;
  TileProduct scores_, slope_, result_;
  Value first_;
  AttentionOperands::Head head_;
  std::vector<Value> row_, logs_, totals_, draws_;
};

}  // namespace

ir::Kernel query_gradient_kernel(const std::string& key, const TiledAttention& kernel) {
  return QueryGradientWriter(key, kernel).write();
}

}  // namespace graft

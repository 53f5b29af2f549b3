// src/kernels/attention/row_attention.cpp: attention of a few rows on CPU-like devices: decoding.
#include "kernels/attention/row_attention.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "codegen/ir/builder.h"
#include "kernels/attention/operands.h"
#include "kernels/launch/accumulators.h"
#include "kernels/launch/arguments.h"
#include "kernels/launch/lanes.h"
#include "kernels/launch/work_split.h"
#include "kernels/launch/workspace.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

// Elements that are summed side by side; a key and a value are some of these. What a loop over
// columns sums has to stay in 16 vector registers: kColumns keys, or kLanesAtOnce of a value.
constexpr int64_t kWidth = 16, kColumns = 4, kLanesAtOnce = 4;
constexpr int64_t kWidest = 256;  // a value's elements
constexpr double kLowest = -std::numeric_limits<double>::infinity();

class RowWriter {
 public:
  RowWriter(const std::string& key, const TiledAttention& kernel, int64_t width, bool dense_bias)
      : b_(key),
        lanes_(width / kWidth),
        dense_bias_(dense_bias),
        to_(b_.write(kernel.dtype)),
        logsumexp_(b_.write(GRAFT_FLOAT32)),
        // Of a line: its scores, which become weights, then its query.
        memory_(b_.update(GRAFT_FLOAT32)),
        in_(b_, kernel),
        to_strides_(AttentionOperands::tensor(b_, to_)),
        lines_(b_.index()),
        per_item_(b_.index()) {}

  ir::Kernel write() {
    each_line(b_, lines_, per_item_, [&](Value line) { compute(line); });
    return b_.finish();
  }

 private:
  struct Span {
    Value begin, end;
  };

  // The bias of a row's column.
  Value bias(const AttentionOperands::Head& head, Value row, Value column) {
    const AttentionOperands::Tensor& from = *in_.bias;
    const Value at = from.head(head.batch, head.query) + row * from.strides[2];
    const Value step = dense_bias_ ? column : column * from.strides[3];
    return cast(Type::kF32, from.address.load(at + step));
  }

  // From the first column that the row sees to the last one: a cache has room behind its tokens.
  Span seen(const AttentionOperands::Head& head, Value row) {
    const Value none = b_.i64(0), end = in_.seen(row);
    if (!in_.bias) return {none, end};
    const auto place = [&](Value column, int64_t add, Value other) {
      const Value sees = bias(head, row, column) != kLowest;
      return select(sees, cast(Type::kI32, column + add), other);
    };
    const Value zero = cast(Type::kI32, none), far = cast(Type::kI32, end);
    const Value first = ir::reduce(
        far, none, end, [&](Value i) { return place(i, 0, far); }, ir::minimum);
    const Value last = ir::reduce(
        zero, none, end, [&](Value i) { return place(i, 1, zero); }, ir::maximum);
    return {cast(Type::kI64, first), cast(Type::kI64, last)};
  }

  void compute(Value line) {
    const AttentionOperands::Head head = in_.head(line / in_.rows);
    const Value row = line % in_.rows, none = b_.i64(0);
    const Span span = seen(head, row);
    const Value scores = line * (in_.columns + in_.depth), query = scores + in_.columns;
    const Value from = in_.query.head(head.batch, head.query) + row * in_.query.strides[2];
    b_.vector_loop(none, in_.depth, [&](Value i) {
      const Value element = in_.query.address.load(from + i * in_.query.strides[3]);
      memory_.store(query + i, cast(Type::kF32, element));
    });
    const Value keys = in_.key.head(head.batch, head.key), last = span.end - 1;
    b_.loop(
        span.begin, span.end,
        [&](Value first) {
          const Values sums = products(query, keys, first, last);
          for (int64_t j = 0; j < kColumns; ++j) {
            memory_.store(scores + ir::minimum(first + j, last), sums[static_cast<size_t>(j)]);
          }
        },
        b_.i64(kColumns));
    b_.vector_loop(span.begin, span.end, [&](Value i) {
      const Value score = memory_.load(scores + i) * in_.scale;
      memory_.store(scores + i, in_.bias ? score + bias(head, row, i) : score);
    });
    const Value factor = weigh(line, scores, span);
    add_values(in_.value.head(head.batch, head.key), scores, span, factor,
               to_strides_.head(head.batch, head.query) + row * to_strides_.strides[2]);
  }

  // The query's products with the keys of kColumns columns; what is past the last one is that one.
  Values products(Value query, Value keys, Value first, Value last) {
    const std::vector<Lanes> parts = zero_lanes(b_, kColumns, kWidth);
    Values starts;
    for (int64_t j = 0; j < kColumns; ++j) {
      starts.push_back(keys + ir::minimum(first + j, last) * in_.key.strides[2]);
    }
    b_.loop(
        b_.i64(0), in_.depth,
        [&](Value at) {
          b_.vector_loop(b_.i64(0), b_.i64(kWidth), [&](Value i) {
            const Value factor = memory_.load(query + at + i);
            for (size_t j = 0; j < starts.size(); ++j) {
              const Value key = cast(Type::kF32, in_.key.address.load(starts[j] + at + i));
              parts[j].store(i, parts[j].load(i) + factor * key);
            }
          });
        },
        b_.i64(kWidth));
    Values sums;
    for (const Lanes& part : parts) sums.push_back(sum_of_lanes(b_, part));
    return sums;
  }

  // Scores become weights; gives what their sum has to be multiplied by.
  Value weigh(Value line, Value scores, const Span& span) {
    const auto [begin, end] = span;
    const Value lowest = b_.f32(kLowest);
    const auto score = [&](Value i) { return memory_.load(scores + i); };
    const Value largest = ir::reduce(lowest, begin, end, score, ir::maximum);
    const Value base = select(largest == lowest, 0, largest);
    b_.vector_loop(begin, end, [&](Value i) { memory_.store(scores + i, exp(score(i) - base)); });
    const Value sum = ir::reduce(b_.f32(0), begin, end, score, std::plus<>());
    logsumexp_.store(line, base + log(sum));
    return select(sum == 0, 0, 1 / sum);
  }

  void add_values(Value values, Value weights, const Span& span, Value factor, Value to) {
    for (int64_t from = 0; from < lanes_; from += kLanesAtOnce) {
      const int64_t count = std::min(kLanesAtOnce, lanes_ - from);
      const std::vector<Lanes> sums = zero_lanes(b_, count, kWidth);
      b_.loop(span.begin, span.end, [&](Value column) {
        const Value weight = memory_.load(weights + column);
        const Value value = values + column * in_.value.strides[2];
        for (int64_t i = 0; i < count; ++i) {
          const Lanes& sum = sums[static_cast<size_t>(i)];
          lanes(from + i, [&](Value lane, Value element) {
            const Value number = cast(Type::kF32, in_.value.address.load(value + element));
            sum.store(lane, sum.load(lane) + weight * number);
          });
        }
      });
      for (int64_t i = 0; i < count; ++i) {
        const Lanes& sum = sums[static_cast<size_t>(i)];
        lanes(from + i, [&](Value lane, Value element) {
          to_.store(to + element * to_strides_.strides[3], sum.load(lane) * factor);
        });
      }
    }
  }

  template <class Body>
  void lanes(int64_t i, const Body& body) {
    b_.vector_loop(b_.i64(0), b_.i64(kWidth),
                   [&](Value lane) { body(lane, lane + int64_t{i * kWidth}); });
  }

  Builder b_;
  const int64_t lanes_;
  const bool dense_bias_;  // biases of a row's columns are side by side
  Address to_, logsumexp_, memory_;
  AttentionOperands in_;
  AttentionOperands::Tensor to_strides_;
  Value lines_, per_item_;
};

bool takes(const OpenDevice& device, const Attention& call) {
  const int64_t width = call.value.sizes[3], depth = call.query.sizes[3];
  const auto dense = [](const TensorView& view) { return view.strides[3] == 1; };
  return !is_gpu_like(device) && is_half(call.query.dtype) && call.dropout == 0 &&
         call.query.sizes[2] <= kFewRows && width % kWidth == 0 && width > 0 && width <= kWidest &&
         depth % kWidth == 0 && dense(call.key) && dense(call.value);
}

}  // namespace

bool row_attention(Stream& stream, const TensorView& output, const TensorView& logsumexp,
                   const Attention& call) {
  if (!takes(stream.device(), call)) return false;
  const TensorView& q = call.query;
  const int64_t columns = call.key.sizes[2], depth = q.sizes[3], width = call.value.sizes[3];
  const int64_t lines = q.sizes[0] * q.sizes[1] * q.sizes[2];
  if (lines == 0) return true;
  const TiledAttention kernel(call, {});
  const uint64_t bytes = static_cast<uint64_t>(lines * (columns + depth)) * sizeof(float);
  const Workspace memory(stream, bytes);
  Arguments arguments;
  arguments.write(output).write(logsumexp);
  arguments.address(memory.address(), bytes, GRAFT_ACCESS_WRITE);
  AttentionOperands::append(arguments, call, false);
  AttentionOperands::append_tensor(arguments, output);
  const WorkSplit split = split_work(lines, columns * (depth + width));
  arguments.index(split.lines).index(split.per_item);
  const bool dense_bias = call.bias != nullptr && call.bias->strides[3] == 1;
  const std::string key = "attention_rows_" + std::to_string(width) + "_" + name_of(q.dtype) +
                          (kernel.bias ? std::string("_") + name_of(*kernel.bias) : "") +
                          (dense_bias ? "_dense" : "");
  launch_kernel(stream, key, split.grid, arguments,
                [&] { return RowWriter(key, kernel, width, dense_bias).write(); });
  return true;
}

}  // namespace graft

// src/kernels/scan/cumulative_extremum.cpp: the extremum, or the logarithm of the sum of
// exponentials, so far.
#include "kernels/scan/cumulative_extremum.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "kernels/launch/arguments.h"
#include "kernels/launch/work_split.h"
#include "kernels/move/staging.h"
#include "kernels/operation/offer.h"
#include "kernels/scan/complex_scan.h"
#include "kernels/sort/key.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

constexpr int64_t kBlock = 64;

// What runs down a line: the state before it, the state after one more element, and what is stored.
struct Running {
  std::string key;
  graft_dtype input;
  std::vector<graft_dtype> outputs;
  std::function<Values(Builder& b, Value first)> start;  // first: the line's first element
  std::function<Values(const Values& state, Value x, Value position)> step;
};

// A line is a block of neighbouring columns of [outer, n, inner], walked down together.
class RunningKernel {
 public:
  RunningKernel(Builder& b, const Running& running)
      : b_(b), running_(running), input_(b.read(running.input)) {
    for (const graft_dtype dtype : running.outputs) outputs_.push_back(b.write(dtype));
  }

  void build() {
    const Value lines = b_.index(), per_item = b_.index(), n = b_.index(), inner = b_.index();
    each_line(b_, lines, per_item, [&](Value line) {
      const Value blocks = (inner + (kBlock - 1)) / kBlock;
      const Value column = line % blocks * kBlock;
      const Value width = ir::minimum(inner - column, b_.i64(kBlock));
      const Value base = line / blocks * n * inner + column;
      b_.if_(
          width == 1, [&] { walk(base, n, inner); }, [&] { walk_block(base, n, inner, width); });
    });
  }

 private:
  void walk(Value base, Value n, Value inner) {
    std::vector<ir::Variable> state;
    for (const Value& value : running_.start(b_, input_.load(base))) state.emplace_back(value);
    b_.loop(b_.i64(0), n, [&](Value i) {
      Values before;
      for (const ir::Variable& variable : state) before.push_back(variable.get());
      const Values after = running_.step(before, input_.load(base + i * inner), i);
      for (size_t k = 0; k < state.size(); ++k) {
        state[k] = after[k];
        outputs_[k].store(base + i * inner, after[k]);
      }
    });
  }

  void walk_block(Value base, Value n, Value inner, Value width) {
    std::vector<Lanes> state;
    for (const Value& value : running_.start(b_, input_.load(base))) {
      state.emplace_back(b_, value.type(), static_cast<uint32_t>(kBlock));
    }
    b_.vector_loop(b_.i64(0), width, [&](Value lane) {
      const Values first = running_.start(b_, input_.load(base + lane));
      for (size_t k = 0; k < state.size(); ++k) state[k].store(lane, first[k]);
    });
    b_.loop(b_.i64(0), n, [&](Value i) {
      const Value row = base + i * inner;
      b_.vector_loop(b_.i64(0), width, [&](Value lane) {
        Values before;
        for (const Lanes& lanes : state) before.push_back(lanes.load(lane));
        const Values after = running_.step(before, input_.load(row + lane), i);
        for (size_t k = 0; k < state.size(); ++k) {
          state[k].store(lane, after[k]);
          outputs_[k].store(row + lane, after[k]);
        }
      });
    });
  }

  Builder& b_;
  const Running& running_;
  Address input_;
  std::vector<Address> outputs_;
};

ir::Kernel build(const Running& running) {
  Builder b(running.key);
  RunningKernel(b, running).build();
  return b.finish();
}

void run(Stream& stream, const Running& running, const std::vector<TensorView>& outputs,
         const TensorView& input, int dim) {
  if (input.count() == 0) return;
  const StagedInput from(stream, input);
  std::deque<StagedOutput> to;
  for (const TensorView& output : outputs) {
    to.emplace_back(stream, output);
  }
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < input.rank; ++d) (d < dim ? outer : inner) *= d == dim ? 1 : input.sizes[d];
  const int64_t n = input.rank == 0 ? 1 : input.sizes[dim];
  const WorkSplit split =
      split_work(outer * ((inner + kBlock - 1) / kBlock), n * std::min(inner, kBlock));
  Arguments arguments;
  arguments.read(from.view());
  for (const StagedOutput& output : to) arguments.write(output.view());
  arguments.index(split.lines).index(split.per_item).index(n).index(inner);
  launch_kernel(stream, running.key, split.grid, arguments, [&] { return build(running); });
  for (StagedOutput& output : to) output.finish();
}

// log(exp(a) + exp(b)); equal infinities stay what they are.
Value log_add_exp(Value a, Value b) {
  const Value low = ir::minimum(a, b), high = ir::maximum(a, b);
  const Value same = (low == high) & is_inf(low);
  return select(same, high, log1p(exp(low - high)) + high);
}

}  // namespace

void running_extremum(Stream& stream, Extremum extremum, const TensorView& values,
                      const TensorView& indices, const TensorView& input, int dim) {
  const Operation id = extremum == Extremum::kMax ? Operation::running_max : Operation::running_min;
  if (offer(stream, id, writes(values, indices), reads(input), integers(dim))) return;
  const bool max = extremum == Extremum::kMax;
  require_order(input.dtype, max ? "cummax" : "cummin");
  Running running;
  running.key = std::string(max ? "running_max_" : "running_min_") + name_of(input.dtype);
  running.input = input.dtype;
  running.outputs = {input.dtype, GRAFT_INT64};
  const bool flags = input.dtype == GRAFT_BOOL;
  const auto number = [flags](Value x) { return flags ? cast(Type::kI32, x) : x; };
  running.start = [=](Builder& b, Value first) { return Values{number(first), b.i64(0)}; };
  running.step = [=](const Values& state, Value element, Value position) {
    const Value x = number(element);
    const Value beats = max ? x >= state[0] : x <= state[0];
    const Value takes = is_nan(x) | (beats & !is_nan(state[0]));
    return Values{select(takes, x, state[0]), select(takes, position, state[1])};
  };
  run(stream, running, {values, indices}, input, dim);
}

void running_log_sum_exp(Stream& stream, const TensorView& output, const TensorView& input,
                         int dim) {
  if (offer(stream, Operation::running_log_sum_exp, writes(output), reads(input), integers(dim)))
    return;
  if (is_complex(input.dtype)) {
    return complex_scan(stream, ComplexScan::kLogSumExp, output, input, dim);
  }
  if (!is_floating(input.dtype)) {
    throw Error(GRAFT_UNSUPPORTED, std::string("logcumsumexp of ") + name_of(input.dtype) +
                                       ": give a floating or complex dtype");
  }
  Running running;
  running.key = std::string("running_log_sum_exp_") + name_of(input.dtype);
  running.input = input.dtype;
  running.outputs = {input.dtype};
  running.start = [](Builder& b, Value) {
    return Values{b.constant(Type::kF64, -std::numeric_limits<double>::infinity())};
  };
  running.step = [](const Values& state, Value element, Value) {
    return Values{log_add_exp(cast(Type::kF64, element), state[0])};
  };
  run(stream, running, {output}, input, dim);
}

}  // namespace graft

// tests/vendor/fixed_function/moves.cpp: copies, sums, tables, and joining.
#include <algorithm>
#include <limits>

#include "chip.h"

namespace chip {
namespace {

void run_copy(const Run& run) {
  for (int64_t at = 0, count = run[0].count(); at < count; ++at) run[0].at(at) = run[1].at(at);
}

bool plain(const Plan& plan) { return plan.integers[0] == 0 && plan.integers[1] == 0; }

void run_fill(const Run& run) {
  for (int64_t at = 0, count = run[0].count(); at < count; ++at) {
    run[0].at(at) = static_cast<float>(run.scalars[0]);
  }
}

// The output has stride 0 where it is reduced.
template <bool mean>
void run_sum(const Run& run) {
  const Tensor &output = run[0], &input = run[1];
  const int64_t count = input.count();
  std::vector<double> sums;
  int64_t kept = 1, last = 0;
  for (uint32_t d = 0; d < output.layout->rank; ++d) {
    if (output.stride(d) != 0) kept *= output.size(d);
    last += (output.size(d) - 1) * output.stride(d);
  }
  sums.resize(static_cast<size_t>(last) + 1);
  for (int64_t at = 0; at < count; ++at) {
    sums[static_cast<size_t>(output.place(at))] += input.at(at);
  }
  const double share = mean ? static_cast<double>(kept) / static_cast<double>(count) : 1;
  for (int64_t at = 0; at < count; ++at) {
    const int64_t place = output.place(at);
    output.real(place) = static_cast<float>(sums[static_cast<size_t>(place)] * share);
  }
}

// index_select: output, input, indices of rank 0 or 1.
void run_select(const Run& run) {
  const Tensor &output = run[0], &input = run[1], &indices = run[2];
  const auto dim = static_cast<uint32_t>(run.integer(0));
  for (int64_t at = 0, count = output.count(); at < count; ++at) {
    int64_t rest = at, place = 0;
    for (uint32_t d = output.layout->rank; d-- > 0;) {
      int64_t step = rest % output.size(d);
      rest /= output.size(d);
      if (d == dim) step = indices.whole(indices.place(step));
      place += std::clamp<int64_t>(step, 0, input.size(d) - 1) * input.stride(d);
    }
    output.at(at) = input.real(place);
  }
}

// embedding_dense_backward: grad_weight, grad_output, indices.
void run_table_gradient(const Run& run) {
  const Tensor &table = run[0], &above = run[1], &indices = run[2];
  for (int64_t at = 0, count = table.count(); at < count; ++at) table.at(at) = 0;
  const int64_t n = table.size(1);
  for (int64_t i = 0; i < indices.count(); ++i) {
    const int64_t row = indices.whole(indices.place(i));
    if (row == run.integer(0)) continue;
    for (int64_t k = 0; k < n; ++k) table.at(row * n + k) += above.at(i * n + k);
  }
}

void run_join(const Run& run) {
  const auto dim = static_cast<uint32_t>(run.integer(0));
  int64_t before = 0;
  for (size_t i = 1; i < run.tensors.size(); ++i) {
    Tensor part = run[0];
    part.memory += before * part.stride(dim) * 4;
    before += run[i].size(dim);
    for (int64_t at = 0, count = run[i].count(); at < count; ++at) {
      int64_t rest = at, place = 0;
      for (uint32_t d = part.layout->rank; d-- > 0;) {
        place += rest % run[i].size(d) * part.stride(d);
        rest /= run[i].size(d);
      }
      part.real(place) = run[i].at(at);
    }
  }
}

// Each element of the output is that element of the input which from(d, i) names along each of the
// last `dims` dimensions.
template <class From>
void pick(const Run& run, size_t dims, const From& from) {
  const Tensor &output = run[0], &input = run[1];
  const uint32_t rank = output.layout->rank, first = rank - static_cast<uint32_t>(dims);
  for (int64_t at = 0, count = output.count(); at < count; ++at) {
    int64_t rest = at, place = 0;
    for (uint32_t d = rank; d-- > 0;) {
      int64_t step = rest % output.size(d);
      rest /= output.size(d);
      if (d >= first) step = from(d - first, step, input.size(d), output.size(d));
      place += step * input.stride(d);
    }
    output.at(at) = input.real(place);
  }
}

// interpolate: filter 0 picks the nearest element; a number is a given scale, or 0.
void run_nearest(const Run& run) {
  pick(run, run.plan.numbers.size(), [&](size_t d, int64_t i, int64_t in, int64_t out) {
    const double given = run.number(d);
    const auto step = static_cast<float>(
        given > 0 ? 1 / given : static_cast<double>(in) / static_cast<double>(out));
    return std::min(static_cast<int64_t>(static_cast<float>(i) * step), in - 1);
  });
}

// pad: mode (0 reflects, 1 repeats the edge), before of each dimension, after.
void run_pad(const Run& run) {
  const bool reflects = run.integer(0) == 0;
  pick(run, run.plan.integers.size() / 2, [&](size_t d, int64_t i, int64_t in, int64_t) {
    int64_t at = i - run.integer(1 + d);
    if (!reflects) return std::clamp<int64_t>(at, 0, in - 1);
    at = at < 0 ? -at : at;
    return at >= in ? 2 * (in - 1) - at : at;
  });
}

}  // namespace

std::vector<Operation> moves() {
  return {{"copy", run_copy, 0, plain},
          {"fill", run_fill},
          {"reduce_sum", run_sum<false>},
          {"reduce_mean", run_sum<true>},
          {"index_select", run_select, 0b100},
          {"embedding_dense_backward", run_table_gradient, 0b100,
           [](const Plan& plan) { return plan.integers[1] == 0; }},
          {"cat", run_join},
          {"interpolate", run_nearest, 0, [](const Plan& plan) { return plan.integers[0] == 0; }},
          {"pad", run_pad}};
}

}  // namespace chip

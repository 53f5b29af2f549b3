// tests/kernels/loss/ctc_loss_test.cpp: losses and gradients against a sum over every alignment.
#include "kernels/loss/ctc_loss.h"

#include <cmath>
#include <limits>

#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

constexpr int64_t kTime = 5, kLabels = 3;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The labels of a path: what repeats is one, blanks go.
std::vector<int64_t> collapsed(const std::vector<int64_t>& path, int64_t blank) {
  std::vector<int64_t> labels;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] != blank && (i == 0 || path[i] != path[i - 1])) labels.push_back(path[i]);
  }
  return labels;
}

struct Reference {
  double chance = 0;
  std::vector<double> through = std::vector<double>(kTime * kLabels);  // by step and label
};

// chances: [kTime, kLabels].
Reference reference(const std::vector<double>& chances, const std::vector<int64_t>& target,
                    int64_t steps, int64_t blank) {
  Reference found;
  const auto paths = static_cast<int64_t>(std::pow(kLabels, steps));
  for (int64_t code = 0; code < paths; ++code) {
    std::vector<int64_t> path;
    double chance = 1;
    for (int64_t t = 0, rest = code; t < steps; ++t, rest /= kLabels) {
      path.push_back(rest % kLabels);
      chance *= chances[static_cast<size_t>(t * kLabels + path.back())];
    }
    if (collapsed(path, blank) != target) continue;
    found.chance += chance;
    for (int64_t t = 0; t < steps; ++t) {
      found.through[static_cast<size_t>(t * kLabels + path[static_cast<size_t>(t)])] += chance;
    }
  }
  return found;
}

struct Sequence {
  std::vector<int64_t> target;
  int64_t steps;
};

struct Case {
  graft_dtype dtype = GRAFT_FLOAT64;
  int64_t blank = 0;
  bool in_a_row = false, zero_infinity = false;
  std::vector<Sequence> sequences;
};

void check(const Case& given) {
  const auto batch = static_cast<int64_t>(given.sequences.size());
  // Chances of a step add up to 1.
  std::vector<double> logs = numbers(kTime * batch * kLabels, 8, 0.1, 1);
  for (size_t i = 0; i < logs.size(); i += kLabels) {
    const double sum = logs[i] + logs[i + 1] + logs[i + 2];
    for (size_t k = i; k < i + kLabels; ++k) logs[k] = std::log(logs[k] / sum);
  }
  int64_t longest = 0;
  for (const Sequence& s : given.sequences) {
    longest = std::max(longest, static_cast<int64_t>(s.target.size()));
  }
  std::vector<double> targets, lengths;
  for (const Sequence& s : given.sequences) {
    lengths.push_back(static_cast<double>(s.steps));
    lengths.push_back(static_cast<double>(s.target.size()));
    lengths.push_back(static_cast<double>(targets.size()));
    for (const int64_t label : s.target) targets.push_back(static_cast<double>(label));
    const size_t padding = given.in_a_row ? 0 : static_cast<size_t>(longest) - s.target.size();
    targets.insert(targets.end(), padding, 99);
  }
  const auto count = static_cast<int64_t>(targets.size());
  DeviceTensor probs({kTime, batch, kLabels}, {1, kTime * kLabels, kTime}, given.dtype);
  DeviceTensor labels(
      given.in_a_row ? std::vector<int64_t>{count} : std::vector<int64_t>{batch, longest},
      GRAFT_INT64);
  DeviceTensor sizes({batch, 3}, GRAFT_INT64), losses({batch}, given.dtype);
  DeviceTensor alpha({batch, kTime, 2 * longest + 1}, given.dtype), grad({batch}, given.dtype);
  DeviceTensor output({kTime, batch, kLabels}, given.dtype);
  probs.set(logs), labels.set(targets), sizes.set(lengths);
  const std::vector<double> weights = numbers(batch, 2, 0.5, 2, given.dtype);
  grad.set(weights);
  const CtcSequences sequences{probs, labels, sizes, given.blank};
  ctc_loss(stream(), sequences, losses, alpha);
  ctc_loss_backward(stream(), sequences, output, grad, losses, alpha, given.zero_infinity);
  const std::vector<double> loss = losses.get(), gradient = output.get();
  const double bound = 20 * tolerance(given.dtype);
  for (int64_t n = 0; n < batch; ++n) {
    const Sequence& s = given.sequences[static_cast<size_t>(n)];
    std::vector<double> chances;
    for (int64_t t = 0; t < kTime; ++t) {
      for (int64_t c = 0; c < kLabels; ++c) {
        chances.push_back(std::exp(logs[static_cast<size_t>((t * batch + n) * kLabels + c)]));
      }
    }
    const Reference exact = reference(chances, s.target, s.steps, given.blank);
    const double expected = exact.chance == 0 ? kInfinity : -std::log(exact.chance);
    EXPECT_TRUE(near({loss[static_cast<size_t>(n)]}, {expected}, bound, bound)) << n;
    for (int64_t t = 0; t < kTime; ++t) {
      for (int64_t c = 0; c < kLabels; ++c) {
        const auto k = static_cast<size_t>(t * kLabels + c);
        double slope =
            (chances[k] - exact.through[k] / exact.chance) * weights[static_cast<size_t>(n)];
        if (t >= s.steps || (exact.chance == 0 && given.zero_infinity)) slope = 0;
        const double found = gradient[static_cast<size_t>((t * batch + n) * kLabels + c)];
        EXPECT_TRUE(near({found}, {slope}, bound, bound)) << n << " " << t << " " << c;
      }
    }
  }
}

TEST(CtcLoss, SumsOverAlignments) {
  const std::vector<Sequence> first = {{{1, 2}, 5}, {{1, 1}, 4}, {{}, 3}, {{2}, 1}, {{2, 1, 2}, 5}};
  const std::vector<Sequence> last = {{{1, 0}, 5}, {{0, 0}, 3}};
  for (const graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64}) {
    for (const bool in_a_row : {true, false}) {
      check({dtype, 0, in_a_row, false, first});
      check({dtype, 2, in_a_row, false, last});
    }
  }
}

TEST(CtcLoss, InfiniteWhereNoAlignmentFits) {
  for (const bool zero_infinity : {true, false}) {
    check({GRAFT_FLOAT64, 0, false, zero_infinity, {{{1, 1}, 2}, {{1, 2}, 3}, {{1, 2, 1}, 2}}});
  }
}

TEST(CtcLoss, NoStepsAtAll) {
  check({GRAFT_FLOAT32, 0, false, true, {{{1, 2}, 0}, {{}, 0}, {{1}, 2}}});
}

TEST(CtcLoss, TargetsThatAreNoLabelAreReported) {
  DeviceTensor probs({2, 1, 3}, GRAFT_FLOAT32), labels({1, 1}, GRAFT_INT64);
  DeviceTensor sizes({1, 3}, GRAFT_INT64), losses({1}, GRAFT_FLOAT32);
  DeviceTensor alpha({1, 2, 3}, GRAFT_FLOAT32);
  probs.set(std::vector<double>(6, -1)), labels.set({7}), sizes.set({2, 1, 0});
  ctc_loss(stream(), {probs, labels, sizes, 0}, losses, alpha);
  EXPECT_THROW(stream().synchronize(), Error);
}

TEST(CtcLoss, RefusesOtherDtypes) {
  DeviceTensor half({2, 1, 3}, GRAFT_FLOAT16), labels({1, 1}, GRAFT_INT64);
  DeviceTensor sizes({1, 3}, GRAFT_INT64), losses({1}, GRAFT_FLOAT16);
  DeviceTensor alpha({1, 2, 3}, GRAFT_FLOAT16);
  EXPECT_THROW(ctc_loss(stream(), {half, labels, sizes, 0}, losses, alpha), Error);
}

}  // namespace

// tests/kernels/index/embedding_bag_test.cpp: bags of rows against loops on the host.
#include "kernels/index/embedding_bag.h"

#include <algorithm>

#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

constexpr int64_t kRows = 7, kN = 70;
const std::vector<double> kIndices{3, 1, 3, 6, 2, 2, 0, 5}, kOffsets{0, 3, 3, 4, 8};

void check(BagMode mode, bool weighted, bool last_offset, graft_dtype dtype) {
  const auto table = numbers(kRows * kN, 1, -2, 2, dtype);
  const auto weights = numbers(8, 2, 0.5, 2, dtype);
  const int64_t bags = last_offset ? 4 : 5;
  std::vector<double> expected(static_cast<size_t>(bags * kN)), rows(expected.size(), -1), sizes;
  for (size_t b = 0; b < static_cast<size_t>(bags); ++b) {
    const size_t end = b + 1 < 5 ? static_cast<size_t>(kOffsets[b + 1]) : 8;
    double size = 0;
    for (size_t i = static_cast<size_t>(kOffsets[b]); i < end; ++i) {
      if (kIndices[i] == 2) continue;
      ++size;
      for (size_t j = 0; j < kN; ++j) {
        double x = table[static_cast<size_t>(kIndices[i]) * kN + j];
        if (weighted) x *= weights[i];
        double& to = expected[b * kN + j];
        if (mode != BagMode::kMax) {
          to += x;
        } else if (rows[b * kN + j] < 0 || x > to) {
          to = x, rows[b * kN + j] = kIndices[i];
        }
      }
    }
    sizes.push_back(size);
    for (size_t j = 0; j < kN && mode == BagMode::kMean; ++j) {
      expected[b * kN + j] /= std::max(size, 1.0);
    }
  }
  DeviceTensor source({kRows, kN}, {1, kRows}, dtype), indices({8}, GRAFT_INT64);
  DeviceTensor offsets({5}, GRAFT_INT64), scale({8}, dtype), output({bags, kN}, dtype);
  DeviceTensor bag({8}, GRAFT_INT64), count({bags}, GRAFT_INT64), from({bags, kN}, GRAFT_INT64);
  source.set(table), indices.set(kIndices), offsets.set(kOffsets), scale.set(weights);
  bag.set(std::vector<double>(8, 9));
  embedding_bag(stream(), {output, bag, count, mode == BagMode::kMax ? &from.view() : nullptr},
                source, indices, offsets, weighted ? &scale.view() : nullptr, mode, 2);
  EXPECT_TRUE(near(output.get(), expected, 2 * tolerance(dtype), 2 * tolerance(dtype)));
  EXPECT_TRUE(near(count.get(), sizes, 0, 0));
  EXPECT_TRUE(near(bag.get(), {0, 0, 0, 2, 3, 3, 3, 3}, 0, 0));
  if (mode == BagMode::kMax) {
    EXPECT_TRUE(near(from.get(), rows, 0, 0));
  }
}

TEST(EmbeddingBag, EveryMode) {
  for (auto dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64, GRAFT_BFLOAT16}) {
    for (auto mode : {BagMode::kSum, BagMode::kMean, BagMode::kMax}) {
      for (bool last_offset : {false, true}) check(mode, false, last_offset, dtype);
    }
    check(BagMode::kSum, true, false, dtype);
  }
}

}  // namespace

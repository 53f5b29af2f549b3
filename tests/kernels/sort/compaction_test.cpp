// tests/kernels/sort/compaction_test.cpp: positions and numbers of marked elements against loops on
// the host.
#include "kernels/sort/compaction.h"

#include <cmath>

#include "runtime/driver/dtype.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

// 0 in two of three places, otherwise 1 or, where the dtype has it, something else that is not 0.
std::vector<double> marks_of(int64_t count, graft_dtype dtype) {
  std::vector<double> x = numbers(count, 7, 0, 3);
  for (double& value : x) {
    value = value < 2 ? 0 : 1;
    if (is_floating(dtype) && value != 0) value = -0.5;
  }
  return x;
}

TEST(Compaction, PositionsOfEveryDtype) {
  for (const graft_dtype dtype :
       {GRAFT_BOOL, GRAFT_UINT8, GRAFT_INT8, GRAFT_INT16, GRAFT_INT32, GRAFT_INT64, GRAFT_FLOAT16,
        GRAFT_BFLOAT16, GRAFT_FLOAT32, GRAFT_FLOAT64}) {
    const auto x = marks_of(3 * 40 * 7, dtype);
    std::vector<double> positions;
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i] == 0) continue;
      positions.push_back(static_cast<double>(i / 280));
      positions.push_back(static_cast<double>(i / 7 % 40));
      positions.push_back(static_cast<double>(i % 7));
    }
    const auto n = static_cast<int64_t>(positions.size() / 3);
    DeviceTensor marks({3, 40, 7}, dtype), count({}, GRAFT_INT64), found({n, 3}, GRAFT_INT64);
    marks.set(x);
    Compaction compaction(stream(), marks);
    compaction.count(count);
    EXPECT_EQ(count.get()[0], static_cast<double>(n));
    compaction.positions(found, 3, marks.view().sizes, n);
    EXPECT_TRUE(near(found.get(), positions, 0, 0)) << name_of(dtype);
  }
}

TEST(Compaction, ManyChunksAndALimit) {
  const int64_t size = 100000;
  const auto x = marks_of(size, GRAFT_BOOL);
  DeviceTensor marks({size}, GRAFT_BOOL), few({10, 1}, GRAFT_INT64), numbers({size}, GRAFT_INT64);
  marks.set(x);
  Compaction compaction(stream(), marks);
  compaction.positions(few, 1, &size, 10);
  compaction.numbers(numbers, nullptr);
  std::vector<double> first, counted;
  double seen = -1;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] != 0 && first.size() < 10) first.push_back(static_cast<double>(i));
    counted.push_back(seen += x[i]);
  }
  EXPECT_TRUE(near(few.get(), first, 0, 0));
  EXPECT_TRUE(near(numbers.get(), counted, 0, 0));
}

TEST(Compaction, NumbersAtPlaces) {
  DeviceTensor marks({5}, GRAFT_BOOL), places({5}, GRAFT_INT64), numbers({5}, GRAFT_INT64);
  marks.set({1, 0, 1, 1, 0});
  places.set({4, 2, 0, 1, 3});
  const TensorView at = places;
  Compaction(stream(), marks).numbers(numbers, &at);
  EXPECT_TRUE(near(numbers.get(), {1, 2, 0, 2, 0}, 0, 0));
}

TEST(Compaction, NothingToCount) {
  DeviceTensor marks({0, 3}, GRAFT_BOOL), count({}, GRAFT_INT64), found({0, 2}, GRAFT_INT64);
  Compaction compaction(stream(), marks);
  compaction.count(count);
  compaction.positions(found, 2, marks.view().sizes, 0);
  EXPECT_EQ(count.get()[0], 0);
}

TEST(Runs, StartWhereElementsDiffer) {
  DeviceTensor x({2, 4}, GRAFT_FLOAT32), marks({2, 4}, GRAFT_BOOL);
  x.set({1, 1, 2, 2, std::nan(""), std::nan(""), -0.0, 0.0});
  mark_runs(stream(), marks, x);
  EXPECT_TRUE(near(marks.get(), {1, 0, 1, 0, 1, 1, 1, 0}, 0, 0));
}

}  // namespace

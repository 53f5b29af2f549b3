// tests/kernels/detection/box_suppression_test.cpp: kept boxes against a plain loop over pairs.
#include "kernels/detection/box_suppression.h"

#include <algorithm>
#include <cmath>

#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

// Step by step in T, as the kernel promises: every product is rounded before it is added.
template <class T>
double overlap(const std::vector<double>& boxes, size_t i, size_t j) {
  const size_t n = boxes.size() / 4;
  const auto at = [&](size_t row, size_t box) { return static_cast<T>(boxes[row * n + box]); };
  const auto area = [&](size_t box) {
    volatile T product = (at(2, box) - at(0, box)) * (at(3, box) - at(1, box));
    return product;
  };
  const T width = std::max<T>(0, std::min(at(2, i), at(2, j)) - std::max(at(0, i), at(0, j)));
  const T height = std::max<T>(0, std::min(at(3, i), at(3, j)) - std::max(at(1, i), at(1, j)));
  volatile T both = width * height, all = area(i) + area(j);
  return static_cast<double>(both / (all - both));
}

template <class T>
std::vector<double> kept_boxes(const std::vector<double>& boxes, double threshold) {
  const size_t n = boxes.size() / 4;
  std::vector<double> kept(n, 1);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; kept[i] != 0 && j < n; ++j) {
      if (overlap<T>(boxes, i, j) > threshold) kept[j] = 0;
    }
  }
  return kept;
}

// Boxes of a grid, so that many overlap by the same share.
std::vector<double> boxes_of(int64_t n, double step, graft_dtype dtype) {
  std::vector<double> boxes = numbers(4 * n, 3, 0, 40, dtype);
  for (size_t i = 0; i < boxes.size(); ++i) {
    boxes[i] = std::floor(boxes[i] / step) * step;
    if (i >= boxes.size() / 2) boxes[i] = boxes[i - boxes.size() / 2] + 1 + boxes[i] / 2;
    boxes[i] = rounded(boxes[i], dtype);
  }
  return boxes;
}

std::vector<double> found(const std::vector<double>& boxes, double threshold, graft_dtype dtype) {
  const int64_t n = static_cast<int64_t>(boxes.size()) / 4;
  DeviceTensor input({4, n}, dtype), kept({n}, GRAFT_BOOL);
  suppress_boxes(stream(), kept, input.set(boxes), threshold);
  return kept.get();
}

TEST(BoxSuppression, KeepsWhatALoopKeeps) {
  for (const int64_t n : {1, 31, 32, 33, 300}) {
    for (const double threshold : {0.0, 0.3, 0.5, 0.7, 1.0}) {
      SCOPED_TRACE(std::to_string(n) + " " + std::to_string(threshold));
      for (const double step : {0.01, 1.0}) {
        const auto single = boxes_of(n, step, GRAFT_FLOAT32);
        EXPECT_EQ(found(single, threshold, GRAFT_FLOAT32), kept_boxes<float>(single, threshold));
      }
    }
  }
  const auto wide = boxes_of(300, 0.01, GRAFT_FLOAT64);
  EXPECT_EQ(found(wide, 0.4, GRAFT_FLOAT64), kept_boxes<double>(wide, 0.4));
}

// A pair that overlaps by the threshold itself stays; a rounding less would move some of these.
TEST(BoxSuppression, RoundsStepByStep) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::vector<double> boxes = numbers(4, seed, 0, 3, GRAFT_FLOAT32);
    const auto far = numbers(4, seed + 100, 10, 20, GRAFT_FLOAT32);
    boxes.insert(boxes.end(), far.begin(), far.end());
    const double exactly = overlap<float>(boxes, 0, 1);
    EXPECT_EQ(found(boxes, exactly, GRAFT_FLOAT32), (std::vector<double>{1, 1})) << seed;
    const double below = std::nextafter(static_cast<float>(exactly), 0.0F);
    EXPECT_EQ(found(boxes, below, GRAFT_FLOAT32), (std::vector<double>{1, 0})) << seed;
  }
}

TEST(BoxSuppression, NumbersThatAreNone) {
  const std::vector<double> boxes = {NAN, 0, 0, 1,  // x1
                                     0,   0, 0, 1,  // y1
                                     4,   4, 4, 1,  // x2: the last is empty
                                     4,   4, 4, 1};
  EXPECT_EQ(found(boxes, 0.5, GRAFT_FLOAT32), (std::vector<double>{1, 1, 0, 1}));
}

TEST(BoxSuppression, RefusesOtherNumbers) {
  DeviceTensor boxes({4, 2}, GRAFT_FLOAT16), kept({2}, GRAFT_BOOL);
  try {
    suppress_boxes(stream(), kept, boxes, 0.5);
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(error.lacks_kernel());
  }
}

}  // namespace

// tests/kernels/loss/multilabel_margin_test.cpp: the hinge loss of several labels and its gradient.
#include "kernels/loss/multilabel_margin.h"

#include <algorithm>

#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

constexpr size_t kSamples = 9, kClasses = 37;

struct Expected {
  std::vector<double> losses, marks, slopes;
};

// As the loss is defined, sample by sample.
Expected expected(const std::vector<double>& scores, const std::vector<double>& labels) {
  Expected all;
  all.marks.assign(scores.size(), 0);
  all.slopes.assign(scores.size(), 0);
  for (size_t base = 0; base < scores.size(); base += kClasses) {
    std::vector<size_t> own;
    for (size_t k = 0; k < kClasses && labels[base + k] >= 0; ++k) {
      own.push_back(base + static_cast<size_t>(labels[base + k]));
      all.marks[own.back()] = 1;
    }
    double sum = 0;
    for (size_t label : own) {
      for (size_t i = base; i < base + kClasses; ++i) {
        const double gap = 1 - scores[label] + scores[i];
        if (all.marks[i] != 0 || gap <= 0) continue;
        sum += gap;
        all.slopes[i] += 1;
        all.slopes[label] -= 1;
      }
    }
    all.losses.push_back(sum / kClasses);
  }
  return all;
}

// Sample s has s labels, the last one all of them.
std::vector<double> some_labels() {
  std::vector<double> labels(kSamples * kClasses, -1);
  for (size_t s = 0; s < kSamples; ++s) {
    const size_t count = s + 1 == kSamples ? kClasses : s;
    for (size_t k = 0; k < count; ++k) {
      labels[s * kClasses + k] = static_cast<double>((k * 11 + s) % kClasses);
    }
    if (count + 1 < kClasses) labels[s * kClasses + count + 1] = 3;  // behind the end: not a label
  }
  return labels;
}

TEST(MultilabelMargin, LossMarksAndGradient) {
  for (const graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64, GRAFT_BFLOAT16}) {
    const auto x = numbers(kSamples * kClasses, 8, -2, 2, dtype);
    const Expected right = expected(x, some_labels());
    DeviceTensor scores({kSamples, kClasses}, dtype), labels({kSamples, kClasses}, GRAFT_INT64);
    DeviceTensor losses({kSamples}, dtype), marks({kSamples, kClasses}, dtype);
    DeviceTensor slopes({kSamples, kClasses}, dtype);
    scores.set(x);
    labels.set(some_labels());
    multilabel_margin(stream(), losses, marks, scores, labels);
    multilabel_margin_backward(stream(), slopes, scores, labels, marks);
    EXPECT_TRUE(near(losses.get(), right.losses, tolerance(dtype) * 4, 1e-6)) << name_of(dtype);
    EXPECT_TRUE(near(marks.get(), right.marks, 0, 0));
    EXPECT_TRUE(near(slopes.get(), right.slopes, tolerance(dtype), 0)) << name_of(dtype);
  }
}

TEST(MultilabelMargin, LabelsBeyondTheClassesAreReported) {
  DeviceTensor scores({1, 3}, GRAFT_FLOAT32), labels({1, 3}, GRAFT_INT64);
  DeviceTensor losses({1}, GRAFT_FLOAT32), marks({1, 3}, GRAFT_FLOAT32);
  scores.set({1, 2, 3});
  labels.set({0, 7, -1});
  multilabel_margin(stream(), losses, marks, scores, labels);
  EXPECT_THROW(stream().synchronize(), Error);
  stream().synchronize();
}

}  // namespace

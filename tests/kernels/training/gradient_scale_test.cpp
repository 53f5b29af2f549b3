// tests/kernels/training/gradient_scale_test.cpp: unscaling of gradients and the steps of the
// scale.
#include "kernels/training/gradient_scale.h"

#include <cmath>
#include <deque>

#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

TEST(GradientScale, UnscalesListsOfSeveralDtypes) {
  std::deque<DeviceTensor> tensors;
  std::vector<std::vector<double>> values;
  std::vector<TensorView> views;
  const graft_dtype dtypes[] = {GRAFT_FLOAT32, GRAFT_BFLOAT16, GRAFT_FLOAT64, GRAFT_FLOAT16};
  for (unsigned i = 0; i < 22; ++i) {
    const int64_t count = i == 7 ? 0 : i == 9 ? 30000 : 1 + i * 11;
    const graft_dtype dtype = dtypes[i % 4];
    tensors.emplace_back(std::vector<int64_t>{count}, dtype);
    values.push_back(numbers(count, i, -2, 2, dtype));
    tensors.back().set(values.back());
    views.push_back(tensors.back());
  }
  DeviceTensor found({}, GRAFT_FLOAT32), inverse({}, GRAFT_FLOAT32);
  found.set({0}), inverse.set({0.125});
  unscale_gradients(stream(), views, found, inverse);
  EXPECT_EQ(found.get()[0], 0);
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (double& value : values[i]) value *= 0.125;
    EXPECT_TRUE(near(tensors[i].get(), values[i], 1e-6, 1e-7)) << i;
  }
}

TEST(GradientScale, FindsWhatIsNotFinite) {
  for (double bad : {static_cast<double>(INFINITY), -static_cast<double>(INFINITY), std::nan("")}) {
    for (size_t position : {0u, 8191u, 8192u, 9999u}) {
      std::vector<double> values(10000, 1.0);
      values[position] = bad;
      DeviceTensor gradient({10000}, GRAFT_FLOAT32), found({}, GRAFT_FLOAT32),
          inverse({}, GRAFT_FLOAT32);
      gradient.set(values), found.set({0}), inverse.set({1});
      unscale_gradients(stream(), std::vector<TensorView>{gradient}, found, inverse);
      EXPECT_EQ(found.get()[0], 1) << bad << " at " << position;
      EXPECT_EQ(gradient.get()[1], 1);
    }
  }
}

TEST(GradientScale, GrowsAndBacksOff) {
  DeviceTensor scale({}, GRAFT_FLOAT32), tracker({}, GRAFT_INT32), found({}, GRAFT_FLOAT32);
  const auto step = [&](double scale_now, double tracker_now, double found_now) {
    scale.set({scale_now}), tracker.set({tracker_now}), found.set({found_now});
    update_scale(stream(), scale, tracker, found, 2.0, 0.5, 3);
    return std::vector<double>{scale.get()[0], tracker.get()[0]};
  };
  EXPECT_EQ(step(16, 0, 0), (std::vector<double>{16, 1}));
  EXPECT_EQ(step(16, 2, 0), (std::vector<double>{32, 0}));
  EXPECT_EQ(step(16, 2, 1), (std::vector<double>{8, 0}));
  EXPECT_EQ(step(3e38, 2, 0), (std::vector<double>{rounded(3e38, GRAFT_FLOAT32), 0}));
}

}  // namespace

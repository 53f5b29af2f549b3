// tests/kernels/launch/assertion_test.cpp: conditions on data are reported at the next
// synchronisation.
#include "kernels/launch/assertion.h"

#include <cmath>
#include <limits>
#include <string>

#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

std::string report() {
  try {
    stream().synchronize();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), GRAFT_INVALID_ARGUMENT);
    return error.what();
  }
  return "";
}

std::string checked(double smallest, double largest, graft_dtype dtype) {
  DeviceTensor low({1}, dtype), high({1}, dtype);
  low.set({smallest});
  high.set({largest});
  require_within(stream(), low, high, 0, 1, "not a probability");
  return report();
}

TEST(Assertion, HoldsWithinAndAtTheBounds) {
  for (const graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64, GRAFT_BFLOAT16, GRAFT_INT32}) {
    EXPECT_EQ(checked(0, 1, dtype), "") << name_of(dtype);
    EXPECT_EQ(checked(1, 1, dtype), "") << name_of(dtype);
  }
  EXPECT_EQ(checked(1, 1, GRAFT_BOOL), "");
}

TEST(Assertion, ReportsOnceWithItsMessage) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  struct Case {
    double low, high;
  };
  for (const Case c :
       {Case{-0.5, 1}, Case{0, 1.5}, Case{nan, 1}, Case{0, nan}, Case{0, infinity}}) {
    const std::string found = checked(c.low, c.high, GRAFT_FLOAT32);
    EXPECT_NE(found.find("not a probability"), std::string::npos) << c.low << " " << c.high;
    EXPECT_EQ(report(), "") << "the record was not cleared";
  }
}

TEST(Assertion, EarlierFailuresSurviveLaterSuccesses) {
  DeviceTensor bad({1}, GRAFT_FLOAT32), good({1}, GRAFT_FLOAT32);
  bad.set({2});
  good.set({0.5});
  require_within(stream(), bad, bad, 0, 1, "first");
  require_within(stream(), good, good, 0, 1, "second");
  EXPECT_NE(report().find("first"), std::string::npos);
}

TEST(Assertion, FindsAZeroAnywhere) {
  for (const graft_dtype dtype : {GRAFT_UINT8, GRAFT_INT32, GRAFT_INT64, GRAFT_BOOL}) {
    for (const int64_t count : {1, 100, 70000}) {
      DeviceTensor integers({count}, dtype);
      std::vector<double> values(static_cast<size_t>(count), 1);
      const auto found = [&](const TensorView& view) {
        integers.set(values);
        require_nonzero(stream(), view, "divided by zero");
        return report().find("divided by zero") != std::string::npos;
      };
      EXPECT_FALSE(found(integers));
      values.back() = 0;
      EXPECT_TRUE(found(integers)) << name_of(dtype) << count;
      EXPECT_EQ(found(integers.as({3, count / 2 + 1}, {0, 1})), count == 1);
      EXPECT_FALSE(found(integers.as({3, 0}, {0, 1})));
    }
  }
}

}  // namespace

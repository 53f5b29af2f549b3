// tests/kernels/move/fill_test.cpp: fills of every dtype, with and without gaps.
#include "kernels/move/fill.h"

#include <gtest/gtest.h>

#include "tests/kernels/tensor/device_tensor.h"

namespace graft {
namespace {

using test::DeviceTensor;
using test::stream;

TEST(Fill, EveryDtype) {
  for (graft_dtype dtype :
       {GRAFT_BOOL, GRAFT_UINT8, GRAFT_INT8, GRAFT_INT16, GRAFT_INT32, GRAFT_INT64, GRAFT_FLOAT16,
        GRAFT_BFLOAT16, GRAFT_FLOAT32, GRAFT_FLOAT64}) {
    DeviceTensor a({3, 5}, dtype);
    fill(stream(), a, Scalar::of<int64_t>(1));
    EXPECT_EQ(a.get(), std::vector<double>(15, 1.0)) << name_of(dtype);
  }
}

TEST(Fill, LeavesGapsAlone) {
  DeviceTensor a({12}, GRAFT_FLOAT32);
  fill(stream(), a, Scalar::of(0.0));
  fill(stream(), a.as({2, 3}, {6, 2}), Scalar::of(2.5));
  EXPECT_EQ(a.get(), (std::vector<double>{2.5, 0, 2.5, 0, 2.5, 0, 2.5, 0, 2.5, 0, 2.5, 0}));
}

TEST(Fill, TransposedMemoryHasNoGaps) {
  DeviceTensor a({6}, GRAFT_INT32);
  fill(stream(), a.as({2, 3}, {1, 2}), Scalar::of<int64_t>(-7));
  EXPECT_EQ(a.get(), std::vector<double>(6, -7.0));
}

TEST(Fill, ComplexNumbers) {
  DeviceTensor a({4}, GRAFT_FLOAT32);
  TensorView pairs = a.as({2}, {1});
  pairs.dtype = GRAFT_COMPLEX64;
  Scalar value = Scalar::of(GRAFT_COMPLEX128, 1.5);
  value.bits[1] = Scalar::of(-2.0).bits[0];
  fill(stream(), pairs, value);
  EXPECT_EQ(a.get(), (std::vector<double>{1.5, -2, 1.5, -2}));
}

TEST(Scalar, ConvertsAsTensorsDo) {
  EXPECT_EQ(Scalar::of(3.7).to(GRAFT_INT32).real(), 3);
  EXPECT_EQ(Scalar::of(-3.7).to(GRAFT_INT8).real(), -3);
  EXPECT_EQ(Scalar::of<int64_t>(300).to(GRAFT_UINT8).real(), 44);
  EXPECT_EQ(Scalar::of(0.1).to(GRAFT_BOOL).real(), 1);
  EXPECT_EQ(Scalar::of(65504.0).to(GRAFT_FLOAT16).real(), 65504);
  EXPECT_EQ(Scalar::of(1e-7).to(GRAFT_FLOAT16).real(), 0x1p-23);
  EXPECT_EQ(Scalar::of(1.00390625).to(GRAFT_BFLOAT16).real(), 1.0);
  EXPECT_EQ(Scalar::of<int64_t>(-1).to(GRAFT_FLOAT64).real(), -1);
}

}  // namespace
}  // namespace graft

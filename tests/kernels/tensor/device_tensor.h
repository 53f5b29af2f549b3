// tests/kernels/tensor/device_tensor.h: a tensor on the device under test, filled and read back as
// doubles.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "kernels/tensor/view.h"
#include "runtime/platform/device.h"
#include "runtime/stream/stream.h"

namespace graft::test {

// The first device of the built driver that GRAFT_TEST_DRIVER names ("opencl"; unset: "host"), or
// of the one whose file it is the path of (".../graft_limited.so"); opened once per process.
Device& device();
Stream& stream();

// Memory and a view of it. Values travel as double (integers up to 2^53 are exact).
class DeviceTensor {
 public:
  // Contiguous; every byte is 0xA5 until written, so that forgotten elements show.
  DeviceTensor(std::vector<int64_t> sizes, graft_dtype dtype);
  // With strides in elements; the memory spans from 0 to the last element.
  DeviceTensor(std::vector<int64_t> sizes, std::vector<int64_t> strides, graft_dtype dtype);
  ~DeviceTensor();
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;

  const TensorView& view() const { return view_; }
  operator const TensorView&() const { return view_; }
  // View of the same memory with other sizes and strides.
  TensorView as(std::vector<int64_t> sizes, std::vector<int64_t> strides) const;
  // The view with stride 0 in the given dimensions, whose sizes become those of like.
  TensorView spread(const TensorView& like, std::vector<int> dims) const;

  // values in row-major order of the sizes, rounded to the dtype.
  DeviceTensor& set(const std::vector<double>& values);
  // Synchronises the stream first.
  std::vector<double> get() const;

 private:
  TensorView view_{};
  uint64_t bytes_ = 0;
  Block* block_ = nullptr;
};

// Rounds as a tensor of that dtype stores it.
double rounded(double value, graft_dtype dtype);

// Seeded values in [low, high), rounded to the dtype.
std::vector<double> numbers(int64_t count, unsigned seed, double low = -2, double high = 2,
                            graft_dtype dtype = GRAFT_FLOAT64);

// Compares element by element: |a - e| <= absolute + relative |e|; NaN equals NaN, infinities too.
::testing::AssertionResult near(const std::vector<double>& actual,
                                const std::vector<double>& expected, double relative,
                                double absolute);

// A relative tolerance for sums in that dtype.
double tolerance(graft_dtype dtype);

}  // namespace graft::test

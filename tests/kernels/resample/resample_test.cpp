// tests/kernels/resample/resample_test.cpp: maps along dimensions against sums over dense matrices.
#include "kernels/resample/resample.h"

#include "kernels/pooling/window_average.h"
#include "kernels/resample/upsample.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

using Line = std::vector<double>;

// values [outer, map.from, inner] mapped to [outer, map.to, inner].
Line mapped(const Line& values, const LinearMap& map, int64_t inner) {
  const int64_t outer = static_cast<int64_t>(values.size()) / map.from / inner;
  Line result(static_cast<size_t>(outer * map.to * inner));
  for (const Tap& tap : map.list) {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        result[static_cast<size_t>((o * map.to + tap.to) * inner + i)] +=
            tap.weight * values[static_cast<size_t>((o * map.from + tap.from) * inner + i)];
      }
    }
  }
  return result;
}

LinearMap random_map(int64_t to, int64_t from, int64_t most, unsigned seed) {
  LinearMap map{to, from, {}};
  const auto draws = numbers(to * (most + 1) * 2, seed, 0, 1);
  size_t next = 0;
  for (int64_t i = 0; i < to; ++i) {
    const int64_t count = static_cast<int64_t>(draws[next++] * static_cast<double>(most + 1));
    for (int64_t k = 0; k < count; ++k) {
      const auto source = static_cast<int64_t>(draws[next++] * static_cast<double>(from));
      map.add(i, source, draws[(next + 7) % draws.size()]);
    }
  }
  return map;
}

void check(const LinearMap& rows, const LinearMap& columns, graft_dtype dtype, bool channels_last) {
  const int64_t n = 2, c = 3;
  const auto x = numbers(n * c * rows.from * columns.from, 1, -2, 2, dtype);
  const auto expected = mapped(mapped(x, columns, 1), rows, columns.to);
  auto strides = [&](int64_t h, int64_t w) -> std::vector<int64_t> {
    if (channels_last) return {h * w * c, 1, w * c, c};
    return {c * h * w, h * w, w, 1};
  };
  DeviceTensor input({n, c, rows.from, columns.from}, strides(rows.from, columns.from), dtype);
  DeviceTensor output({n, c, rows.to, columns.to}, strides(rows.to, columns.to), dtype);
  input.set(x);
  const LinearMap maps[] = {rows, columns};
  resample(stream(), output, input, maps);
  const double t = 8 * tolerance(dtype);
  EXPECT_TRUE(near(output.get(), expected, t, t));
}

TEST(Resample, AnyMapsInAnyLayout) {
  for (auto dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64, GRAFT_BFLOAT16}) {
    for (bool last : {false, true}) {
      SCOPED_TRACE(std::string(name_of(dtype)) + (last ? " channels last" : ""));
      check(random_map(9, 7, 3, 1), random_map(300, 21, 4, 2), dtype, last);
      check(random_map(5, 11, 20, 3), random_map(4, 40, 30, 4), dtype, last);
      check(random_map(1, 1, 1, 5), random_map(2, 6, 9, 6), dtype, last);
      check(LinearMap::identity(4), random_map(6, 6, 3, 7), dtype, last);
      check(LinearMap::identity(4), LinearMap::identity(5), dtype, last);
    }
  }
}

TEST(Resample, StepsAndGapsOfBothSides) {
  const LinearMap map = random_map(5, 7, 3, 8);
  const auto x = numbers(4 * 7, 2);
  DeviceTensor input({4, 7}, {15, 2}, GRAFT_FLOAT64), output({4, 5}, {3, 13}, GRAFT_FLOAT64);
  input.set(x);
  resample(stream(), output, input, {&map, 1});
  EXPECT_TRUE(near(output.get(), mapped(x, map, 1), 1e-12, 1e-12));
}

TEST(Resample, PicksMoveAnyDtype) {
  const LinearMap map = reflection_taps(5, 2, 3);
  for (auto dtype : {GRAFT_BOOL, GRAFT_UINT8, GRAFT_INT16, GRAFT_INT64, GRAFT_FLOAT16}) {
    const auto x = numbers(3 * 5, 3, 0, 1.99, dtype);
    DeviceTensor input({3, 5}, dtype), output({3, 10}, dtype);
    input.set(x);
    const auto exact = input.get();
    resample(stream(), output, input, {&map, 1});
    EXPECT_TRUE(near(output.get(), mapped(exact, map, 1), 0, 0)) << name_of(dtype);
  }
}

TEST(Resample, BytesRoundOnceForEachDimension) {
  const LinearMap map = linear_taps({2, 4, false, {}, true});
  DeviceTensor input({2}, GRAFT_UINT8), output({4}, GRAFT_UINT8);
  input.set({10, 21});
  resample_bytes(stream(), output, input, {&map, 1});
  EXPECT_TRUE(near(output.get(), {10, 13, 18, 21}, 0, 0));
}

TEST(Resample, IntegersAreSummedExactlyAndBoolIsWhetherAnyIs) {
  const LinearMap map = average_taps({5, 3, 3, 2, 1, true, true});
  DeviceTensor input({5}, GRAFT_INT64), output({3}, GRAFT_INT64);
  constexpr double kTwoTo53 = 9007199254740992;  // float64 would lose the ones beside it
  input.set({0, 1, kTwoTo53, 1, 5});
  resample(stream(), output, input, {&map, 1});
  EXPECT_TRUE(near(output.get(), {1, kTwoTo53 + 2, 6}, 0, 0));
  const LinearMap two[] = {map, {2, 5, {{0, 1}, {0, 2}, {0, 3}}}};
  DeviceTensor flags({5, 5}, GRAFT_BOOL), any({3, 2}, GRAFT_BOOL);
  std::vector<double> x(25, 0);
  x[3] = x[7] = x[8] = 1;
  flags.set(x);
  resample(stream(), any, flags, two);
  EXPECT_TRUE(near(any.get(), {1, 0, 1, 0, 0, 0}, 0, 0));
}

TEST(Resample, RefusesWeightsOnIntegersAndMapsThatDoNotFit) {
  const LinearMap map = linear_taps({2, 3, false, {}, true});
  DeviceTensor input({2}, GRAFT_INT32), output({3}, GRAFT_INT32), other({4}, GRAFT_INT32);
  EXPECT_THROW(resample(stream(), output, input, {&map, 1}), Error);
  EXPECT_THROW(resample(stream(), other, input, {&map, 1}), Error);
}

}  // namespace

// tests/kernels/index/index_test.cpp: selecting, gathering, scattering and joining against loops.
#include "kernels/index/index.h"

#include "kernels/index/embedding.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

TEST(IndexSelect, RowsAndColumns) {
  const auto x = numbers(5 * 6 * 7, 1, -9, 9, GRAFT_INT32);
  for (auto dtype : {GRAFT_FLOAT32, GRAFT_BFLOAT16, GRAFT_INT64, GRAFT_BOOL}) {
    for (int dim = 0; dim < 3; ++dim) {
      DeviceTensor input({5, 6, 7}, dtype), indices({4}, GRAFT_INT64);
      input.set(x), indices.set({4, 0, 4, 1});
      std::vector<int64_t> sizes{5, 6, 7};
      sizes[static_cast<size_t>(dim)] = 4;
      DeviceTensor output(sizes, dtype);
      index_select(stream(), output, input, dim, indices);
      const auto values = input.get(), y = output.get();
      const int64_t picked[] = {4, 0, 4, 1};
      for (int64_t i = 0; i < output.view().count(); ++i) {
        int64_t at[3] = {i / sizes[2] / sizes[1], i / sizes[2] % sizes[1], i % sizes[2]};
        at[dim] = picked[at[dim]];
        EXPECT_EQ(y[static_cast<size_t>(i)],
                  values[static_cast<size_t>((at[0] * 6 + at[1]) * 7 + at[2])]);
      }
    }
  }
}

TEST(IndexSelect, ReportsAnIndexOutOfRange) {
  DeviceTensor input({3, 2}, GRAFT_FLOAT32), indices({2}, GRAFT_INT64),
      output({2, 2}, GRAFT_FLOAT32);
  input.set({0, 1, 2, 3, 4, 5});
  for (const int64_t bad : {3, -1, 12345}) {
    indices.set({1, static_cast<double>(bad)});
    index_select(stream(), output, input, 0, indices);
    try {
      stream().synchronize();
      ADD_FAILURE() << "index " << bad << " of 3 rows went unnoticed";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(std::to_string(bad)), std::string::npos)
          << error.what();
    }
  }
  indices.set({2, 0});
  index_select(stream(), output, input, 0, indices);
  EXPECT_TRUE(near(output.get(), {4, 5, 0, 1}, 0, 0));
}

TEST(Gather, AlongEachDimension) {
  const auto x = numbers(4 * 5, 1);
  const auto at = numbers(3 * 5, 2, 0, 3.9, GRAFT_INT64);
  DeviceTensor input({4, 5}, GRAFT_FLOAT64), index({3, 5}, GRAFT_INT64),
      output({3, 5}, GRAFT_FLOAT64);
  input.set(x), index.set(at);
  gather(stream(), output, input, 0, index);
  std::vector<double> expected;
  for (size_t i = 0; i < 15; ++i) expected.push_back(x[static_cast<size_t>(at[i]) * 5 + i % 5]);
  EXPECT_TRUE(near(output.get(), expected, 0, 0));
  gather(stream(), output, input, 1, index);
  for (size_t i = 0; i < 15; ++i) expected[i] = x[i / 5 * 5 + static_cast<size_t>(at[i])];
  EXPECT_TRUE(near(output.get(), expected, 0, 0));
}

// Long dense rows along either dimension, 8-byte and narrower elements, int32 indices too.
TEST(Gather, DenseRows) {
  const int64_t rows = 7, columns = 133;
  for (graft_dtype dtype : {GRAFT_FLOAT64, GRAFT_FLOAT32, GRAFT_BFLOAT16, GRAFT_BOOL}) {
    for (int dim : {0, 1}) {
      DeviceTensor input({rows, columns}, dtype), index({rows, columns}, GRAFT_INT64);
      DeviceTensor output({rows, columns}, dtype);
      const auto at = numbers(rows * columns, 2, 0, dim == 0 ? 6.9 : 132.9, GRAFT_INT64);
      input.set(numbers(rows * columns, 1, -2, 2, dtype)), index.set(at);
      const auto x = input.get();
      std::vector<double> expected;
      for (size_t i = 0; i < at.size(); ++i) {
        const size_t row = i / 133, column = i % 133, picked = static_cast<size_t>(at[i]);
        expected.push_back(dim == 0 ? x[picked * 133 + column] : x[row * 133 + picked]);
      }
      gather(stream(), output, input, dim, index);
      EXPECT_EQ(output.get(), expected) << name_of(dtype) << dim;
    }
  }
}

TEST(Scatter, EveryMode) {
  const auto x = numbers(6 * 4, 1), y = numbers(9 * 4, 3);
  const auto at = numbers(9 * 4, 2, 0, 5.9, GRAFT_INT64);
  for (auto mode : {ScatterMode::kReplace, ScatterMode::kAdd, ScatterMode::kMultiply,
                    ScatterMode::kMax, ScatterMode::kMin}) {
    DeviceTensor to({6, 4}, GRAFT_FLOAT64), index({9, 4}, GRAFT_INT64), from({9, 4}, GRAFT_FLOAT64);
    to.set(x), index.set(at), from.set(y);
    auto expected = x;
    for (size_t i = 0; i < y.size(); ++i) {
      double& e = expected[static_cast<size_t>(at[i]) * 4 + i % 4];
      if (mode == ScatterMode::kReplace) e = y[i];
      if (mode == ScatterMode::kAdd) e += y[i];
      if (mode == ScatterMode::kMultiply) e *= y[i];
      if (mode == ScatterMode::kMax) e = std::max(e, y[i]);
      if (mode == ScatterMode::kMin) e = std::min(e, y[i]);
    }
    scatter(stream(), to, 0, index, from, mode);
    EXPECT_TRUE(near(to.get(), expected, 1e-13, 0)) << static_cast<int>(mode);
  }
}

// One index for each row of 300 numbers, in an outer and an inner dimension.
TEST(Scatter, RowsInEveryMode) {
  const size_t columns = 300;
  const std::vector<int64_t> at = {4, 0, 4, 5, 1, 4, 0};
  for (auto mode : {ScatterMode::kReplace, ScatterMode::kAdd, ScatterMode::kMultiply,
                    ScatterMode::kMax, ScatterMode::kMin}) {
    for (graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_BFLOAT16, GRAFT_INT32}) {
      const int64_t width = static_cast<int64_t>(columns);
      DeviceTensor to({2, 6, width}, dtype), index({7}, GRAFT_INT64), from({2, 7, width}, dtype);
      index.set(std::vector<double>(at.begin(), at.end()));
      to.set(numbers(2 * 6 * width, 1, -4, 4, dtype));
      from.set(numbers(2 * 7 * width, 2, -4, 4, dtype));
      auto expected = to.get();
      const auto y = from.get();
      for (size_t i = 0; i < y.size(); ++i) {
        const size_t outer = i / (7 * columns), row = i / columns % 7;
        double& e = expected[(outer * 6 + static_cast<size_t>(at[row])) * columns + i % columns];
        if (mode == ScatterMode::kReplace) e = y[i];
        // Half types are summed in float32 and rounded below.
        const graft_dtype wide = is_half(dtype) ? GRAFT_FLOAT32 : dtype;
        if (mode == ScatterMode::kAdd) e = rounded(e + y[i], wide);
        if (mode == ScatterMode::kMultiply) e = rounded(e * y[i], dtype);
        if (mode == ScatterMode::kMax) e = std::max(e, y[i]);
        if (mode == ScatterMode::kMin) e = std::min(e, y[i]);
      }
      for (double& e : expected) e = rounded(e, dtype);
      scatter(stream(), to, 1, index.as({2, 7, width}, {0, 1, 0}), from, mode);
      EXPECT_EQ(to.get(), expected) << static_cast<int>(mode) << name_of(dtype);
    }
  }
}

// x[rows, :, columns] with the preparation that the contract asks for.
TEST(Index, TwoIndexedDimensions) {
  const auto x = numbers(4 * 3 * 5, 1);
  DeviceTensor input({4, 3, 5}, GRAFT_FLOAT32), rows({6}, GRAFT_INT64), columns({6}, GRAFT_INT64);
  DeviceTensor output({6, 3}, GRAFT_FLOAT32);
  const std::vector<double> r{0, 3, -1, 2, 1, 3}, c{4, 0, 2, -5, 3, 0};
  input.set(x), rows.set(r), columns.set(c);
  const TensorView restrided = input.as({6, 3}, {0, 5});
  const TensorView indices[2] = {rows.as({6, 3}, {1, 0}), columns.as({6, 3}, {1, 0})};
  const int64_t sizes[2] = {4, 5}, strides[2] = {15, 1};
  index(stream(), output, restrided, indices, sizes, strides);
  std::vector<double> expected, grad(x.size());
  const auto g = numbers(18, 2);
  for (size_t i = 0; i < 18; ++i) {
    const size_t row = static_cast<size_t>(r[i / 3] < 0 ? r[i / 3] + 4 : r[i / 3]);
    const size_t column = static_cast<size_t>(c[i / 3] < 0 ? c[i / 3] + 5 : c[i / 3]);
    expected.push_back(rounded(x[row * 15 + i % 3 * 5 + column], GRAFT_FLOAT32));
    grad[row * 15 + i % 3 * 5 + column] += g[i];
  }
  EXPECT_TRUE(near(output.get(), expected, 0, 0));
  DeviceTensor to({4, 3, 5}, GRAFT_FLOAT32);
  to.set(std::vector<double>(60, 0.0)), output.set(g);
  index_put(stream(), to.as({6, 3}, {0, 5}), output, indices, sizes, strides, true);
  EXPECT_TRUE(near(to.get(), grad, 1e-6, 1e-6));
}

// to[a, rows, b] += values: what lies before and behind the indexed dimension goes side by side.
TEST(IndexPut, AddsRowsInOrder) {
  for (const int64_t n : {1, 7, 96, 200}) {
    const int64_t a = 3, rows = 5, count = 40;
    const auto values = numbers(a * count * n, 1, -1, 1, GRAFT_FLOAT32);
    const auto at = numbers(count, 2, -5, 4.9, GRAFT_INT64);
    std::vector<double> expected(static_cast<size_t>(a * rows * n), 1);
    for (int64_t i = 0; i < a * count * n; ++i) {
      const auto given = static_cast<int64_t>(at[static_cast<size_t>(i / n % count)]);
      const int64_t row = given < 0 ? given + rows : given;
      expected[static_cast<size_t>((i / n / count * rows + row) * n + i % n)] +=
          values[static_cast<size_t>(i)];
    }
    DeviceTensor to({a, rows, n}, GRAFT_FLOAT32), from({a, count, n}, GRAFT_FLOAT32);
    DeviceTensor indices({count}, GRAFT_INT64);
    to.set(std::vector<double>(expected.size(), 1)), from.set(values), indices.set(at);
    const TensorView index = indices.as({a, count, n}, {0, 1, 0});
    index_put(stream(), to.as({a, count, n}, {rows * n, 0, 1}), from, {&index, 1}, {&rows, 1},
              {&n, 1}, true);
    EXPECT_TRUE(near(to.get(), expected, 1e-5, 1e-5)) << n;
  }
}

// labels: few_parameters
TEST(Cat, AlongEachDimensionAndAcrossDtypes) {
  const auto x = numbers(6, 1, -9, 9, GRAFT_INT32), y = numbers(9, 2, -9, 9, GRAFT_INT32);
  DeviceTensor a({2, 3}, GRAFT_FLOAT32), b({3, 3}, GRAFT_INT32), rows({5, 3}, GRAFT_FLOAT32);
  a.set(x), b.set(y);
  const TensorView both[2] = {a, b};
  cat(stream(), rows, both, 0);
  auto expected = x;
  expected.insert(expected.end(), y.begin(), y.end());
  EXPECT_TRUE(near(rows.get(), expected, 0, 0));
  DeviceTensor columns({2, 6}, GRAFT_FLOAT32);
  const TensorView twice[2] = {a, a};
  cat(stream(), columns, twice, 1);
  EXPECT_TRUE(near(columns.get(),
                   {x[0], x[1], x[2], x[0], x[1], x[2], x[3], x[4], x[5], x[3], x[4], x[5]}, 0, 0));
}

// labels: few_parameters
TEST(Cat, ManySmallInputsInFewLaunches) {
  const int64_t lines = 3, count = 20;
  for (graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64, GRAFT_INT16, GRAFT_UINT8}) {
    for (int dim : {0, 1}) {
      std::deque<DeviceTensor> inputs;
      std::vector<std::vector<double>> values;
      int64_t total = 0;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t n = 16 + 331 * i % 5000;  // some cross the tile of a work-item
        total += n;
        const std::vector<int64_t> sizes = dim == 0 ? std::vector{n, lines} : std::vector{lines, n};
        values.push_back(numbers(lines * n, static_cast<int>(i), 0, 99, dtype));
        inputs.emplace_back(sizes, dtype);
        inputs.back().set(values.back());
      }
      std::vector<double> expected;
      for (int64_t row = 0; row < (dim == 0 ? 1 : lines); ++row) {
        for (const auto& one : values) {
          const auto piece = static_cast<int64_t>(one.size()) / (dim == 0 ? 1 : lines);
          expected.insert(expected.end(), one.begin() + row * piece,
                          one.begin() + (row + 1) * piece);
        }
      }
      DeviceTensor joined(dim == 0 ? std::vector{total, lines} : std::vector{lines, total}, dtype);
      const std::vector<TensorView> views(inputs.begin(), inputs.end());
      const uint64_t launches = stream().counts().launches;
      cat(stream(), joined, views, dim);
      EXPECT_LE(stream().counts().launches - launches, 2u);
      EXPECT_TRUE(near(joined.get(), expected, 0, 0)) << name_of(dtype) << dim;
    }
  }
}

TEST(Embedding, GradientSumsInOrder) {
  const int64_t rows = 7, n = 37, count = 50;
  const auto g = numbers(count * n, 1, -1, 1, GRAFT_FLOAT32);
  const auto at = numbers(count, 2, 0, 6.9, GRAFT_INT64);
  for (bool scale : {false, true}) {
    std::vector<double> expected(static_cast<size_t>(rows * n)), occurs(rows);
    for (double i : at) ++occurs[static_cast<size_t>(i)];
    for (size_t i = 0; i < g.size(); ++i) {
      const size_t row = static_cast<size_t>(at[i / n]);
      if (row == 3) continue;
      expected[row * n + i % n] += scale ? g[i] / occurs[row] : g[i];
    }
    DeviceTensor weight({rows, n}, GRAFT_FLOAT32), grad({count, n}, GRAFT_FLOAT32);
    DeviceTensor indices({count}, GRAFT_INT64);
    grad.set(g), indices.set(at);
    embedding_dense_backward(stream(), weight, grad, indices, 3, scale);
    EXPECT_TRUE(near(weight.get(), expected, 1e-5, 1e-5));
  }
}

}  // namespace

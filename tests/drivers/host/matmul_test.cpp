// tests/drivers/host/matmul_test.cpp: graft.blas of the host driver against a plain triple loop.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <optional>

#include "driver.h"
#include "graft/extensions.h"

namespace graft::host_test {
// labels of the file: onednn
namespace {

const graft_blas_table* blas() {
  const void* table = nullptr;
  if (driver().extension("graft.blas", 1, &table) != GRAFT_OK) return nullptr;
  return static_cast<const graft_blas_table*>(table);
}

graft_tensor tensor(std::vector<int64_t> sizes, std::vector<int64_t> strides) {
  graft_tensor t = {GRAFT_FLOAT32, uint32_t(sizes.size()), {}, {}};
  std::copy(sizes.begin(), sizes.end(), t.sizes);
  std::copy(strides.begin(), strides.end(), t.strides);
  return t;
}

uint64_t extent(const graft_tensor& t) {
  uint64_t last = 0;
  for (uint32_t i = 0; i < t.rank; ++i) last += uint64_t((t.sizes[i] - 1) * t.strides[i]);
  return last + 1;
}

float at(const std::vector<float>& x, const graft_tensor& t, int64_t batch, int64_t i, int64_t j) {
  int64_t base = t.rank == 3 ? batch * t.strides[0] : 0;
  return x[size_t(base + i * t.strides[t.rank - 2] + j * t.strides[t.rank - 1])];
}

double activated(uint32_t kind, double x) {
  switch (kind) {
    case GRAFT_EPILOGUE_RELU:
      return std::max(x, 0.0);
    case GRAFT_EPILOGUE_MINIMUM:
      return std::min(x, 0.5);
    case GRAFT_EPILOGUE_GELU:
      return x / 2 * (1 + std::erf(x / std::numbers::sqrt2));
    case GRAFT_EPILOGUE_GELU_TANH:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case GRAFT_EPILOGUE_SILU:
      return x / (1 + std::exp(-x));
    default:
      return x;
  }
}

struct Case {
  Session session;
  Data data{session, 7};
  std::optional<float> first;  // of a

  // epilogues in any order; operands: a bias of n values, an added tensor laid out as c.
  void check(graft_tensor a, graft_tensor b, graft_tensor c,
             std::vector<graft_epilogue> epilogues) {
    graft_matmul m = {};
    m.struct_size = sizeof m;
    m.a = a;
    m.b = b;
    m.c = c;
    m.epilogue_count = uint32_t(epilogues.size());
    std::copy(epilogues.begin(), epilogues.end(), m.epilogues);
    graft_plan_needs needs = {};
    graft_plan plan = nullptr;
    ASSERT_EQ(blas()->matmul_plan(session.device, &m, &needs, &plan), GRAFT_OK) << last_message();
    std::vector<float> x = data.values(extent(a)), y = data.values(extent(b)), z(extent(c), -99.0f);
    std::vector<float> bias = data.values(uint64_t(c.sizes[c.rank - 1])),
                       added = data.values(extent(c));
    x[0] = first.value_or(x[0]);
    graft_execution e = {};
    e.struct_size = sizeof e;
    e.tensors[0] = data.put(x);
    e.tensors[1] = data.put(y);
    e.tensors[2] = data.put(z);
    for (size_t i = 0; i < epilogues.size(); ++i) {
      const bool vector = epilogues[i].kind == GRAFT_EPILOGUE_CHANNEL_SCALE;
      if (vector || epilogues[i].kind == GRAFT_EPILOGUE_BIAS) e.operands[i] = data.put(bias);
      if (epilogues[i].kind == GRAFT_EPILOGUE_ADD) e.operands[i] = data.put(added);
    }
    if (needs.workspace_bytes != 0) e.workspace = session.allocate(needs.workspace_bytes);
    ASSERT_EQ(blas()->plan_execute(session.stream, plan, &e), GRAFT_OK) << last_message();
    ASSERT_EQ(session.download(z.data(), e.tensors[2], z.size() * 4), GRAFT_OK);
    compare(m, x, y, z, bias, added);
    EXPECT_EQ(blas()->plan_destroy(plan), GRAFT_OK);
  }

  void compare(const graft_matmul& m, const std::vector<float>& x, const std::vector<float>& y,
               const std::vector<float>& z, const std::vector<float>& bias,
               const std::vector<float>& added) {
    const graft_tensor& c = m.c;
    int64_t batches = c.rank == 3 ? c.sizes[0] : 1, k = m.a.sizes[m.a.rank - 1];
    for (int64_t batch = 0; batch < batches; ++batch) {
      for (int64_t i = 0; i < c.sizes[c.rank - 2]; ++i) {
        for (int64_t j = 0; j < c.sizes[c.rank - 1]; ++j) {
          double sum = 0;
          for (int64_t q = 0; q < k; ++q) {
            sum += double(at(x, m.a, batch, i, q)) * at(y, m.b, batch, q, j);
          }
          for (uint32_t e = 0; e < m.epilogue_count; ++e) {
            const graft_epilogue& epilogue = m.epilogues[e];
            if (epilogue.kind == GRAFT_EPILOGUE_SCALE) sum *= epilogue.value;
            if (epilogue.kind == GRAFT_EPILOGUE_CHANNEL_SCALE) sum *= bias[size_t(j)];
            if (epilogue.kind == GRAFT_EPILOGUE_BIAS) sum += bias[size_t(j)];
            if (epilogue.kind == GRAFT_EPILOGUE_ADD) {
              sum += epilogue.value * at(added, c, batch, i, j);
            }
            sum = activated(epilogue.kind, sum);
          }
          const double found = at(z, c, batch, i, j);
          const bool alike = std::isnan(sum) ? std::isnan(found)
                                             : std::abs(found - sum) <= 1e-4 * (1 + std::abs(sum));
          ASSERT_TRUE(alike) << found << " for " << sum << " at " << batch << "," << i << "," << j;
        }
      }
    }
  }
};

class HostMatmul : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(blas(), nullptr) << last_message(); }
};

TEST_F(HostMatmul, TakesRowsColumnsAndGapsInAnyCombination) {
  const int64_t m = 37, k = 19, n = 23;
  Case test;
  for (auto a : {tensor({m, k}, {k, 1}), tensor({m, k}, {1, m}), tensor({m, k}, {k + 5, 1}),
                 tensor({m, k}, {2 * k, 2})}) {
    for (auto b : {tensor({k, n}, {n, 1}), tensor({k, n}, {1, k}), tensor({k, n}, {0, 1})}) {
      for (auto c : {tensor({m, n}, {n, 1}), tensor({m, n}, {1, m}), tensor({m, n}, {3 * n, 3})}) {
        test.check(a, b, c, {});
      }
    }
  }
}

TEST_F(HostMatmul, TakesVectorsAndSingleElements) {
  Case test;
  for (int64_t m : {1, 5}) {
    for (int64_t n : {1, 7}) {
      for (int64_t k : {1, 9}) {
        test.check(tensor({m, k}, {k, 1}), tensor({k, n}, {n, 1}), tensor({m, n}, {n, 1}), {});
        test.check(tensor({m, k}, {1, m}), tensor({k, n}, {1, k}), tensor({m, n}, {n, 1}), {});
        test.check(tensor({m, k}, {1, 1000}), tensor({k, n}, {1, k}), tensor({m, n}, {1, m}), {});
      }
    }
  }
}

TEST_F(HostMatmul, AgreesOnSizesOfEveryImplementation) {
  Case test;
  graft_epilogue scale = {GRAFT_EPILOGUE_SCALE, GRAFT_FLOAT32, 0.25};
  graft_epilogue bias = {GRAFT_EPILOGUE_BIAS, GRAFT_FLOAT32, 0};
  graft_epilogue add = {GRAFT_EPILOGUE_ADD, GRAFT_FLOAT32, 1.5};
  for (int64_t n : {1, 10, 300}) {
    auto a = tensor({256, 128}, {128, 1}), c = tensor({256, n}, {n, 1});
    for (auto b : {tensor({128, n}, {n, 1}), tensor({128, n}, {1, 128})}) {
      test.check(a, b, c, {});
      test.check(a, b, c, {bias});
      test.check(a, b, c, {scale, add});
    }
  }
}

TEST_F(HostMatmul, RunsBatchesAndBroadcastOnes) {
  const int64_t m = 12, k = 8, n = 20;
  Case test;
  auto c = tensor({3, m, n}, {m * n, n, 1});
  auto b = tensor({3, k, n}, {k * n, n, 1});
  test.check(tensor({3, m, k}, {m * k, k, 1}), b, c, {});
  test.check(tensor({3, m, k}, {k, 3 * k, 1}), b, c, {});
  test.check(tensor({3, m, k}, {m * k, 1, m}), tensor({3, k, n}, {0, n, 1}), c, {});
}

TEST_F(HostMatmul, AppliesEpiloguesInOrder) {
  const int64_t m = 15, k = 31, n = 17;
  Case test;
  auto a = tensor({m, k}, {k, 1}), b = tensor({k, n}, {n, 1}), c = tensor({m, n}, {n, 1});
  graft_epilogue scale = {GRAFT_EPILOGUE_SCALE, GRAFT_FLOAT32, 0.5};
  graft_epilogue bias = {GRAFT_EPILOGUE_BIAS, GRAFT_FLOAT32, 0};
  graft_epilogue add = {GRAFT_EPILOGUE_ADD, GRAFT_FLOAT32, -2.0};
  graft_epilogue relu = {GRAFT_EPILOGUE_RELU, GRAFT_FLOAT32, 0};
  test.check(a, b, c, {bias, relu});
  test.check(a, b, c, {scale, bias, relu});
  test.check(a, b, c, {scale, add});
  test.check(a, b, c, {bias, scale, add, relu});
  test.check(a, b, tensor({m, n}, {1, m}), {bias, relu});
  test.check(a, b, c, {{GRAFT_EPILOGUE_CHANNEL_SCALE, GRAFT_FLOAT32, 0}, bias, relu});
  test.check(a, b, c, {bias, relu, {GRAFT_EPILOGUE_MINIMUM, GRAFT_FLOAT32, 0.5}});
  for (uint32_t kind : {GRAFT_EPILOGUE_GELU, GRAFT_EPILOGUE_GELU_TANH, GRAFT_EPILOGUE_SILU}) {
    test.check(a, b, c, {bias, {kind, GRAFT_FLOAT32, 0}});
  }
}

TEST_F(HostMatmul, KeepsNanThroughActivations) {
  auto a = tensor({5, 40}, {40, 1}), b = tensor({40, 33}, {33, 1}), c = tensor({5, 33}, {33, 1});
  for (uint32_t kind :
       {GRAFT_EPILOGUE_RELU, GRAFT_EPILOGUE_GELU, GRAFT_EPILOGUE_GELU_TANH, GRAFT_EPILOGUE_SILU}) {
    Case test;
    test.first = std::nanf("");
    test.check(a, b, c, {{kind, GRAFT_FLOAT32, 0}});
    if (kind != GRAFT_EPILOGUE_RELU) continue;
    test.check(a, b, c, {{GRAFT_EPILOGUE_MINIMUM, GRAFT_FLOAT32, 0.5}, {kind, GRAFT_FLOAT32, 0}});
  }
}

TEST_F(HostMatmul, RefusesFloat64) {
  Session s;
  graft_matmul m = {};
  m.struct_size = sizeof m;
  m.a = m.b = m.c = tensor({4, 4}, {4, 1});
  m.a.dtype = m.b.dtype = m.c.dtype = GRAFT_FLOAT64;
  graft_plan_needs needs = {};
  graft_plan plan = nullptr;
  EXPECT_EQ(blas()->matmul_plan(s.device, &m, &needs, &plan), GRAFT_UNSUPPORTED);
  EXPECT_NE(last_message(), "");
}

}  // namespace
}  // namespace graft::host_test

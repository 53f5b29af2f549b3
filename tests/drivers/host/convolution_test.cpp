// tests/drivers/host/convolution_test.cpp: graft.dnn of the host driver against a plain loop.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <optional>

#include "driver.h"
#include "graft/extensions.h"

namespace graft::host_test {
// labels of the file: onednn
namespace {

const graft_dnn_table* dnn() {
  const void* table = nullptr;
  if (driver().extension("graft.dnn", 1, &table) != GRAFT_OK) return nullptr;
  return static_cast<const graft_dnn_table*>(table);
}

enum class Layout { kChannelsFirst, kChannelsLast };

graft_tensor tensor(std::vector<int64_t> sizes, Layout layout) {
  graft_tensor t = {GRAFT_FLOAT32, uint32_t(sizes.size()), {}, {}};
  std::copy(sizes.begin(), sizes.end(), t.sizes);
  int64_t step = 1;
  if (layout == Layout::kChannelsLast) {
    t.strides[1] = step;
    step *= sizes[1];
  }
  for (size_t i = sizes.size(); i-- > 0;) {
    if (i == 1 && layout == Layout::kChannelsLast) continue;
    t.strides[i] = step;
    step *= sizes[i];
  }
  return t;
}

uint64_t count(const graft_tensor& t) {
  uint64_t result = 1;
  for (uint32_t i = 0; i < t.rank; ++i) result *= uint64_t(t.sizes[i]);
  return result;
}

// Everything is checked in three spatial dimensions; missing ones have size 1.
int64_t size(const graft_tensor& t, int dimension) {
  return dimension < int(t.rank) - 2 ? t.sizes[dimension + 2] : 1;
}

size_t index(const graft_tensor& t, int64_t n, int64_t c, const int64_t* at) {
  int64_t result = n * t.strides[0] + c * t.strides[1];
  for (uint32_t i = 0; i + 2 < t.rank; ++i) result += at[i] * t.strides[i + 2];
  return size_t(result);
}

// Calls body(input index, weight index, output index) for each product of the convolution.
template <class Body>
void for_each_product(const graft_convolution& c, Body body) {
  const graft_tensor &in = c.input, &w = c.weight, &out = c.output;
  // Seen as a plain convolution: `wide` is the side that the kernel slides over.
  const graft_tensor &wide = c.transposed ? out : in, &narrow = c.transposed ? in : out;
  int64_t wide_group = wide.sizes[1] / c.groups, narrow_group = narrow.sizes[1] / c.groups;
  int64_t p[3], k[3], q[3];
  for (int64_t n = 0; n < in.sizes[0]; ++n)
    for (int64_t o = 0; o < narrow.sizes[1]; ++o)
      for (int64_t i = 0; i < wide_group; ++i)
        for (p[0] = 0; p[0] < size(narrow, 0); ++p[0])
          for (p[1] = 0; p[1] < size(narrow, 1); ++p[1])
            for (p[2] = 0; p[2] < size(narrow, 2); ++p[2])
              for (k[0] = 0; k[0] < size(w, 0); ++k[0])
                for (k[1] = 0; k[1] < size(w, 1); ++k[1])
                  for (k[2] = 0; k[2] < size(w, 2); ++k[2]) {
                    bool inside = true;
                    for (int d = 0; d < 3; ++d) {
                      bool real = d < int(in.rank) - 2;
                      q[d] = real ? p[d] * c.stride[d] - c.padding[d] + k[d] * c.dilation[d] : 0;
                      inside &= q[d] >= 0 && q[d] < size(wide, d);
                    }
                    if (!inside) continue;
                    size_t wide_at = index(wide, n, o / narrow_group * wide_group + i, q);
                    size_t narrow_at = index(narrow, n, o, p);
                    body(c.transposed ? narrow_at : wide_at, index(w, o, i, k),
                         c.transposed ? wide_at : narrow_at);
                  }
}

struct Shape {
  std::vector<int64_t> input, weight, output;
  int64_t stride, padding, dilation, groups;
  bool transposed;
};

graft_convolution describe(const Shape& shape, Layout layout, uint32_t kind) {
  graft_convolution c = {};
  c.struct_size = sizeof c;
  c.kind = kind;
  c.transposed = shape.transposed;
  c.input = tensor(shape.input, layout);
  c.weight = tensor(shape.weight, Layout::kChannelsFirst);
  c.output = tensor(shape.output, layout);
  for (int i = 0; i < 3; ++i) {
    c.stride[i] = shape.stride;
    c.padding[i] = shape.padding;
    c.dilation[i] = shape.dilation;
  }
  c.groups = shape.groups;
  return c;
}

// Numbers that bfloat16 holds exactly, as it stores them.
std::vector<uint16_t> shortened(const std::vector<float>& x) {
  std::vector<uint16_t> result;
  for (float value : x) result.push_back(uint16_t(std::bit_cast<uint32_t>(value) >> 16));
  return result;
}

// Half of the distance between numbers of the type at a number; 0 where there is none.
double rounding(double at, uint32_t dtype) {
  if (dtype == GRAFT_FLOAT32 || at == 0 || !std::isfinite(at)) return 0;
  return std::ldexp(1, std::ilogb(at) - 8);
}

struct Case {
  Session session;
  Data data{session, 11};
  std::optional<float> first;  // of the input

  graft_address put(const std::vector<float>& x, uint32_t dtype) {
    if (dtype == GRAFT_FLOAT32) return data.put(x);
    const std::vector<uint16_t> halves = shortened(x);
    const graft_address address = session.allocate(halves.size() * 2);
    EXPECT_EQ(session.upload(address, halves.data(), halves.size() * 2), GRAFT_OK);
    return address;
  }

  std::vector<float> get(graft_address from, size_t count, uint32_t dtype) {
    std::vector<float> result(count);
    if (dtype == GRAFT_FLOAT32) {
      EXPECT_EQ(session.download(result.data(), from, count * 4), GRAFT_OK);
      return result;
    }
    std::vector<uint16_t> halves(count);
    EXPECT_EQ(session.download(halves.data(), from, count * 2), GRAFT_OK);
    for (size_t i = 0; i < count; ++i) result[i] = std::bit_cast<float>(uint32_t(halves[i]) << 16);
    return result;
  }

  // Finer than bfloat16.
  std::vector<float> vector(int64_t channels) {
    std::vector<float> result = data.values(uint64_t(channels));
    for (float& value : result) value += 1.0f / 4096;
    return result;
  }

  void check(graft_convolution c, std::vector<graft_epilogue> epilogues = {}) {
    c.epilogue_count = uint32_t(epilogues.size());
    std::copy(epilogues.begin(), epilogues.end(), c.epilogues);
    graft_plan_needs needs = {};
    graft_plan plan = nullptr;
    ASSERT_EQ(dnn()->convolution_plan(session.device, &c, &needs, &plan), GRAFT_OK)
        << last_message();
    std::vector<float> x[3] = {data.values(count(c.input)), data.values(count(c.weight)),
                               data.values(count(c.output))};
    x[0][0] = first.value_or(x[0][0]);
    std::vector<std::vector<float>> operands;
    graft_execution e = {};
    e.struct_size = sizeof e;
    for (int i = 0; i < 3; ++i) e.tensors[i] = put(x[i], c.input.dtype);
    for (size_t i = 0; i < epilogues.size(); ++i) {
      const bool added = epilogues[i].kind == GRAFT_EPILOGUE_ADD;
      operands.push_back(added ? data.values(count(c.output)) : vector(c.output.sizes[1]));
      e.operands[i] = put(operands.back(), epilogues[i].dtype);
    }
    if (needs.workspace_bytes != 0) e.workspace = session.allocate(needs.workspace_bytes);
    ASSERT_EQ(dnn()->plan_execute(session.stream, plan, &e), GRAFT_OK) << last_message();
    const int written[] = {2, 0, 1};
    const int target = written[c.kind];
    const auto result = get(e.tensors[target], x[target].size(), c.input.dtype);
    EXPECT_EQ(dnn()->plan_destroy(plan), GRAFT_OK);
    compare(c, x, operands, target, result);
  }

  // Of exact sums; what follows in float32, and one rounding of a half type.
  void compare(const graft_convolution& c, const std::vector<float>* x,
               const std::vector<std::vector<float>>& operands, int target,
               const std::vector<float>& result) {
    std::vector<double> expected(result.size());
    for_each_product(c, [&](size_t i, size_t w, size_t o) {
      if (target == 0) expected[i] += double(x[2][o]) * x[1][w];
      if (target == 1) expected[w] += double(x[2][o]) * x[0][i];
      if (target == 2) expected[o] += double(x[0][i]) * x[1][w];
    });
    for (size_t i = 0; i < result.size(); ++i) {
      size_t channel = i / size_t(c.output.strides[1]) % size_t(c.output.sizes[1]);
      double& value = expected[i];
      for (size_t step = 0; step < operands.size(); ++step) {
        const graft_epilogue& epilogue = c.epilogues[step];
        if (epilogue.kind == GRAFT_EPILOGUE_SCALE) value *= epilogue.value;
        if (epilogue.kind == GRAFT_EPILOGUE_CHANNEL_SCALE) value *= operands[step][channel];
        if (epilogue.kind == GRAFT_EPILOGUE_BIAS) value += operands[step][channel];
        if (epilogue.kind == GRAFT_EPILOGUE_ADD) value += epilogue.value * operands[step][i];
        if (epilogue.kind == GRAFT_EPILOGUE_RELU) value = std::max(value, 0.0);
        if (epilogue.kind == GRAFT_EPILOGUE_MINIMUM) value = std::min(value, epilogue.value);
      }
      const double loose = 1e-5 * (1 + std::abs(value)) + rounding(value, c.input.dtype);
      const double error = std::abs(result[i] - value);
      ASSERT_TRUE(std::isnan(value) ? std::isnan(result[i]) : error <= loose)
          << result[i] << " for " << value << " at " << i;
    }
  }
};

class HostConvolution : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(dnn(), nullptr) << last_message(); }
};

const Shape kShapes[] = {
    {{2, 16, 9, 9}, {32, 16, 3, 3}, {2, 32, 9, 9}, 1, 1, 1, 1, false},
    {{1, 3, 12, 10}, {8, 3, 3, 3}, {1, 8, 6, 5}, 2, 1, 1, 1, false},
    {{2, 8, 9, 9}, {12, 4, 3, 3}, {2, 12, 9, 9}, 1, 2, 2, 2, false},
    {{2, 8, 7, 7}, {8, 1, 3, 3}, {2, 8, 7, 7}, 1, 1, 1, 8, false},
    {{2, 16, 8, 8}, {4, 16, 1, 1}, {2, 4, 4, 4}, 2, 0, 1, 1, false},
    {{3, 5, 20}, {7, 5, 3}, {3, 7, 20}, 1, 1, 1, 1, false},
    {{1, 4, 5, 6, 7}, {6, 4, 3, 3, 3}, {1, 6, 5, 6, 7}, 1, 1, 1, 1, false},
    {{2, 6, 5, 5}, {6, 4, 3, 3}, {2, 4, 10, 10}, 2, 1, 1, 1, true},
    {{2, 8, 5, 5}, {8, 3, 2, 2}, {2, 6, 10, 10}, 2, 0, 1, 2, true},
};

TEST_F(HostConvolution, AgreesWithAPlainLoopInEveryDirectionAndLayout) {
  Case test;
  for (const Shape& shape : kShapes) {
    for (Layout layout : {Layout::kChannelsFirst, Layout::kChannelsLast}) {
      for (uint32_t kind = 0; kind < 3; ++kind) {
        SCOPED_TRACE(testing::Message() << "shape " << (&shape - kShapes) << " kind " << kind
                                        << " layout " << int(layout));
        test.check(describe(shape, layout, kind));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(HostConvolution, AppliesEpiloguesInOrder) {
  Case test;
  graft_epilogue scale = {GRAFT_EPILOGUE_SCALE, GRAFT_FLOAT32, 0.5};
  graft_epilogue bias = {GRAFT_EPILOGUE_BIAS, GRAFT_FLOAT32, 0};
  graft_epilogue add = {GRAFT_EPILOGUE_ADD, GRAFT_FLOAT32, 1.0};
  graft_epilogue relu = {GRAFT_EPILOGUE_RELU, GRAFT_FLOAT32, 0};
  for (Layout layout : {Layout::kChannelsFirst, Layout::kChannelsLast}) {
    graft_convolution c = describe(kShapes[0], layout, GRAFT_CONVOLUTION_FORWARD);
    test.check(c, {bias});
    test.check(c, {bias, relu});
    test.check(c, {bias, add, relu});
    // In the other layout oneDNN has slow reference code alone for these.
    if (layout == Layout::kChannelsFirst) continue;
    test.check(c, {scale, bias, add, relu});
    graft_epilogue subtract = add;
    subtract.value = -0.5;
    test.check(c, {bias, subtract, relu});
  }
}

// What the library has kernels of their own for: depthwise, 1x1, few channels, and others.
const Shape kForward[] = {
    kShapes[0],
    kShapes[1],
    kShapes[2],
    kShapes[5],
    {{1, 96, 10, 10}, {96, 1, 3, 3}, {1, 96, 10, 10}, 1, 1, 1, 96, false},
    {{2, 20, 9, 9}, {20, 1, 5, 5}, {2, 20, 5, 5}, 2, 2, 1, 20, false},
    {{2, 32, 6, 6}, {64, 32, 1, 1}, {2, 64, 6, 6}, 1, 0, 1, 1, false},
    {{2, 64, 6, 6}, {48, 64, 1, 1}, {2, 48, 3, 3}, 2, 0, 1, 1, false},
    {{1, 64, 5, 5}, {64, 16, 3, 3}, {1, 64, 5, 5}, 1, 1, 1, 4, false},
};

// oneDNN has kernels of halves for processors with AVX-512.
bool has_halves() { return __builtin_cpu_supports("avx512bw") != 0; }

void become_half(graft_convolution& c) {
  c.input.dtype = c.weight.dtype = c.output.dtype = GRAFT_BFLOAT16;
}

TEST_F(HostConvolution, RoundsHalvesOnceAfterVectorsOfFloat32) {
  Case test;
  graft_epilogue factor = {GRAFT_EPILOGUE_CHANNEL_SCALE, GRAFT_FLOAT32, 0};
  graft_epilogue bias = {GRAFT_EPILOGUE_BIAS, GRAFT_FLOAT32, 0};
  graft_epilogue add = {GRAFT_EPILOGUE_ADD, GRAFT_BFLOAT16, 1.0};
  graft_epilogue relu = {GRAFT_EPILOGUE_RELU, GRAFT_FLOAT32, 0};
  for (const Shape& shape : kForward) {
    for (Layout layout : {Layout::kChannelsFirst, Layout::kChannelsLast}) {
      SCOPED_TRACE(testing::Message() << &shape - kForward << " layout " << int(layout));
      graft_convolution c = describe(shape, layout, GRAFT_CONVOLUTION_FORWARD);
      test.check(c, {factor, bias, relu});
      if (!has_halves()) continue;
      become_half(c);
      test.check(c, {factor, bias});
      test.check(c, {bias, factor, relu});
      if (layout == Layout::kChannelsLast) test.check(c, {factor, bias, add, relu});
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(HostConvolution, ClampsAndKeepsNan) {
  Case test;
  graft_epilogue bias = {GRAFT_EPILOGUE_BIAS, GRAFT_FLOAT32, 0};
  graft_epilogue relu = {GRAFT_EPILOGUE_RELU, GRAFT_FLOAT32, 0};
  graft_epilogue minimum = {GRAFT_EPILOGUE_MINIMUM, GRAFT_FLOAT32, 0.75};
  for (float first : {0.5f, std::nanf("")}) {
    test.first = first;
    for (const Shape& shape : kForward) {
      for (Layout layout : {Layout::kChannelsFirst, Layout::kChannelsLast}) {
        SCOPED_TRACE(testing::Message() << &shape - kForward << " layout " << int(layout));
        graft_convolution c = describe(shape, layout, GRAFT_CONVOLUTION_FORWARD);
        test.check(c, {relu, minimum});
        test.check(c, {bias, minimum, relu});
        if (!has_halves()) continue;
        become_half(c);
        test.check(c, {bias, relu, minimum});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(HostConvolution, RefusesWhatItCannotDo) {
  Session s;
  graft_convolution c =
      describe(kShapes[0], Layout::kChannelsFirst, GRAFT_CONVOLUTION_BACKWARD_INPUT);
  c.epilogue_count = 1;
  graft_plan_needs needs = {};
  graft_plan plan = nullptr;
  EXPECT_EQ(dnn()->convolution_plan(s.device, &c, &needs, &plan), GRAFT_UNSUPPORTED);
  c.kind = GRAFT_CONVOLUTION_FORWARD;
  for (uint32_t kind : {uint32_t{GRAFT_EPILOGUE_MINIMUM}, 99u}) {
    c.epilogues[0] = {kind, GRAFT_FLOAT32, 1.0};
    EXPECT_EQ(dnn()->convolution_plan(s.device, &c, &needs, &plan), GRAFT_UNSUPPORTED) << kind;
  }
  c.epilogue_count = 0;
  c.input.dtype = GRAFT_FLOAT64;
  EXPECT_EQ(dnn()->convolution_plan(s.device, &c, &needs, &plan), GRAFT_UNSUPPORTED);
  EXPECT_NE(last_message(), "");
}

}  // namespace
}  // namespace graft::host_test

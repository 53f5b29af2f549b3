// tests/drivers/host/convolution_test.cpp: graft.dnn of the host driver against a plain loop.
#include <gtest/gtest.h>

#include <cmath>

#include "graft/extensions.h"
#include "host_driver.h"

namespace graft::host_test {
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

struct Case {
  Session session;
  Data data{session, 11};

  void check(graft_convolution c, std::vector<graft_epilogue> epilogues = {}) {
    c.epilogue_count = uint32_t(epilogues.size());
    std::copy(epilogues.begin(), epilogues.end(), c.epilogues);
    graft_plan_needs needs = {};
    graft_plan plan = nullptr;
    ASSERT_EQ(dnn()->convolution_plan(session.device, &c, &needs, &plan), GRAFT_OK)
        << last_message();
    std::vector<float> x[3] = {data.values(count(c.input)), data.values(count(c.weight)),
                               data.values(count(c.output))};
    std::vector<float> bias = data.values(uint64_t(c.output.sizes[1])),
                       added = data.values(count(c.output));
    graft_execution e = {};
    e.struct_size = sizeof e;
    for (int i = 0; i < 3; ++i) e.tensors[i] = data.put(x[i]);
    for (size_t i = 0; i < epilogues.size(); ++i) {
      if (epilogues[i].kind == GRAFT_EPILOGUE_BIAS) e.operands[i] = data.put(bias);
      if (epilogues[i].kind == GRAFT_EPILOGUE_ADD) e.operands[i] = data.put(added);
    }
    if (needs.workspace_bytes != 0) e.workspace = session.allocate(needs.workspace_bytes);
    ASSERT_EQ(dnn()->plan_execute(session.stream, plan, &e), GRAFT_OK) << last_message();
    const int written[] = {2, 0, 1};
    int target = written[c.kind];
    std::vector<float> result(x[target].size());
    ASSERT_EQ(session.download(result.data(), e.tensors[target], result.size() * 4), GRAFT_OK);
    EXPECT_EQ(dnn()->plan_destroy(plan), GRAFT_OK);

    std::vector<double> expected(result.size());
    for_each_product(c, [&](size_t i, size_t w, size_t o) {
      if (target == 0) expected[i] += double(x[2][o]) * x[1][w];
      if (target == 1) expected[w] += double(x[2][o]) * x[0][i];
      if (target == 2) expected[o] += double(x[0][i]) * x[1][w];
    });
    for (size_t i = 0; i < result.size(); ++i) {
      size_t channel = i / size_t(c.output.strides[1]) % size_t(c.output.sizes[1]);
      for (const graft_epilogue& epilogue : epilogues) {
        if (epilogue.kind == GRAFT_EPILOGUE_SCALE) expected[i] *= epilogue.value;
        if (epilogue.kind == GRAFT_EPILOGUE_BIAS) expected[i] += bias[channel];
        if (epilogue.kind == GRAFT_EPILOGUE_ADD) expected[i] += epilogue.value * added[i];
        if (epilogue.kind == GRAFT_EPILOGUE_RELU) expected[i] = std::max(expected[i], 0.0);
      }
      ASSERT_NEAR(result[i], expected[i], 1e-3 * (1 + std::abs(expected[i]))) << i;
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
    test.check(c, {scale, bias, add, relu});
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
  c.epilogue_count = 0;
  c.input.dtype = GRAFT_FLOAT64;
  EXPECT_EQ(dnn()->convolution_plan(s.device, &c, &needs, &plan), GRAFT_UNSUPPORTED);
  EXPECT_NE(last_message(), "");
}

}  // namespace
}  // namespace graft::host_test

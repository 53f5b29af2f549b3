// tests/kernels/pointwise/list_test.cpp: rows of the op table over lists of tensors.
#include "kernels/pointwise/list.h"

#include <cmath>
#include <deque>
#include <functional>

#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

// labels of the file: few_parameters
namespace {

using namespace graft;
using namespace graft::test;

using Numbers = std::vector<double>;

const Op& op(const char* name) { return *find_op(name); }

// A list of flat tensors: one empty, one of several work-items, more than one launch takes.
struct List {
  explicit List(unsigned seed, graft_dtype dtype = GRAFT_FLOAT32, double low = -2, double high = 2,
                unsigned size = 21) {
    for (unsigned i = 0; i < size; ++i) {
      const int64_t count = i == 3 ? 0 : i == 5 ? 20001 : 1 + i * 7;
      values.push_back(numbers(count, seed * 100 + i, low, high, dtype));
      tensors.emplace_back(std::vector<int64_t>{count}, dtype).set(values.back());
      views.push_back(tensors.back());
    }
  }
  ListOperand operand() const { return ListOperand::tensors(views); }
  size_t size() const { return views.size(); }

  std::deque<DeviceTensor> tensors;
  std::vector<Numbers> values;
  std::vector<TensorView> views;
};

// Every element of out against the formula of its tensor and position.
void expect(const List& out, double relative, std::function<double(size_t, size_t)> formula) {
  for (size_t k = 0; k < out.size(); ++k) {
    Numbers wanted;
    for (size_t i = 0; i < out.values[k].size(); ++i) wanted.push_back(formula(k, i));
    EXPECT_TRUE(near(out.tensors[k].get(), wanted, relative, relative)) << "tensor " << k;
  }
}

TEST(PointwiseList, RunsARowOverEveryTensor) {
  const List a(1), b(2), out(3);
  const ListOperand operands[] = {a.operand(), b.operand()};
  pointwise_list(stream(), op("mul"), GRAFT_FLOAT32, out.views, operands);
  expect(out, 1e-6, [&](size_t k, size_t i) { return a.values[k][i] * b.values[k][i]; });
}

// labels: races
TEST(PointwiseList, OverwritesAnInput) {
  const List a(4), b(5), c(6);
  const Scalar factor = Scalar::of(0.25);
  const ListOperand operands[] = {a.operand(), b.operand(), c.operand(),
                                  ListOperand::number(factor)};
  pointwise_list(stream(), op("addcmul"), GRAFT_FLOAT32, a.views, operands);
  expect(a, 1e-6, [&](size_t k, size_t i) {
    return a.values[k][i] + 0.25 * b.values[k][i] * c.values[k][i];
  });
}

TEST(PointwiseList, TakesANumberForEveryTensor) {
  const List a(7), out(8);
  std::vector<Scalar> factors;
  for (size_t k = 0; k < a.size(); ++k) factors.push_back(Scalar::of(1.5 * static_cast<double>(k)));
  const ListOperand operands[] = {a.operand(), ListOperand::each(factors)};
  pointwise_list(stream(), op("mul"), GRAFT_FLOAT32, out.views, operands);
  expect(out, 1e-6,
         [&](size_t k, size_t i) { return a.values[k][i] * 1.5 * static_cast<double>(k); });
}

TEST(PointwiseList, ReadsAnElementOfTheDevice) {
  const List a(9), out(10);
  DeviceTensor element({}, GRAFT_FLOAT32);
  element.set({-3});
  const Scalar factor = Scalar::of(int64_t{2});
  const ListOperand operands[] = {a.operand(), ListOperand::element(element),
                                  ListOperand::number(factor)};
  pointwise_list(stream(), op("add"), GRAFT_FLOAT32, out.views, operands);
  expect(out, 1e-6, [&](size_t k, size_t i) { return a.values[k][i] - 6; });
}

TEST(PointwiseList, ReadsAnElementForEveryTensor) {
  const List a(24), out(25);
  std::deque<DeviceTensor> elements;
  std::vector<TensorView> views;
  for (size_t k = 0; k < a.size(); ++k) {
    elements.emplace_back(std::vector<int64_t>{1}, GRAFT_FLOAT32);
    views.push_back(elements.back().set({static_cast<double>(k) + 0.5}));
  }
  const ListOperand operands[] = {a.operand(), ListOperand::elements(views)};
  pointwise_list(stream(), op("div"), GRAFT_FLOAT32, out.views, operands);
  expect(out, 1e-6,
         [&](size_t k, size_t i) { return a.values[k][i] / (static_cast<double>(k) + 0.5); });
}

TEST(PointwiseList, TakesANumberFirst) {
  const List a(11), out(12);
  const Scalar base = Scalar::of(0.9);
  const ListOperand operands[] = {ListOperand::number(base), a.operand()};
  pointwise_list(stream(), op("pow"), GRAFT_FLOAT32, out.views, operands);
  expect(out, 1e-6, [&](size_t k, size_t i) { return std::pow(0.9f, a.values[k][i]); });
}

TEST(PointwiseList, HalfTypesComputeInFloat32) {
  for (graft_dtype dtype : {GRAFT_FLOAT16, GRAFT_BFLOAT16}) {
    const List a(13, dtype), b(14, dtype), out(15, dtype);
    const Scalar weight = Scalar::of(0.3);
    const ListOperand operands[] = {a.operand(), b.operand(), ListOperand::number(weight)};
    pointwise_list(stream(), op("lerp_scalar"), dtype, out.views, operands);
    expect(out, dtype == GRAFT_FLOAT16 ? 1e-3 : 8e-3, [&](size_t k, size_t i) {
      return a.values[k][i] + 0.3 * (b.values[k][i] - a.values[k][i]);
    });
  }
}

TEST(PointwiseList, IntegersStayExact) {
  const List a(16, GRAFT_INT64, -1000, 1000), out(17, GRAFT_INT64);
  const Scalar large = Scalar::of(int64_t{1} << 40);
  const ListOperand operands[] = {a.operand(), ListOperand::number(large)};
  pointwise_list(stream(), op("plain_add"), GRAFT_INT64, out.views, operands);
  expect(out, 0, [&](size_t k, size_t i) { return a.values[k][i] + std::ldexp(1.0, 40); });
}

TEST(PointwiseList, ConvertsBetweenTheDtypesOfItsLists) {
  const List a(18, GRAFT_FLOAT32, -50, 50), out(19, GRAFT_INT16);
  const ListOperand operand = a.operand();
  pointwise_list(stream(), op("positive"), GRAFT_FLOAT32, out.views, {&operand, 1});
  expect(out, 0, [&](size_t k, size_t i) { return std::trunc(a.values[k][i]); });
}

TEST(PointwiseList, TensorsOfOneListMayDifferInDtype) {
  std::deque<DeviceTensor> tensors;
  std::vector<TensorView> views;
  for (graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_BFLOAT16, GRAFT_FLOAT32, GRAFT_FLOAT64}) {
    views.push_back(tensors.emplace_back(std::vector<int64_t>{5}, dtype).set(Numbers(5, 1.5)));
  }
  const ListOperand operand = ListOperand::tensors(views);
  pointwise_list(stream(), op("neg"), GRAFT_FLOAT32, views, {&operand, 1});
  for (const DeviceTensor& tensor : tensors) EXPECT_EQ(tensor.get(), Numbers(5, -1.5));
}

graft_status status_of(const Op& row, graft_dtype compute, std::vector<ListOperand> operands) {
  const List out(20, compute, 1, 2, 2);
  try {
    pointwise_list(stream(), row, compute, out.views, operands);
  } catch (const Error& error) {
    return error.status();
  }
  return GRAFT_OK;
}

TEST(PointwiseList, RefusesWhatItCannotRun) {
  const List pair(21, GRAFT_FLOAT32, 1, 2, 2), longer(22, GRAFT_FLOAT32, 1, 2, 3);
  const Scalar one = Scalar::of(1.0);
  EXPECT_EQ(status_of(op("mul"), GRAFT_FLOAT32, {pair.operand()}), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(status_of(op("mul"), GRAFT_FLOAT32, {pair.operand(), longer.operand()}),
            GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(status_of(op("masked_fill"), GRAFT_FLOAT32,
                      {pair.operand(), pair.operand(), ListOperand::number(one)}),
            GRAFT_UNSUPPORTED);
  const List integers(23, GRAFT_INT32, 1, 2, 2);
  EXPECT_EQ(status_of(op("sqrt"), GRAFT_INT32, {integers.operand()}), GRAFT_UNSUPPORTED);
  EXPECT_EQ(status_of(op("sqrt"), GRAFT_FLOAT32, {pair.operand()}), GRAFT_OK);
}

}  // namespace

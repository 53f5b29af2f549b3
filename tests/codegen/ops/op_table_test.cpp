// tests/codegen/ops/op_table_test.cpp: every row of the op table against a reference in float64.
#include "codegen/ops/op_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "kernels/pointwise/kernel.h"
#include "runtime/driver/dtype.h"
#include "tests/codegen/compiled.h"
#include "tests/codegen/ops/op_reference.h"

namespace graft {
namespace {

PointwiseSpec spec_of(const Op& op, graft_dtype compute) {
  PointwiseSpec spec;
  spec.op = op.id;
  spec.compute = static_cast<uint8_t>(compute);
  for (int i = 0; i < op.outputs + op.inputs; ++i) {
    const bool condition = i >= op.outputs && (op.conditions >> (i - op.outputs) & 1) != 0;
    spec.set(spec.operands++, condition ? GRAFT_BOOL : compute, AccessPattern::kDense);
  }
  return spec;
}

constexpr double kInf = std::numeric_limits<double>::infinity();
const std::vector<double> kSpecials = {0.0, -0.0, 1.0, -1.0, 0.5,   -0.5,
                                       3.0, -3.0, 2.5, kInf, -kInf, std::nan("")};

// Inputs that meet every pair of specials and a spread of ordinary numbers.
std::vector<std::vector<double>> inputs_of(int count) {
  std::vector<std::vector<double>> inputs(static_cast<size_t>(count));
  for (double a : kSpecials) {
    for (double b : kSpecials) {
      const double rest[] = {a, b, 0.75, -1.5};
      for (size_t k = 0; k < inputs.size(); ++k) inputs[k].push_back(rest[k]);
    }
  }
  for (int i = 0; i < 2000; ++i) {
    for (size_t k = 0; k < inputs.size(); ++k) {
      const int spread = (i * 7919 + static_cast<int>(k) * 104729) % 20011;
      inputs[k].push_back((static_cast<double>(spread) - 10005.0) / 1500.0);
    }
  }
  return inputs;
}

bool close(double got, double exact, double tolerance) {
  if (std::isnan(exact)) return std::isnan(got);
  if (std::isinf(exact)) return got == exact;
  return std::abs(got - exact) <= tolerance * std::max(1.0, std::abs(exact));
}

class FloatOps : public testing::TestWithParam<const Op*> {};

TEST_P(FloatOps, MatchTheReference) {
  const Op& op = *GetParam();
  const Reference* reference = find_reference(op.name);
  ASSERT_NE(reference, nullptr) << "give the new row a reference in op_reference.cpp";
  const ir::Compiled kernel(pointwise_kernel(spec_of(op, GRAFT_FLOAT32)));
  const std::vector<std::vector<double>> inputs = inputs_of(op.inputs);
  const size_t count = inputs[0].size();
  std::vector<std::vector<float>> memory;
  for (int i = 0; i < op.outputs; ++i) memory.emplace_back(count, -77.0f);
  for (const auto& input : inputs) memory.emplace_back(input.begin(), input.end());
  std::vector<uint8_t> conditions(count);
  for (size_t i = 0; i < count; ++i) conditions[i] = i % 3 == 0;
  std::vector<graft_kernel_argument> arguments;
  for (int i = 0; i < op.outputs + op.inputs; ++i) {
    const bool condition = i >= op.outputs && (op.conditions >> (i - op.outputs) & 1) != 0;
    arguments.push_back({});
    arguments.back().address =
        condition ? static_cast<void*>(conditions.data()) : memory[static_cast<size_t>(i)].data();
  }
  for (double scalar : reference->scalars) {
    arguments.push_back({});
    const float value = static_cast<float>(scalar);
    std::memcpy(&arguments.back().bits, &value, sizeof value);
  }
  ASSERT_EQ(reference->scalars.size(), op.scalars);
  for (uint64_t index : {count, count}) arguments.push_back({}), arguments.back().bits = index;
  kernel(arguments.data());
  for (size_t i = 0; i < count; ++i) {
    std::vector<double> x;
    for (int k = 0; k < op.inputs; ++k) {
      const bool condition = (op.conditions >> k & 1) != 0;
      x.push_back(condition ? conditions[i] : memory[static_cast<size_t>(op.outputs + k)][i]);
    }
    const std::vector<double> exact = reference->compute(x, reference->scalars);
    ASSERT_EQ(exact.size(), op.outputs);
    for (size_t k = 0; k < exact.size(); ++k) {
      const double rounded = static_cast<float>(exact[k]);
      ASSERT_TRUE(close(memory[k][i], rounded, reference->tolerance))
          << op.name << "(" << x[0] << (x.size() > 1 ? ", " + std::to_string(x[1]) : "")
          << ") gave " << memory[k][i] << " and should give " << exact[k];
    }
  }
}

std::vector<const Op*> float_ops() {
  std::vector<const Op*> ops;
  for (const Op& op : op_table()) {
    if (op.types & kFloatTypes) ops.push_back(&op);
  }
  return ops;
}

INSTANTIATE_TEST_SUITE_P(All, FloatOps, testing::ValuesIn(float_ops()),
                         [](const auto& info) { return std::string(info.param->name); });

class IntegerOps : public testing::TestWithParam<const Op*> {};

TEST_P(IntegerOps, MatchTheReference) {
  const Op& op = *GetParam();
  const IntegerReference* reference = find_integer_reference(op.name);
  ASSERT_NE(reference, nullptr) << "give the new row an integer reference in op_reference.cpp";
  const ir::Compiled kernel(pointwise_kernel(spec_of(op, GRAFT_INT64)));
  const std::vector<int64_t> numbers = {0,  1,  -1,  2,  3,  -3,        7,         -7,      62,
                                        63, 64, 100, -5, 10, INT64_MIN, INT64_MAX, 1 << 30, -64};
  std::vector<int64_t> out, memory[4];
  for (int64_t a : numbers) {
    for (int64_t b : numbers) {
      memory[0].push_back(a), memory[1].push_back(b), memory[2].push_back(b / 2);
      memory[3].push_back(a / 3);
      out.push_back(-77);
    }
  }
  std::vector<uint8_t> conditions(out.size());
  for (size_t i = 0; i < out.size(); ++i) conditions[i] = i % 3 == 0;
  std::vector<graft_kernel_argument> arguments(1);
  arguments[0].address = out.data();
  for (int k = 0; k < op.inputs; ++k) {
    arguments.push_back({});
    const bool condition = (op.conditions >> k & 1) != 0;
    arguments.back().address = condition ? static_cast<void*>(conditions.data()) : memory[k].data();
  }
  for (int64_t scalar : reference->scalars) {
    arguments.push_back({});
    arguments.back().bits = static_cast<uint64_t>(scalar);
  }
  ASSERT_EQ(reference->scalars.size(), op.scalars);
  for (int k = 0; k < 2; ++k) arguments.push_back({}), arguments.back().bits = out.size();
  kernel(arguments.data());
  for (size_t i = 0; i < out.size(); ++i) {
    std::vector<int64_t> x;
    for (int k = 0; k < op.inputs; ++k) {
      x.push_back((op.conditions >> k & 1) != 0 ? conditions[i] : memory[k][i]);
    }
    ASSERT_EQ(out[i], reference->compute(x, reference->scalars))
        << op.name << "(" << x[0] << (x.size() > 1 ? ", " + std::to_string(x[1]) : "") << ")";
  }
}

std::vector<const Op*> integer_ops() {
  std::vector<const Op*> ops;
  for (const Op& op : op_table()) {
    if (op.types & kIntegerTypes) ops.push_back(&op);
  }
  return ops;
}

INSTANTIATE_TEST_SUITE_P(All, IntegerOps, testing::ValuesIn(integer_ops()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(OpTable, EveryRowIsLegalInEveryTypeItNames) {
  const std::pair<uint8_t, std::vector<graft_dtype>> dtypes[] = {
      {kBoolType, {GRAFT_BOOL}},
      {kIntegerTypes, {GRAFT_UINT8, GRAFT_INT8, GRAFT_INT16, GRAFT_INT32, GRAFT_INT64}},
      {kFloatTypes, {GRAFT_FLOAT32, GRAFT_FLOAT64}},
      {kComplexTypes, {GRAFT_COMPLEX64, GRAFT_COMPLEX128}}};
  for (const Op& op : op_table()) {
    EXPECT_EQ(static_cast<bool>(op.complex_formula), (op.types & kComplexTypes) != 0) << op.name;
    for (const auto& [bit, names] : dtypes) {
      if ((op.types & bit) == 0) continue;
      for (graft_dtype dtype : names) {
        EXPECT_NO_THROW(ir::print(pointwise_kernel(spec_of(op, dtype)), *ir::find_dialect("c")))
            << op.name << " in " << name_of(dtype);
      }
    }
  }
}

TEST(OpTable, NamesAreUniqueAndFound) {
  std::set<std::string> names, stubs;
  for (const Op& op : op_table()) {
    EXPECT_TRUE(names.insert(op.name).second) << op.name;
    EXPECT_EQ(find_op(op.name), &op);
    EXPECT_EQ(&op_table()[op.id], &op);
  }
  EXPECT_EQ(find_op("no_such_op"), nullptr);
  for (const auto& row : nlohmann::json::parse(op_table_json())) {
    for (const std::string stub : row["aten"]) EXPECT_TRUE(stubs.insert(stub).second) << stub;
  }
}

}  // namespace
}  // namespace graft

// tests/deploy/state_test.cpp: what a deployed model keeps between calls.
#include <gtest/gtest.h>

#include <cstring>

#include "deploy/model.h"
#include "graft/deploy.h"
#include "runtime/driver/error.h"
#include "tests/deploy/small_model.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace graft::deploy::test {
namespace {

using graft::test::device;
using Floats = std::vector<float>;

// A table [2, 3] that lies in columns: the call adds x to it and gives its double.
Manifest table_manifest() {
  Manifest manifest;
  manifest.graph =
      "graft-graph 1\ngraph table\n"
      "input %t: float32[2, 3](1, 2) buffer mutated\ninput %x: float32[2, 3] activation\n"
      "node %a: float32[2, 3](1, 2) = aten.add.Tensor(%t, %x)\n"
      "node %w: float32[2, 3](1, 2) = aten.copy_.default(%t, %a) writes %t views %t\n"
      "node %y: float32[2, 3] = aten.mul.Tensor(%x, 2.0)\n"
      "node %z: float32[2, 3] = aten.add.Tensor(%y, %a)\noutput %z\nend\n";
  manifest.arguments = {"x"};
  manifest.inputs = {{"cache.table", true}, {"x", false}};
  manifest.outputs = {"z"};
  return manifest;
}

const Floats kTable = {1, 2, 3, 4, 5, 6}, kX = {1, -1, 2, -2, 3, -3};

Floats plus(const Floats& a, const Floats& b, float times = 1) {
  Floats sum = a;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += times * b[i];
  return sum;
}

TensorView rows(const Floats& values) {
  TensorView view;
  view.address = reinterpret_cast<graft_address>(values.data());
  view.dtype = GRAFT_FLOAT32, view.rank = 2;
  view.sizes[0] = 2, view.sizes[1] = 3, view.strides[0] = 3, view.strides[1] = 1;
  return view;
}

Floats floats(const HostResult& result) {
  Floats values(static_cast<size_t>(result.view.count()));
  std::memcpy(values.data(), result.memory.get(), values.size() * sizeof(float));
  return values;
}

class StateTest : public ::testing::Test {
 protected:
  StateTest() : path_(folder_.file("table.graft")) {
    const std::vector<TensorBytes> table = {{"cache.table", GRAFT_FLOAT32, {2, 3}, raw(kTable)}};
    write_artefact(path_, table_manifest(), table, {});
  }

  Folder folder_;
  const std::string path_;
};

TEST_F(StateTest, LastsFromCallToCall) {
  Model model(Artefact(path_), device());
  ASSERT_EQ(model.state().size(), 1u);
  EXPECT_EQ(model.state()[0].name, "cache.table");
  EXPECT_EQ(model.state()[0].sizes, (std::vector<int64_t>{2, 3}));
  Floats table = kTable;
  for (int call = 0; call < 3; ++call) {
    table = plus(table, kX);
    EXPECT_EQ(floats(model.run(std::vector{rows(kX)})[0]), plus(table, kX, 2));
    EXPECT_EQ(floats(model.read_state()[0]), table);
  }
}

TEST_F(StateTest, IsWrittenAndReset) {
  Model model(Artefact(path_), device());
  model.run(std::vector{rows(kX)});
  const Floats other = {9, 8, 7, 6, 5, 4};
  model.write_state(0, rows(other));
  EXPECT_EQ(floats(model.read_state()[0]), other);
  EXPECT_EQ(floats(model.run(std::vector{rows(kX)})[0]), plus(other, kX, 3));
  model.reset();
  EXPECT_EQ(floats(model.read_state()[0]), kTable);
  EXPECT_EQ(floats(model.run(std::vector{rows(kX)})[0]), plus(kTable, kX, 3));
}

// x times a weight that a pass would otherwise square beforehand.
TEST_F(StateTest, SettingsAreSetByProgramsAlone) {
  Manifest manifest;
  manifest.graph =
      "graft-graph 1\ngraph scaled\ninput %s: float32[2, 3] buffer\n"
      "input %x: float32[2, 3] activation\n"
      "node %q: float32[2, 3] = aten.mul.Tensor(%s, %s)\n"
      "node %y: float32[2, 3] = aten.mul.Tensor(%x, %q)\noutput %y\nend\n";
  manifest.arguments = {"x"};
  manifest.inputs = {{"scale", true}, {"x", false}};
  manifest.outputs = {"y"};
  manifest.settings = {"scale"};
  EXPECT_EQ(manifest.state(), (std::vector<std::string>{"scale"}));
  const Floats twos(6, 2), threes(6, 3);
  const std::vector<TensorBytes> scale = {{"scale", GRAFT_FLOAT32, {2, 3}, raw(twos)}};
  const std::string path = folder_.file("scaled.graft");
  write_artefact(path, manifest, scale, {});
  Model model(Artefact(path), device());
  ASSERT_EQ(model.state().size(), 1u);
  const Floats none(6, 0);
  EXPECT_EQ(floats(model.run(std::vector{rows(kX)})[0]), plus(none, kX, 4));
  model.write_state(0, rows(threes));
  EXPECT_EQ(floats(model.run(std::vector{rows(kX)})[0]), plus(none, kX, 9));
  model.reset();
  EXPECT_EQ(floats(model.read_state()[0]), twos);
  EXPECT_EQ(floats(model.run(std::vector{rows(kX)})[0]), plus(none, kX, 4));
}

TEST_F(StateTest, IsEachModelsOwn) {
  Model one(Artefact(path_), device()), other(Artefact(path_), device());
  one.run(std::vector{rows(kX)});
  EXPECT_EQ(floats(one.read_state()[0]), plus(kTable, kX));
  EXPECT_EQ(floats(other.read_state()[0]), kTable);
}

TEST_F(StateTest, WrongValuesAreNamedAndChangeNothing) {
  Model model(Artefact(path_), device());
  const auto refused = [&](size_t index, const TensorView& value, graft_status status) {
    try {
      model.write_state(index, value);
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), status);
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  TensorView wrong = rows(kX);
  wrong.sizes[1] = 2;
  EXPECT_NE(refused(0, wrong, GRAFT_INVALID_ARGUMENT)
                .find("state 0 (\"cache.table\") is float32[2, 2], the model takes float32[2, 3]"),
            std::string::npos);
  EXPECT_NE(refused(1, rows(kX), GRAFT_NOT_FOUND).find("no state 1"), std::string::npos);
  wrong = rows(kX);
  wrong.sizes[0] = 1;
  EXPECT_THROW(model.run(std::vector{wrong}), Error);
  EXPECT_EQ(floats(model.read_state()[0]), kTable);
}

TEST_F(StateTest, ProgramsReadAndWriteIt) {
  device();
  graft_model model = nullptr;
  ASSERT_EQ(graft_model_open(path_.c_str(), 0, &model), GRAFT_OK) << graft_model_message();
  graft_model_value value{};
  value.struct_size = sizeof value;
  ASSERT_EQ(graft_model_state(model, 0, &value), GRAFT_OK);
  EXPECT_STREQ(value.name, "cache.table");
  EXPECT_EQ(graft_model_state(model, 1, &value), GRAFT_NOT_FOUND);
  const Floats other = {9, 8, 7, 6, 5, 4};
  graft_array given{};
  given.struct_size = sizeof given;
  given.dtype = GRAFT_FLOAT32, given.rank = 2;
  given.sizes[0] = 2, given.sizes[1] = 3, given.strides[0] = 3, given.strides[1] = 1;
  given.data = const_cast<float*>(other.data());
  ASSERT_EQ(graft_model_write_state(model, 0, &given), GRAFT_OK) << graft_model_message();
  EXPECT_EQ(graft_model_write_state(model, 0, nullptr), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(graft_model_write_state(model, 7, &given), GRAFT_NOT_FOUND);
  const auto now = [&] {
    graft_results results = nullptr;
    EXPECT_EQ(graft_model_read_state(model, &results), GRAFT_OK);
    graft_array found{};
    found.struct_size = sizeof found;
    EXPECT_EQ(graft_results_get(results, 0, &found), GRAFT_OK);
    Floats values(6);
    std::memcpy(values.data(), found.data, sizeof(float) * 6);
    graft_results_free(results);
    return values;
  };
  EXPECT_EQ(now(), other);
  ASSERT_EQ(graft_model_reset(model), GRAFT_OK);
  EXPECT_EQ(now(), kTable);
  EXPECT_EQ(graft_model_reset(nullptr), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(graft_model_read_state(model, nullptr), GRAFT_INVALID_ARGUMENT);
  graft_model_close(model);
}

}  // namespace
}  // namespace graft::deploy::test

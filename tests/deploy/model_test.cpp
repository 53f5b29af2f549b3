// tests/deploy/model_test.cpp: deployed models on the device under test.
#include "deploy/model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "runtime/driver/error.h"
#include "tests/deploy/small_model.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace graft::deploy::test {
namespace {

using graft::test::device;

TensorView view_of(const std::vector<float>& values, std::vector<int64_t> sizes,
                   std::vector<int64_t> strides) {
  TensorView view;
  view.address = reinterpret_cast<graft_address>(values.data());
  view.dtype = GRAFT_FLOAT32, view.rank = static_cast<int>(sizes.size());
  std::ranges::copy(sizes, view.sizes);
  std::ranges::copy(strides, view.strides);
  return view;
}

TensorView rows(const std::vector<float>& values) {
  return view_of(values, {static_cast<int64_t>(values.size() / 3), 3}, {3, 1});
}

std::vector<float> floats(const HostResult& result) {
  std::vector<float> values(static_cast<size_t>(result.view.count()));
  std::memcpy(values.data(), result.memory.get(), values.size() * sizeof(float));
  return values;
}

class ModelTest : public ::testing::Test {
 protected:
  std::string written(const Manifest& manifest, std::span<const TensorBytes> weights) {
    const std::string path = folder_.file("model.graft");
    write_artefact(path, manifest, weights, {});
    return path;
  }
  std::string small() { return written(small_manifest(), small_weights()); }

  std::string refusal(const std::string& path, graft_status status) {
    try {
      const Model model(Artefact(path), device());
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), status) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "nothing was refused";
    return "";
  }

  Folder folder_;
};

TEST_F(ModelTest, GivesWhatItsGraphComputes) {
  Model model(Artefact(small()), device());
  ASSERT_EQ(model.inputs().size(), 1u);
  EXPECT_EQ(model.inputs()[0].name, "x");
  EXPECT_EQ(model.inputs()[0].sizes, (std::vector<int64_t>{-1, 3}));
  for (int64_t n : {1, 4, 64, 4}) {
    std::vector<float> x;
    for (int64_t i = 0; i < n * 3; ++i) x.push_back(static_cast<float>(i % 7) - 3);
    const auto results = model.run(std::vector{rows(x)});
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].view.sizes[0], n);
    EXPECT_TRUE(results[0].view.contiguous());
    EXPECT_EQ(floats(results[0]), expected(x));
  }
}

TEST_F(ModelTest, InputsOfAnyStrides) {
  Model model(Artefact(small()), device());
  const std::vector<float> columns = {1, 4, 2, 5, 3, 6}, x = {1, 2, 3, 4, 5, 6};
  const auto results = model.run(std::vector{view_of(columns, {2, 3}, {1, 2})});
  EXPECT_EQ(floats(results[0]), expected(x));
}

TEST_F(ModelTest, WeightsAreOnTheDeviceOnlyWhileItIsOpen) {
  device().synchronize();
  const int64_t before = device().allocator().statistics().allocated_bytes.all().current;
  {
    Model model(Artefact(small()), device());
    EXPECT_GT(device().allocator().statistics().allocated_bytes.all().current, before);
    const std::vector<float> x = {1, 2, 3};
    model.run(std::vector{rows(x)});
  }
  EXPECT_EQ(device().allocator().statistics().allocated_bytes.all().current, before);
}

TEST_F(ModelTest, WrongInputsAreNamedAndTheModelLives) {
  Model model(Artefact(small()), device());
  const std::vector<float> x = {1, 2, 3};
  const auto said = [&](std::vector<TensorView> inputs) -> std::string {
    try {
      model.run(inputs);
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), GRAFT_INVALID_ARGUMENT);
      return error.what();
    }
    return "nothing";
  };
  EXPECT_NE(said({}).find("takes 1 inputs, got 0"), std::string::npos);
  EXPECT_NE(
      said({view_of(x, {3}, {1})}).find("\"x\") is float32[3], the model takes float32[?, 3]"),
      std::string::npos);
  TensorView whole = rows(x);
  whole.dtype = GRAFT_INT32;
  EXPECT_NE(said({whole}).find("int32[1, 3]"), std::string::npos);
  const std::vector<float> many(65 * 3);
  EXPECT_NE(said({rows(many)}).find("s0"), std::string::npos);
  TensorView nowhere = rows(x);
  nowhere.address = 0;
  EXPECT_NE(said({nowhere}).find("without data"), std::string::npos);
  EXPECT_EQ(floats(model.run(std::vector{rows(x)})[0]), expected(x));
}

// labels: threads
TEST_F(ModelTest, ThreadsTakeTurns) {
  Model model(Artefact(small()), device());
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      const auto n = static_cast<float>(t + 1);
      const std::vector<float> x(3 * (t + 1), n);
      for (int i = 0; i < 20; ++i) {
        wrong[t] += floats(model.run(std::vector{rows(x)})[0]) != expected(x);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST_F(ModelTest, WeightsInAnyLayoutAndUsedTwice) {
  Manifest manifest = small_manifest();
  manifest.graph =
      "graft-graph 1\ngraph twice\ninput %v: float32[2, 3](1, 2) parameter\n"
      "input %x: float32[2, 3] activation\ninput %w: float32[2, 3](1, 2) parameter\n"
      "node %y: float32[2, 3] = aten.mul.Tensor(%x, %w)\n"
      "node %z: float32[2, 3] = aten.add.Tensor(%y, %v)\noutput %z\nend\n";
  manifest.inputs = {{"fc.weight", true}, {"x", false}, {"fc.weight", true}};
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const std::vector<TensorBytes> one = {small_weights().front()};
  Model model(Artefact(written(manifest, one)), device());
  std::vector<float> wanted;
  for (size_t i = 0; i < 6; ++i) wanted.push_back(x[i] * kWeight[i] + kWeight[i]);
  EXPECT_EQ(floats(model.run(std::vector{view_of(x, {2, 3}, {3, 1})})[0]), wanted);
}

TEST_F(ModelTest, ResultsAreRowMajorAndMayBeInputs) {
  Manifest manifest;
  manifest.arguments = {"x"};
  manifest.graph =
      "graft-graph 1\ngraph views\ninput %x: float32[2, 3] activation\n"
      "node %t: float32[3, 2](1, 3) = aten.t.default(%x) views %x\n"
      "output %t alias %x\noutput %x alias %x\nend\n";
  manifest.inputs = {{"x", false}};
  manifest.outputs = {"turned", "same"};
  Model model(Artefact(written(manifest, {})), device());
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const auto results = model.run(std::vector{view_of(x, {2, 3}, {3, 1})});
  EXPECT_EQ(floats(results[0]), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(floats(results[1]), x);
}

TEST_F(ModelTest, SizesThatAreIntegersOfTheCall) {
  Manifest manifest;
  manifest.arguments = {"x"};
  manifest.graph =
      "graft-graph 1\ngraph integers\nsymbol s0 range 1..64 hint 4 from integer 0\n"
      "input %x: float32[s0, 3] activation\n"
      "node %y: float32[s0, 3] = aten.mul.Tensor(%x, 2.0)\noutput %y\nend\n";
  manifest.inputs = {{"x", false}};
  manifest.outputs = {"y"};
  manifest.integers = {{0, 0}};
  Model model(Artefact(written(manifest, {})), device());
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(floats(model.run(std::vector{rows(x)})[0]), (std::vector<float>{2, 4, 6, 8, 10, 12}));
}

TEST_F(ModelTest, WhatItCannotRunIsRefusedByName) {
  Manifest manifest = small_manifest();
  manifest.inputs = {{"x", false}};
  const std::string head = "graft-graph 1\ngraph bad\ninput %x: float32[2, 3] activation";
  manifest.graph = head +
                   " mutated\nnode %y: float32[2, 3] = aten.mul_.Tensor(%x, 2.0) writes %x "
                   "views %x\noutput %y\nend\n";
  EXPECT_NE(refusal(written(manifest, {}), GRAFT_UNSUPPORTED).find("writes its argument x"),
            std::string::npos);
  manifest.graph = "no graph";
  refusal(written(manifest, {}), GRAFT_INVALID_ARGUMENT);
  manifest.graph = head + "\noutput %x\noutput %x\nend\n";
  refusal(written(manifest, {}), GRAFT_INVALID_ARGUMENT);
  manifest.graph = head + "\noutput %x\nend\n";
  manifest.integers = {{0, 2}};
  refusal(written(manifest, {}), GRAFT_INVALID_ARGUMENT);
}

// A number of the call is in host memory, where no result is copied from.
TEST_F(ModelTest, NumbersAreNoResults) {
  Manifest manifest;
  manifest.inputs = {{"n", false}};
  manifest.arguments = {"n"};
  manifest.outputs = {"y"};
  const std::string head = "graft-graph 1\ngraph number\ninput %n: float32[] scalar\n";
  for (const char* body :
       {"output %n\n", "node %v: float32[1] = aten.view.default(%n, [1]) views %n\noutput %v\n"}) {
    manifest.graph = head + body + "end\n";
    EXPECT_NE(refusal(written(manifest, {}), GRAFT_UNSUPPORTED).find("output y is no tensor"),
              std::string::npos);
  }
}

TEST_F(ModelTest, OneArgumentIsOneKindOfInput) {
  Manifest manifest = small_manifest();
  manifest.outputs = {"y"};
  const std::string head = "graft-graph 1\ngraph two\ninput %x: float32[] activation\n";
  manifest.graph = head + "input %n: float32[] scalar\noutput %x\nend\n";
  manifest.inputs = {{"x", false}, {"x", false}};
  EXPECT_NE(refusal(written(manifest, {}), GRAFT_INVALID_ARGUMENT).find("two kinds"),
            std::string::npos);
  manifest.graph = head + "input %y: float32[2] activation\noutput %x\nend\n";
  EXPECT_NE(refusal(written(manifest, {}), GRAFT_INVALID_ARGUMENT).find("two kinds"),
            std::string::npos);
  manifest.graph = head + "input %n: float32[] scalar\noutput %x\nend\n";
  manifest.inputs = {{"x", false}, {"n", true}};
  const float one = 1;
  const std::vector<TensorBytes> weight = {
      {"n", GRAFT_FLOAT32, {}, {reinterpret_cast<const char*>(&one), sizeof one}}};
  EXPECT_NE(refusal(written(manifest, weight), GRAFT_INVALID_ARGUMENT).find("for a number"),
            std::string::npos);
}

TEST_F(ModelTest, WeightsThatDoNotFitTheGraphAreRefused) {
  auto weights = small_weights();
  weights[0].sizes = {3, 2};
  const std::string text = refusal(written(small_manifest(), weights), GRAFT_INVALID_ARGUMENT);
  EXPECT_NE(text.find("\"fc.weight\" is float32[3, 2]"), std::string::npos) << text;
}

TEST_F(ModelTest, RandomNumbersFollowTheSeed) {
  Manifest manifest;
  manifest.arguments = {"x"};
  manifest.graph =
      "graft-graph 1\ngraph random\ninput %x: float32[64] activation\n"
      "node %y: float32[64], %m: bool[64] = aten.native_dropout.default(%x, 0.5, true) random\n"
      "output %y\nend\n";
  manifest.inputs = {{"x", false}};
  manifest.outputs = {"y"};
  Model model(Artefact(written(manifest, {})), device());
  const std::vector<float> x(64, 1.0f);
  const auto draw = [&] { return floats(model.run(std::vector{view_of(x, {64}, {1})})[0]); };
  model.seed(7);
  const auto first = draw(), second = draw();
  EXPECT_NE(first, second);
  model.seed(7);
  EXPECT_EQ(draw(), first);
}

}  // namespace
}  // namespace graft::deploy::test

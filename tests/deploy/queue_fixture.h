// tests/deploy/queue_fixture.h: models, tensors and queues for tests of calls that do not wait.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "deploy/model.h"
#include "tests/deploy/small_model.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace graft::deploy::test {

using graft::test::device;
using Floats = std::vector<float>;
using Inputs = std::vector<CallInput>;

inline TensorView shaped(graft_dtype dtype, const void* data, const std::vector<int64_t>& sizes) {
  TensorView view;
  view.address = reinterpret_cast<graft_address>(data);
  view.dtype = dtype, view.rank = static_cast<int>(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) {
    view.sizes[d] = sizes[d], view.strides[d] = stride;
  }
  return view;
}

// Rows of three.
inline TensorView table(const Floats& values) {
  return shaped(GRAFT_FLOAT32, values.data(), {static_cast<int64_t>(values.size() / 3), 3});
}

inline Floats values_of(const HostResult& result) {
  EXPECT_TRUE(result.view.contiguous());
  Floats values(static_cast<size_t>(result.view.count()));
  std::memcpy(values.data(), result.memory.get(), values.size() * sizeof(float));
  return values;
}

inline TensorView two_numbers(const std::vector<int64_t>& numbers) {
  return shaped(GRAFT_INT64, numbers.data(), {2});
}

inline Floats counted(int64_t rows, float first) {
  Floats values;
  for (int64_t i = 0; i < rows * 3; ++i) values.push_back(first + static_cast<float>(i % 7));
  return values;
}

class QueueTest : public ::testing::Test {
 protected:
  std::string written(const std::string& name, const Manifest& manifest,
                      std::span<const TensorBytes> weights) const {
    const std::string path = folder_.file(name);
    write_artefact(path, manifest, weights, {});
    return path;
  }
  std::unique_ptr<Model> opened(const Manifest& manifest,
                                std::span<const TensorBytes> weights = {}) const {
    return std::make_unique<Model>(Artefact(written("model.graft", manifest, weights)), device());
  }
  std::unique_ptr<Model> small() const { return opened(small_manifest(), small_weights()); }

  // A model of one input %x, whose text begins behind that line.
  std::unique_ptr<Model> of_text(const std::string& input, const std::string& body,
                                 std::vector<std::string> outputs) const {
    Manifest manifest;
    manifest.arguments = {"x"};
    manifest.graph = "graft-graph 1\ngraph of_text\n" + input + "\n" + body + "end\n";
    manifest.inputs = {{"x", false}};
    manifest.outputs = std::move(outputs);
    return opened(manifest);
  }

  // The rows of w that x names: wrong numbers are found on the device.
  std::unique_ptr<Model> rows_by_number() const {
    Manifest manifest = small_manifest();
    manifest.graph =
        "graft-graph 1\ngraph rows_by_number\ninput %w: float32[2, 3] parameter\n"
        "input %x: int64[2] activation\n"
        "node %r: float32[2, 3] = aten.embedding.default(%w, %x)\noutput %r\nend\n";
    manifest.inputs = {{"fc.weight", true}, {"x", false}};
    return opened(manifest, std::vector{small_weights()[0]});
  }

  // A table that each call adds x to, and gives.
  std::unique_ptr<Model> sum_of_calls() const {
    Manifest manifest;
    manifest.graph =
        "graft-graph 1\ngraph sum\ninput %t: float32[2, 3] buffer mutated\n"
        "input %x: float32[2, 3] activation\n"
        "node %a: float32[2, 3] = aten.add.Tensor(%t, %x)\n"
        "node %w: float32[2, 3] = aten.copy_.default(%t, %a) writes %t views %t\n"
        "node %y: float32[2, 3] = aten.mul.Tensor(%a, 1.0)\noutput %y\nend\n";
    manifest.arguments = {"x"};
    manifest.inputs = {{"sum", true}, {"x", false}};
    manifest.outputs = {"y"};
    static const Floats zeros(6);
    return opened(manifest, std::vector<TensorBytes>{{"sum", GRAFT_FLOAT32, {2, 3}, raw(zeros)}});
  }

  static DeviceArray on_device(Queue* queue, const Floats& values) {
    DeviceArray array = queue->allocate(table(values));
    queue->write(array, table(values));
    return array;
  }

  static Floats read(Queue* queue, const DeviceArray& array) {
    Floats values(static_cast<size_t>(array.view().count()));
    TensorView view = array.view();
    view.address = reinterpret_cast<graft_address>(values.data());
    queue->read(array, view);
    queue->synchronize();
    return values;
  }

  template <class Work>
  static std::string refusal(Work&& work) {
    try {
      work();
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), GRAFT_INVALID_ARGUMENT) << error.what();
      return error.what();
    }
    return "nothing";
  }

  Folder folder_;
};

}  // namespace graft::deploy::test

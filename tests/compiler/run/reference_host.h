// tests/compiler/run/reference_host.h: an executor's inputs, and a host whose nodes the plain
// reference computes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/run/executor.h"
#include "kernels/tensor/axes.h"
#include "tests/compiler/graph/text_builder.h"
#include "tests/compiler/run/device_host.h"
#include "tests/compiler/run/reference.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace graft::compiler::test {

using graft::test::DeviceTensor;
using graft::test::stream;

inline std::vector<int64_t> sizes_of(const TensorView& view) {
  return {view.sizes, view.sizes + view.rank};
}

// Elements of a float32 view in any layout.
inline std::vector<double> elements(const TensorView& view) {
  std::vector<float> memory(extent_bytes(view) / 4);
  if (memory.empty()) return {};
  stream().read(memory.data(), view.address, memory.size() * 4);
  std::vector<double> data;
  for (int64_t i = 0; i < view.count(); ++i) {
    int64_t rest = i, at = 0;
    for (int k = view.rank; k-- > 0; rest /= view.sizes[k])
      at += rest % view.sizes[k] * view.strides[k];
    data.push_back(memory[static_cast<size_t>(at)]);
  }
  return data;
}

// External nodes run in the plain reference, as graphs of one node.
class TestHost : public DeviceHost {
 public:
  void run(const ExternalCall& call, Stream& on) override {
    std::string text, arguments;
    Tensors inputs;
    for (size_t i = 0; i < call.operands.size(); ++i) {
      const std::string name = "i" + std::to_string(i);
      inputs[name] = elements(call.operands[i]);
      text += "input %" + name + ": " + type_of(call.operands[i]) + " activation" +
              (!call.node.writes.empty() && i == 0 ? " mutated\n" : "\n");
      arguments += (i == 0 ? "%" : ", %") + name;
    }
    for (const Argument& argument : call.node.arguments) {
      if (argument.kind != Argument::Kind::kValue) {
        arguments += ", " + print_argument(call.graph, argument);
      }
    }
    text +=
        "node %r: " + type_of(call.results[0]) + " = " + call.node.op->name + "(" + arguments + ")";
    if (!call.node.writes.empty()) text += " writes %i0 views %i0";
    const auto results = reference(graph_of(text + "\noutput %r\n"), inputs);
    const std::vector<float> data(results[0].begin(), results[0].end());
    ASSERT_TRUE(call.results[0].contiguous());
    if (data.empty()) return;
    on.copy(call.results[0].address, reinterpret_cast<uint64_t>(data.data()), data.size() * 4,
            GRAFT_HOST_TO_DEVICE);
    on.synchronize();
  }

 private:
  static std::string type_of(const TensorView& view) {
    std::string text = "float32[";
    for (int64_t size : sizes_of(view))
      text += (text.back() == '[' ? "" : ", ") + std::to_string(size);
    return text + "]";
  }
};

// A call's inputs, in memory of their own.
struct Given {
  Given(const Graph& graph, const Tensors& inputs) {
    for (ValueId id : graph.inputs) {
      const GraphValue& value = graph.values[id];
      ExecutionInput argument;
      if (value.kind == InputKind::kScalar) {
        argument.scalar = Scalar::of(value.type.dtype, inputs.at(value.name)[0]);
      } else {
        std::vector<int64_t> sizes;
        for (const Size& size : value.type.sizes) sizes.push_back(graph.hint(size));
        tensors.push_back(std::make_unique<DeviceTensor>(sizes, value.type.dtype));
        argument.view = tensors.back()->set(inputs.at(value.name)).view();
        if (value.mutated) mutated.push_back(tensors.back().get());
      }
      arguments.push_back(argument);
    }
  }
  std::vector<std::unique_ptr<DeviceTensor>> tensors;
  std::vector<DeviceTensor*> mutated;
  std::vector<ExecutionInput> arguments;
};

}  // namespace graft::compiler::test

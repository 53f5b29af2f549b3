// src/deploy/deployable.cpp: what keeps a graph from running without PyTorch.
#include "deploy/deployable.h"

#include "compiler/passes/lowering.h"
#include "compiler/run/executor.h"
#include "deploy/model_host.h"

namespace graft::deploy {

std::vector<std::string> needs_pytorch(compiler::Graph graph, Device& device) {
  std::map<std::string, TensorView> constants;
  for (compiler::ValueId id : graph.constants) constants[graph.values[id].external] = {};
  const compiler::DeviceGraphs made =
      compiler::lower_for(device, std::move(graph), compiler::Mode::kInference, true);
  std::vector<std::string> nodes;
  const auto look = [&](const compiler::Graph& part) {
    ModelHost host(device, constants);
    const compiler::Executor executor(part, host, device.default_stream());
    for (std::string& node : executor.on_host()) nodes.push_back(std::move(node));
  };
  if (made.lowered.prologue) look(*made.lowered.prologue);
  look(made.lowered.main);
  return nodes;
}

}  // namespace graft::deploy

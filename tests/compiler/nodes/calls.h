// tests/compiler/nodes/calls.h: graphs whose nodes the host must not run.
#pragma once

#include <string>
#include <vector>

#include "compiler/run/executor.h"
#include "tests/compiler/run/reference_host.h"

namespace graft::compiler::test {

// Counts the random numbers that were drawn, and the nodes that came to the host, which runs none.
class DrawingHost : public DeviceHost {
 public:
  Philox draw(const Node& node, uint64_t count) override {
    drawn.push_back(count);
    return DeviceHost::draw(node, count);
  }
  void run(const ExternalCall& call, Stream&) override { asked.push_back(call.node.op->name); }

  std::vector<uint64_t> drawn;
  std::vector<std::string> asked;
};

struct Calls {
  Calls(const std::string& body, const Tensors& inputs)
      : graph(graph_of(body)), given(graph, inputs), executor(graph, host, stream()) {}

  std::vector<std::vector<double>> run() {
    std::vector<TensorView> views(graph.outputs.size());
    executor.run(given.arguments, {}, views);
    std::vector<std::vector<double>> results;
    for (const TensorView& view : views) results.push_back(elements(view));
    return results;
  }

  Graph graph;
  DrawingHost host;
  Given given;
  Executor executor;
};

}  // namespace graft::compiler::test

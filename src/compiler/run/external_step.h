// src/compiler/run/external_step.h: runs a node that no generated kernel computes.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/nodes/direct_node.h"
#include "compiler/nodes/execution_host.h"

namespace graft::compiler {

// Calls the node's kernel straight, or asks the host. Not thread-safe.
class ExternalStep {
 public:
  // REQUIRES: graph outlives it.
  ExternalStep(const Graph& graph, NodeId node);

  // Turns the sizes in its arguments into numbers; at: what a size is.
  void prepare(const std::function<int64_t(const Size&)>& at);

  // views and numbers: by value of the graph, as for KernelLaunch.
  void run(ExecutionHost& host, Stream& stream, std::span<const TensorView> views,
           std::span<const Scalar> numbers);

  // Whether the node's kernel is called straight, as far as the device has it.
  bool direct() const { return static_cast<bool>(direct_); }

  // Whether a call on other memory of the same sizes gives the device the same commands: not where
  // random numbers, numbers of the host, writes other than those of copy_ and index_put_, or code
  // that the compiler does not know take part.
  bool repeats() const;

 private:
  const Graph& graph_;
  const NodeId id_;
  DirectNode direct_;  // empty: the host runs it
  Node node_;          // with sizes as numbers
  std::vector<ValueId> operands_;
  std::vector<TensorView> operand_views_, result_views_;
  std::vector<Scalar> scalars_;
};

}  // namespace graft::compiler

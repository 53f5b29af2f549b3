// src/torch/compiled/external_node.h: nodes of a compiled graph that PyTorch's dispatcher runs.
#pragma once

#include "compiler/nodes/execution_host.h"
#include "torch/version/dispatch.h"

namespace graft::binding {

// A tensor over memory that somebody else owns and that outlives it. address 0: no elements.
at::Tensor tensor_over(const TensorView& view, c10::DeviceIndex device);

// One node, ready to be run with ever new operands.
class ExternalNode {
 public:
  // Throws Error UNSUPPORTED, naming the node, for an operator that PyTorch does not know.
  ExternalNode(const compiler::Graph& graph, const compiler::Node& node);

  // Enqueues the node on the current stream. Its results go to the places that call names: without
  // a copy where the operator has an out= form on the device. Throws what the operator throws, and
  // Error INVALID_ARGUMENT where a user's kernel returns other results than the graph has.
  void run(const compiler::ExternalCall& call, c10::DeviceIndex device) const;

  // Whether the device has a kernel for it; without one PyTorch goes to the CPU.
  bool native() const { return native_; }

 private:
  void push_arguments(const compiler::ExternalCall& call, c10::DeviceIndex device,
                      torch::jit::Stack* stack) const;
  void run_users(const compiler::ExternalCall& call, c10::DeviceIndex device,
                 torch::jit::Stack* stack) const;
  void keep_results(const compiler::ExternalCall& call, c10::DeviceIndex device,
                    const torch::jit::Stack& stack) const;

  c10::OperatorHandle op_;
  std::optional<c10::OperatorHandle> out_;
  bool native_;
};

}  // namespace graft::binding

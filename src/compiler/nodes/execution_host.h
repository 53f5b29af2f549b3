// src/compiler/nodes/execution_host.h: what an executor asks of whoever runs it: src/torch, deploy,
// a test.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "compiler/graph/graph.h"
#include "kernels/random/random.h"
#include "kernels/tensor/view.h"
#include "runtime/driver/error.h"
#include "runtime/stream/stream.h"

namespace graft::compiler {

// A node that no generated kernel computes. Sizes in its arguments are numbers by now.
struct ExternalCall {
  const Graph& graph;
  const Node& node;
  // Tensor operands in the order of each_value; a scalar of the host has address 0.
  std::span<const TensorView> operands;
  std::span<const Scalar> scalars;  // by operand; meaningful where the address is 0
  // Memory for the results; of an in-place node the operand's. A result that ATen leaves undefined
  // has address 0.
  std::span<const TensorView> results;
};

// All calls come from the thread that runs the plan. What they throw leaves Executor::run.
class ExecutionHost {
 public:
  virtual ~ExecutionHost() = default;

  // Memory for one run, given back by release when its commands are queued (in stream order).
  virtual graft_address allocate(uint64_t bytes, Stream& stream) = 0;
  virtual void release(graft_address address, Stream& stream) = 0;

  // Memory for an output of the graph, which the caller keeps. bytes may be 0.
  virtual graft_address output(size_t index, uint64_t bytes, Stream& stream) = 0;

  // Whether the memory of inputs goes back as the run goes along. input_past() is then called when
  // everything that reads or writes the input is queued.
  virtual bool gives_inputs() const { return false; }
  virtual void input_past(size_t) {}

  // The tensor of an external constant, row-major or as the graph has it.
  virtual TensorView constant(const GraphValue& value) = 0;

  // The numbers of a random node, in the order of the calls: seed and first block, of the generator
  // that the node names or the device's default one, which then stands count blocks further. For
  // nodes whose kernel the executor calls itself.
  virtual Philox draw(const Node& node, uint64_t count) = 0;

  // Queues a node whose kernel the executor does not call itself: reads the operands, writes every
  // element of the results. Random nodes take their own numbers of the generator, in the order of
  // the calls.
  virtual void run(const ExternalCall& call, Stream& stream) = 0;

  // The device has no kernel for a group, whose nodes run one by one. why: lacks_kernel() holds.
  virtual void lacks_group(const Error&) {}

  // A host of the same device for runs beside the graph's own, with outputs and nodes apart from
  // this one's. Null: there is none, and nothing is measured.
  virtual std::unique_ptr<ExecutionHost> beside() const { return nullptr; }

  // The device has no kernel for a node that run() is asked for next. why: lacks_kernel() holds.
  virtual void lacks_node(const Error&) {}
};

}  // namespace graft::compiler

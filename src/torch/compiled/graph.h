// src/torch/compiled/graph.h: a graph of the compiler that runs on PyTorch's tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "compiler/run/executor.h"
#include "torch/compiled/graph_host.h"

namespace graft::binding {

// What a graph takes and gives: a tensor, an integer, a generator (taken only), or nothing.
using CallValue = std::variant<std::monostate, at::Tensor, int64_t, at::Generator>;

// How the nodes of a graph run.
struct GraphCounts {
  int64_t nodes = 0;    // computing ones: views are none
  int64_t fused = 0;    // of them in kernels that the compiler made, and in calls with an epilogue
  int64_t kernels = 0;  // that it made
  int64_t library = 0;  // calls of the kernel library
  int64_t vendor = 0;   // nodes in graphs that the driver's own compiler compiled
  int64_t vendor_graphs = 0;
  std::map<std::string, int64_t> eager;  // nodes without a kernel on the device, by operator
  uint64_t arena_bytes = 0;              // of the last run
};

// Thread-safe; runs of one graph exclude one another.
class CompiledGraph {
 public:
  // graph: after the compiler's passes. device: below 0 the current one. externals: the tensors of
  // external constants. Throws Error, naming node and source line, for what cannot be executed.
  CompiledGraph(compiler::Graph graph, c10::DeviceIndex device,
                std::map<std::string, at::Tensor> externals);
  ~CompiledGraph();

  // Queues the graph on the current stream of its device. inputs: tensors and integers in the
  // order of the call. Throws Error INVALID_ARGUMENT, naming the input, for tensors other than the
  // graph was compiled for; nothing has run then. results: becomes what the graph gives. After the
  // first call nothing is taken from the heap but for the results, and by nodes that PyTorch runs.
  void run(std::span<const CallValue> inputs, std::vector<CallValue>* results);

  // The same, but empties inputs. Where much of them is in nobody else's hands, its memory goes
  // back while the graph is queued, as soon as nothing in it needs it.
  void run_and_give(std::vector<CallValue>* inputs, std::vector<CallValue>* results);

  GraphCounts counts();

 private:
  struct OnStream;  // an executor and its host, for one stream
  // What one run works on; kept for its memory alone.
  struct Scratch {
    std::vector<at::Tensor> tensors;
    std::vector<c10::Storage> storages;  // another thread may give a tensor other memory meanwhile
    std::vector<int64_t> integers;
    std::vector<at::Generator> generators;
    std::vector<compiler::ExecutionInput> given;
    std::vector<TensorView> views;

    void clear();
  };

  void run(std::span<const CallValue> inputs, std::vector<CallValue>* given,
           std::vector<CallValue>* results);
  // The same for tensors of torch.device("ve") that the graph's device carries.
  void run_carried(std::span<const CallValue> inputs, std::vector<CallValue>* given,
                   std::vector<CallValue>* results);
  // Sorts the inputs into scratch_. REQUIRES: mutex_ is held, as for the next.
  void take(std::span<const CallValue> inputs);

  OnStream& on(Stream& stream);
  // Moves a number in host memory to the device where the graph wants it there.
  compiler::ExecutionInput input(size_t index, at::Tensor& tensor) const;
  CallValue result(OnStream& own, size_t index, const TensorView& view,
                   const std::vector<at::Tensor>& given) const;

  const compiler::Graph graph_;
  std::vector<compiler::ValueId> root_;  // by value: whose memory it lies in
  std::vector<size_t> position_;         // by value that is an input: which one
  const c10::DeviceIndex device_;
  const std::map<std::string, at::Tensor> externals_;
  const uint32_t tag_;  // of late errors
  std::mutex mutex_;    // guards what follows
  std::map<Stream*, std::unique_ptr<OnStream>> streams_;
  Scratch scratch_;
};

}  // namespace graft::binding

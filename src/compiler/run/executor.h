// src/compiler/run/executor.h: runs a compiled graph: kernels and external nodes, one after
// another.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/nodes/execution_host.h"
#include "compiler/plan/symbol_values.h"
#include "compiler/run/vendor_choice.h"
#include "runtime/driver/export.h"

namespace graft::compiler {

// A plan for one graph on one device: steps, memory, and a frame that is filled in at each run.
// Not thread-safe: one run at a time. Without a change of the symbols a run allocates no host
// memory of its own.
class GRAFT_EXPORT Executor {
 public:
  // graph: verified, after the passes. Compiles its kernels. Products and plain convolutions of
  // floats run without the host, through the driver's library where it takes them. Groups that no
  // kernel or call computes, whose kernel the device lacks, or that vendor leaves to the vendor's
  // kernels, are taken apart. Throws Error: UNSUPPORTED, naming node and source line, for views
  // whose place is not known, symbols that nodes make and complex constants; what get_kernel and
  // vendor_kernels_as_set throw.
  Executor(const Graph& graph, ExecutionHost& host, Stream& stream,
           VendorKernels vendor = VendorKernels::kAsSet);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Queues the graph. results: by the graph's outputs; integers and undefined ones are left
  // alone. Throws Error INVALID_ARGUMENT, naming the input, when dtype, sizes or strides differ
  // from the graph's or a symbol leaves its range; nothing is queued then. The first run that
  // may_measure() measures, and throws what failed before.
  void run(std::span<const ExecutionInput> inputs, std::span<const int64_t> integers,
           std::span<TensorView> results);

  // An output that is an integer, of the last run.
  int64_t integer(size_t output) const;

  size_t launches() const;          // generated kernels per run
  size_t libraries() const;         // products and convolutions, most with an epilogue
  size_t compiled() const;          // nodes in both of these
  size_t externals() const;         // external nodes per run
  size_t vendor_graphs() const;     // parts that the vendor's compiler compiled
  size_t in_vendor_graphs() const;  // nodes in these
  uint64_t arena_bytes() const;     // of the last run

  // The nodes that ExecutionHost::run computes, as "aten.sort.default (model.py:12)".
  std::vector<std::string> on_host() const;

 private:
  class Frame;
  ExecutionHost& host_;
  Stream& stream_;
  VendorKernels vendor_;
  std::unique_ptr<Graph> unmeasured_;  // null: nothing is to be measured
  std::unique_ptr<Frame> frame_;
};

}  // namespace graft::compiler

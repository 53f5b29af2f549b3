// src/compiler/run/step.h: what an executor queues at once: a kernel, a library call, a vendor's
// graph or a node.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/nodes/execution_host.h"
#include "compiler/run/external_step.h"
#include "compiler/run/kernel_launch.h"
#include "compiler/run/library_step.h"
#include "compiler/run/ungrouping.h"
#include "compiler/run/vendor_step.h"

namespace graft::compiler {

// One of the four.
struct Step {
  std::vector<NodeId> nodes;
  uint32_t unit = 0;  // its position in the order
  std::optional<KernelLaunch> kernel;
  std::optional<LibraryStep> library;
  std::optional<VendorStep> vendor;
  std::optional<ExternalStep> external;

  // For the sizes of the runs that come. size: gives the value of a Size. Throws LackingGroup where
  // the device has no kernel for what stands behind a product.
  void prepare(const Graph& graph, std::span<const TensorView> views, Stream& stream,
               const std::function<int64_t(const Size&)>& size) {
    if (kernel)
      kernel->arrange(size);
    else if (library)
      prepare_library(graph, views, stream, size);
    else if (vendor)
      vendor->prepare(size);
    else
      external->prepare(size);
  }

  // views, numbers: by value.
  void run(ExecutionHost& host, Stream& stream, std::span<TensorView> views,
           std::span<const Scalar> numbers) {
    if (kernel)
      kernel->launch(stream, views, numbers);
    else if (library)
      library->run(host, stream, views, numbers);
    else if (vendor)
      vendor->run(stream, views);
    else
      external->run(host, stream, views, numbers);
  }

  // Whether a run's commands may be given again in the next one.
  bool repeats() const {
    if (external) return external->repeats();
    if (vendor) return false;
    return kernel ? !kernel->takes_numbers() : !library->takes_numbers();
  }

  void prepare_library(const Graph& graph, std::span<const TensorView> views, Stream& stream,
                       const std::function<int64_t(const Size&)>& size) {
    try {
      library->prepare(graph, views, stream, size);
    } catch (const Error& error) {
      if (!error.lacks_kernel()) throw;
      throw LackingGroup{nodes, error};
    }
  }

  // Generated kernels.
  size_t launches() const { return library ? library->launches() - 1 : kernel.has_value(); }
};

// What Executor says of itself, by the same names.
struct StepCounts {
  size_t launches = 0, libraries = 0, compiled = 0, externals = 0;
  size_t vendor_graphs = 0, in_vendor_graphs = 0;
};

inline StepCounts count_steps(std::span<const Step> steps) {
  StepCounts counts;
  for (const Step& step : steps) {
    counts.launches += step.launches();
    counts.libraries += step.library.has_value();
    counts.externals += step.external.has_value();
    counts.compiled += step.external || step.vendor ? 0 : step.nodes.size();
    counts.vendor_graphs += step.vendor.has_value();
    counts.in_vendor_graphs += step.vendor ? step.vendor->nodes() : 0;
  }
  return counts;
}

// What Executor says of nodes whose kernel it does not call itself: operator and line of each, in
// the order of the steps.
inline std::vector<std::string> nodes_on_host(const Graph& graph, std::span<const Step> steps) {
  std::vector<std::string> all;
  for (const Step& step : steps) {
    if (!step.external || step.external->direct()) continue;
    const Node& node = graph.nodes[step.nodes[0]];
    all.push_back(node.op->name + " (" + (node.source.empty() ? "line unknown" : node.source) +
                  ")");
  }
  return all;
}

}  // namespace graft::compiler

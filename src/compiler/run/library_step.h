// src/compiler/run/library_step.h: runs a product or convolution with its epilogue.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compiler/analysis/effects.h"
#include "compiler/grouping/library_call.h"
#include "compiler/nodes/execution_host.h"
#include "compiler/run/external_step.h"
#include "compiler/run/kernel_launch.h"
#include "kernels/launch/plan_cache.h"

namespace graft::compiler {

// One call of the driver's library where it takes the call as it is. Otherwise the product alone,
// as eager computes it (by the host where the device has no kernel for it), and a generated kernel
// for the nodes behind it. Not thread-safe.
class LibraryStep {
 public:
  // REQUIRES: a kernel computes the nodes behind the first one; effects are the graph's.
  LibraryStep(const Graph& graph, const Effects& effects, const std::vector<NodeId>& nodes,
              LibraryCall call);

  // Decides how it runs, for certain sizes: views have sizes, strides and dtypes, no addresses.
  // Throws what get_kernel throws and what KernelLaunch::try_out throws of the kernel behind.
  void prepare(const Graph& graph, std::span<const TensorView> views, Stream& stream,
               const std::function<int64_t(const Size&)>& at);

  // Queues it. views: by value, with addresses; that of the product inside is set.
  void run(ExecutionHost& host, Stream& stream, std::span<TensorView> views,
           std::span<const Scalar> numbers);

  // Commands that run() queues for it: 1, or 2 with a kernel behind the product.
  size_t launches() const { return plan_ != nullptr || !rest_ ? 1 : 2; }

  bool takes_numbers() const { return launch_ && launch_->takes_numbers(); }

 private:
  std::shared_ptr<const CachedPlan> plan(std::span<const TensorView> views,
                                         OpenDevice& device) const;
  void product(Stream& stream, const TensorView& output, std::span<const TensorView> views) const;

  LibraryCall call_;
  uint32_t tag_;                     // the product's operator, which late errors name
  ExternalStep outside_;             // the product alone
  bool own_ = true;                  // the device has kernels for the product
  std::optional<GroupKernel> rest_;  // of the nodes behind the product
  std::optional<KernelLaunch> launch_;
  std::shared_ptr<const CachedPlan> plan_;  // none: the library does not take it
};

}  // namespace graft::compiler

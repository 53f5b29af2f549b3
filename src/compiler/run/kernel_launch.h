// src/compiler/run/kernel_launch.h: a group's kernel and the arguments of its launch.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "compiler/kernels/group_kernel.h"
#include "compiler/nodes/execution_host.h"
#include "kernels/tensor/view.h"
#include "runtime/stream/stream.h"

namespace graft::compiler {

// Compiles kernels side by side, on as many threads as the machine has. One that fails is left to
// whoever asks for it. Threads end before it returns.
void compile_together(const Graph& graph, const std::vector<GroupKernel>& kernels,
                      OpenDevice& device);

// Whether the device has the kernel and takes a launch with so many arguments: it is tried, on
// memory of its own, unless the stream records. If not, host is told why. Throws what get_kernel
// throws of other failures.
bool runs_on(Stream& stream, const Graph& graph, const GroupKernel& kernel, ExecutionHost& host);

// Not thread-safe.
class KernelLaunch {
 public:
  // Compiles the kernel, if it is not there yet. Throws what get_kernel throws.
  KernelLaunch(const Graph& graph, GroupKernel kernel, OpenDevice& device);

  // Everything but addresses and numbers, for certain sizes; at: what a size is.
  void arrange(const std::function<int64_t(const Size&)>& at);

  // Enqueues one element's work on scratch memory, in no statistic. Throws Error UNSUPPORTED where
  // the driver does not take the launch.
  void try_out(const Graph& graph, Stream& stream);

  // Enqueues it. views and numbers: by value of the graph; numbers of its scalar inputs only.
  void launch(Stream& stream, std::span<const TensorView> views, std::span<const Scalar> numbers);

  // Whether it reads numbers of the host, which each run may have others of.
  bool takes_numbers() const { return !kernel_.numbers.empty(); }

 private:
  uint32_t group() const;

  GroupKernel kernel_;
  OpenDevice* device_;
  graft_kernel handle_ = nullptr;
  std::vector<graft_argument> arguments_;
  uint64_t grid_ = 0;
};

}  // namespace graft::compiler

// src/compiler/run/vendor_step.h: runs a part of a graph that the vendor's compiler compiled.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "codegen/cache/executable_cache.h"
#include "compiler/graph/graph.h"
#include "kernels/tensor/view.h"
#include "runtime/stream/stream.h"

namespace graft::compiler {

// A node kVendorGraph. Not thread-safe.
class VendorStep {
 public:
  static bool runs(const Node& node);

  // REQUIRES: runs(node). Throws what get_executable throws, and Error UNSUPPORTED where the
  // device has no compiler for it.
  VendorStep(const Node& node, OpenDevice& device);

  // For the sizes of the runs that come; at: what a size is. Throws what the driver refuses.
  void prepare(const std::function<int64_t(const Size&)>& at);

  // Queues it. views: by value, with addresses.
  void run(Stream& stream, std::span<const TensorView> views);

  size_t nodes() const { return nodes_; }  // that it computes: views are none

 private:
  std::shared_ptr<const Executable> executable_;
  size_t nodes_ = 0;
  uint32_t tag_ = 0;
  std::vector<ValueId> inputs_, outputs_;
  std::vector<Size> sizes_;  // of the symbols
  std::vector<int64_t> symbols_;
  std::vector<graft_address> from_, to_;
  uint64_t workspace_bytes_ = 0;
};

}  // namespace graft::compiler

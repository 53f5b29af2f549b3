// src/deploy/model_host.h: memory, constants and random numbers of a deployed model's graphs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/nodes/execution_host.h"
#include "deploy/calls/held_block.h"
#include "runtime/platform/device.h"

namespace graft::deploy {

// Not thread-safe. Nodes that only PyTorch computes are refused (deployable.h finds them before).
class ModelHost final : public compiler::ExecutionHost {
 public:
  // constants: views of the external ones, by name; borrowed.
  ModelHost(Device& device, const std::map<std::string, TensorView>& constants)
      : device_(device), constants_(constants) {}

  graft_address allocate(uint64_t bytes, Stream& stream) override;
  void release(graft_address address, Stream& stream) override;
  graft_address output(size_t index, uint64_t bytes, Stream& stream) override;
  TensorView constant(const compiler::GraphValue& value) override;
  Philox draw(const compiler::Node& node, uint64_t count) override;
  void run(const compiler::ExternalCall& call, Stream& stream) override;
  void lacks_group(const Error& why) override { lack_ = why.what(); }
  void lacks_node(const Error& why) override { lack_ = why.what(); }

  // The memory of the last run's outputs, which is the caller's now.
  std::vector<HeldBlock> take_outputs() { return std::exchange(outputs_, {}); }

  // The numbers of later runs begin anew.
  void seed(uint64_t seed) { numbers_ = {seed, 0}; }

 private:
  Device& device_;
  const std::map<std::string, TensorView>& constants_;
  std::unordered_map<graft_address, HeldBlock> held_;
  std::vector<HeldBlock> outputs_;
  Philox numbers_;
  std::string lack_;  // why a kernel of the device was missing last; may be empty
};

}  // namespace graft::deploy

// src/deploy/model_host.h: memory, constants and random numbers of a deployed model's graphs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/nodes/execution_host.h"
#include "runtime/memory/allocator.h"
#include "runtime/platform/device.h"

namespace graft::deploy {

// A block of device memory that goes back when it dies, in its stream's order.
class HeldBlock {
 public:
  HeldBlock() = default;
  // bytes may be 0: no memory then. Throws what Allocator::allocate throws.
  HeldBlock(Device& device, Stream& stream, uint64_t bytes)
      : allocator_(&device.allocator()),
        block_(bytes == 0 ? nullptr : allocator_->allocate(bytes, stream)) {}
  HeldBlock(HeldBlock&& other) noexcept
      : allocator_(other.allocator_), block_(std::exchange(other.block_, nullptr)) {}
  HeldBlock& operator=(HeldBlock&& other) noexcept {
    std::swap(allocator_, other.allocator_), std::swap(block_, other.block_);
    return *this;
  }
  ~HeldBlock() {
    if (block_ != nullptr) allocator_->free(block_);
  }

  graft_address address() const { return block_ == nullptr ? 0 : block_->address; }

 private:
  Allocator* allocator_ = nullptr;
  Block* block_ = nullptr;
};

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
};

}  // namespace graft::deploy

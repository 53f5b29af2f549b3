// tests/compiler/run/device_host.h: an executor's memory, on the device that the kernels' tests
// use.
#pragma once

#include <map>
#include <utility>

#include "compiler/nodes/execution_host.h"
#include "runtime/memory/allocator.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace graft::compiler::test {

// Runs no node; outputs live as long as the host.
class DeviceHost : public ExecutionHost {
 public:
  ~DeviceHost() override {
    graft::test::stream().synchronize();
    for (auto& [address, block] : blocks_) graft::test::device().allocator().free(block);
  }
  graft_address allocate(uint64_t bytes, Stream& on) override {
    Block* block = graft::test::device().allocator().allocate(bytes, on);
    blocks_[block->address] = block;
    return block->address;
  }
  void release(graft_address address, Stream&) override {
    graft::test::device().allocator().free(blocks_.at(address));
    blocks_.erase(address);
  }
  graft_address output(size_t, uint64_t bytes, Stream& on) override {
    return bytes == 0 ? 0 : allocate(bytes, on);
  }
  TensorView constant(const GraphValue&) override { return {}; }
  Philox draw(const Node&, uint64_t count) override {
    return {1, std::exchange(drawn_, drawn_ + count)};
  }

 private:
  std::map<graft_address, Block*> blocks_;
  uint64_t drawn_ = 0;
};

}  // namespace graft::compiler::test

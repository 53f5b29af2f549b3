// src/torch/compiled/graph_host.h: PyTorch as the host of a compiled graph: its memory and its
// operators.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/nodes/execution_host.h"
#include "torch/compiled/external_node.h"

namespace graft::binding {

// Serves one executor on one device; memory comes from the caching allocator. Used by one thread at
// a time.
class GraphHost final : public compiler::ExecutionHost {
 public:
  // externals: the tensors of external constants, by name; kept.
  GraphHost(c10::DeviceIndex device, std::map<std::string, at::Tensor> externals)
      : device_(device), externals_(std::move(externals)) {}

  graft_address allocate(uint64_t bytes, Stream& stream) override;
  void release(graft_address address, Stream& stream) override;
  graft_address output(size_t index, uint64_t bytes, Stream& stream) override;
  bool gives_inputs() const override { return given_ != nullptr; }
  void input_past(size_t index) override;
  TensorView constant(const compiler::GraphValue& value) override;
  Philox draw(const compiler::Node& node, uint64_t count) override;
  void run(const compiler::ExternalCall& call, Stream& stream) override;
  void lacks_group(const Error& why) override;
  std::unique_ptr<compiler::ExecutionHost> beside() const override;

  // The memory of an output of this run; null where none was made.
  c10::Storage storage(size_t output) const;
  // Before a run. generators: those of the call, for random nodes that name one; borrowed. given:
  // the call's inputs, where nobody needs them any more: emptied as the run goes along, and so are
  // their storages.
  void begin(const std::vector<at::Generator>* generators, std::vector<at::Tensor>* given,
             std::vector<c10::Storage>* storages) {
    generators_ = generators;
    given_ = given, storages_ = storages;
  }
  // After a run, also one that failed.
  void forget_outputs() { outputs_.clear(); }

  // External nodes that the device has no kernel for, by operator.
  std::map<std::string, int64_t> foreign() const;

 private:
  // Of the call's generators the one that a random node names.
  std::optional<at::Generator> generator_of(const compiler::Node& node) const;

  const c10::DeviceIndex device_;
  const std::map<std::string, at::Tensor> externals_;
  const std::vector<at::Generator>* generators_ = nullptr;
  std::vector<at::Tensor>* given_ = nullptr;
  std::vector<c10::Storage>* storages_ = nullptr;
  std::vector<c10::DataPtr> held_;
  std::vector<c10::Storage> outputs_;  // by index; null where none was made
  std::unordered_map<const compiler::Node*, ExternalNode> nodes_;
};

}  // namespace graft::binding

// src/deploy/model_host.cpp: memory, constants and random numbers of a deployed model's graphs.
#include "deploy/model_host.h"

#include <fmt/format.h>

#include "runtime/driver/error.h"

namespace graft::deploy {

graft_address ModelHost::allocate(uint64_t bytes, Stream& stream) {
  HeldBlock block(device_, stream, bytes);
  const graft_address address = block.address();
  held_.emplace(address, std::move(block));
  return address;
}

void ModelHost::release(graft_address address, Stream&) { held_.erase(address); }

graft_address ModelHost::output(size_t index, uint64_t bytes, Stream& stream) {
  if (outputs_.size() <= index) outputs_.resize(index + 1);
  outputs_[index] = HeldBlock(device_, stream, bytes);
  return outputs_[index].address();
}

TensorView ModelHost::constant(const compiler::GraphValue& value) {
  const auto found = constants_.find(value.external);
  if (found != constants_.end()) return found->second;
  throw Error(GRAFT_INVALID_ARGUMENT,
              fmt::format("the model's file lacks the constant \"{}\"", value.external));
}

Philox ModelHost::draw(const compiler::Node&, uint64_t count) {
  const Philox numbers = numbers_;
  numbers_.offset += count;
  return numbers;
}

void ModelHost::run(const compiler::ExternalCall& call, Stream& stream) {
  throw Error(
      GRAFT_UNSUPPORTED,
      fmt::format("{} has no kernel for {} ({}), and a deployed model runs without PyTorch: "
                  "deploy it for this device, or run it in Python{}{}",
                  stream.device().label(), call.node.op->name,
                  call.node.source.empty() ? "line unknown" : call.node.source,
                  lack_.empty() ? "" : ". ", lack_));
}

}  // namespace graft::deploy

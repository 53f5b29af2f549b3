// src/torch/graph_host.cpp: PyTorch as the host of a compiled graph: its memory and its operators.
#include "torch/graph_host.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <fmt/format.h>

#include "runtime/error.h"
#include "runtime/op_tag.h"
#include "torch/memory.h"
#include "torch/view.h"

namespace graft::binding {

graft_address GraphHost::allocate(uint64_t bytes, Stream&) {
  c10::DataPtr memory = allocate_on(device_, bytes);
  const auto address = reinterpret_cast<graft_address>(memory.get());
  held_.emplace(address, std::move(memory));
  return address;
}

void GraphHost::release(graft_address address, Stream&) { held_.erase(address); }

graft_address GraphHost::output(size_t index, uint64_t bytes, Stream&) {
  c10::DataPtr memory = allocate_on(device_, bytes);
  const auto address = reinterpret_cast<graft_address>(memory.get());
  outputs_[index] = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, std::move(memory), &device_memory(),
      /*resizable=*/true);
  return address;
}

TensorView GraphHost::constant(const compiler::Value& value) {
  const auto found = externals_.find(value.external);
  if (found != externals_.end()) return view_of(found->second);
  throw Error(
      GRAFT_INVALID_ARGUMENT,
      fmt::format("the graph's constant \"{}\" was not handed over with its text", value.external));
}

void GraphHost::run(const compiler::ExternalCall& call, Stream&) {
  auto found = nodes_.find(&call.node);
  if (found == nodes_.end()) {
    found = nodes_.emplace(&call.node, ExternalNode(call.graph, call.node)).first;
  }
  found->second.run(call, device_);
}

c10::Storage GraphHost::storage(size_t output) const {
  const auto found = outputs_.find(output);
  return found == outputs_.end() ? c10::Storage() : found->second;
}

std::map<std::string, int64_t> GraphHost::foreign() const {
  std::map<std::string, int64_t> counts;
  for (const auto& [node, external] : nodes_) {
    if (!external.native()) ++counts[node->op];
  }
  return counts;
}

}  // namespace graft::binding

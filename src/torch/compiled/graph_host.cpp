// src/torch/compiled/graph_host.cpp: PyTorch as the host of a compiled graph: its memory and its
// operators.
#include "torch/compiled/graph_host.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/driver/error.h"
#include "torch/device/fallback_count.h"
#include "torch/tensor/memory.h"
#include "torch/tensor/view.h"

namespace graft::binding {
namespace {

// Makes the device's default generator continue where the node's own one stands, if it names one.
class OwnNumbers {
 public:
  OwnNumbers(const compiler::Node& node, const std::vector<at::Generator>& generators,
             c10::DeviceIndex device) {
    for (const auto& [key, value] : node.notes) {
      if (key != "generator") continue;
      const size_t index = std::stoul(value);
      if (index >= generators.size()) {
        throw Error(GRAFT_INVALID_ARGUMENT,
                    fmt::format("a compiled graph needs {} generators, got {}", index + 1,
                                generators.size()));
      }
      default_ = at::globalContext().defaultGenerator(device_of(device));
      before_ = default_.graphsafe_get_state();
      default_.graphsafe_set_state(generators[index]);
    }
  }
  ~OwnNumbers() {
    if (before_.defined()) default_.graphsafe_set_state(before_);
  }
  OwnNumbers(const OwnNumbers&) = delete;
  OwnNumbers& operator=(const OwnNumbers&) = delete;

 private:
  at::Generator default_, before_;
};

}  // namespace

graft_address GraphHost::allocate(uint64_t bytes, Stream&) {
  c10::DataPtr memory = allocate_on(device_, bytes);
  const auto address = reinterpret_cast<graft_address>(memory.get());
  held_.push_back(std::move(memory));
  return address;
}

void GraphHost::release(graft_address address, Stream&) {
  const auto found = std::find_if(held_.begin(), held_.end(), [&](const c10::DataPtr& one) {
    return reinterpret_cast<graft_address>(one.get()) == address;
  });
  if (found == held_.end()) return;
  std::swap(*found, held_.back());
  held_.pop_back();
}

graft_address GraphHost::output(size_t index, uint64_t bytes, Stream&) {
  c10::DataPtr memory = allocate_on(device_, bytes);
  const auto address = reinterpret_cast<graft_address>(memory.get());
  if (outputs_.size() <= index) outputs_.resize(index + 1);
  outputs_[index] = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, std::move(memory), &device_memory(),
      /*resizable=*/true);
  return address;
}

void GraphHost::input_past(size_t index) {
  (*given_)[index].reset();
  (*storages_)[index] = c10::Storage();
}

TensorView GraphHost::constant(const compiler::GraphValue& value) {
  const auto found = externals_.find(value.external);
  if (found != externals_.end()) return view_of(found->second);
  throw Error(GRAFT_INVALID_ARGUMENT,
              fmt::format("the graph's text came without its constant \"{}\"", value.external));
}

bool GraphHost::run_direct(const compiler::ExternalCall& call, Stream& stream) {
  auto found = direct_.find(&call.node);
  if (found == direct_.end()) {
    found = direct_.emplace(&call.node, direct_node(call.graph, call.node, device_)).first;
  }
  if (!found->second) return false;
  try {
    found->second(call, stream);
    return true;
  } catch (const Error& error) {
    if (!error.lacks_kernel()) throw;
    found->second = {};
    return false;
  }
}

void GraphHost::lacks_group(const Error& why) { explain_fallback(why); }

void GraphHost::run(const compiler::ExternalCall& call, Stream& stream) {
  const OwnNumbers numbers(call.node, *generators_, device_);
  if (run_direct(call, stream)) return;
  auto found = nodes_.find(&call.node);
  if (found == nodes_.end()) {
    found = nodes_.emplace(&call.node, ExternalNode(call.graph, call.node)).first;
  }
  found->second.run(call, device_);
}

c10::Storage GraphHost::storage(size_t output) const {
  return output < outputs_.size() ? outputs_[output] : c10::Storage();
}

std::map<std::string, int64_t> GraphHost::foreign() const {
  std::map<std::string, int64_t> counts;
  for (const auto& [node, external] : nodes_) {
    if (!external.native()) ++counts[node->op->name];
  }
  return counts;
}

}  // namespace graft::binding

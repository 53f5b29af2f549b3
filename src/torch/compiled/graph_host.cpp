// src/torch/compiled/graph_host.cpp: PyTorch as the host of a compiled graph: its memory and its
// operators.
#include "torch/compiled/graph_host.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/driver/error.h"
#include "torch/device/fallback_count.h"
#include "torch/device/generator.h"
#include "torch/tensor/memory.h"
#include "torch/tensor/view.h"

namespace graft::binding {
namespace {

// Makes the device's default generator continue where own stands, if there is one.
class OwnNumbers {
 public:
  OwnNumbers(const std::optional<at::Generator>& own, c10::DeviceIndex device) {
    if (!own) return;
    default_ = at::globalContext().defaultGenerator(device_of(device));
    before_ = default_.graphsafe_get_state();
    default_.graphsafe_set_state(*own);
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

std::optional<at::Generator> GraphHost::generator_of(const compiler::Node& node) const {
  const std::string* const note = node.note("generator");
  if (note == nullptr) return std::nullopt;
  const size_t index = std::stoul(*note);
  if (index < generators_->size()) return (*generators_)[index];
  throw Error(GRAFT_INVALID_ARGUMENT, fmt::format("a compiled graph needs {} generators, got {}",
                                                  index + 1, generators_->size()));
}

Philox GraphHost::draw(const compiler::Node& node, uint64_t count) {
  const auto [seed, offset] = next_philox(generator_of(node), device_of(device_), count);
  return {seed, offset};
}

void GraphHost::lacks_group(const Error& why) { explain_fallback(why); }

std::unique_ptr<compiler::ExecutionHost> GraphHost::beside() const {
  return std::make_unique<GraphHost>(device_, std::map<std::string, at::Tensor>());
}

void GraphHost::run(const compiler::ExternalCall& call, Stream&) {
  const OwnNumbers numbers(generator_of(call.node), device_);
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

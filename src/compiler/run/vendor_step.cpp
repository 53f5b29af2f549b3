// src/compiler/run/vendor_step.cpp: runs a part of a graph that the vendor's compiler compiled.
#include "compiler/run/vendor_step.h"

#include <utility>

#include "compiler/graph/text.h"
#include "compiler/passes/vendor_graph.h"
#include "kernels/launch/workspace.h"
#include "runtime/driver/error.h"
#include "runtime/driver/op_tag.h"

namespace graft::compiler {

bool VendorStep::runs(const Node& node) {
  static const Operator* const own = find_operator(kVendorGraph);
  return node.op == own;
}

VendorStep::VendorStep(const Node& node, OpenDevice& device) {
  const std::string& text = node.arguments.at(0).text;
  const Graph part = parse(text);
  if (has_graph_compiler(device)) executable_ = get_executable(device, text);
  if (executable_ == nullptr) {
    throw Error(GRAFT_UNSUPPORTED, "graph " + part.name +
                                       " was compiled by a vendor's compiler, which " +
                                       device.label() + " lacks: compile it again");
  }
  for (NodeId id : part.order) nodes_ += part.nodes[id].views == kNone;
  tag_ = op_tag("vendor graph " + part.name);
  for (const Argument& one : node.arguments.at(1).list) inputs_.push_back(one.value);
  for (const Argument& one : node.arguments.at(2).list) sizes_.push_back(one.integer);
  outputs_ = node.results;
  from_.resize(inputs_.size());
  to_.resize(outputs_.size());
}

void VendorStep::prepare(const std::function<int64_t(const Size&)>& at) {
  symbols_.clear();
  for (const Size& size : sizes_) symbols_.push_back(at(size));
  const OpScope named(tag_);
  workspace_bytes_ = executable_->workspace_bytes(symbols_);
}

void VendorStep::run(Stream& stream, std::span<const TensorView> views) {
  const OpScope named(tag_);
  for (size_t i = 0; i < inputs_.size(); ++i) from_[i] = views[inputs_[i]].address;
  for (size_t i = 0; i < outputs_.size(); ++i) to_[i] = views[outputs_[i]].address;
  const Workspace workspace(stream, workspace_bytes_);
  ExecutableCommand command;
  command.run = executable_->table().executable_run;
  command.executable = executable_->handle();
  command.owner = executable_;
  command.call = {sizeof(graft_graph_run),
                  0,
                  from_.data(),
                  to_.data(),
                  symbols_.data(),
                  workspace.address(),
                  static_cast<uint32_t>(from_.size()),
                  static_cast<uint32_t>(to_.size()),
                  static_cast<uint32_t>(symbols_.size()),
                  0};
  stream.execute(std::move(command));
}

}  // namespace graft::compiler

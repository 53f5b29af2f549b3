// src/compiler/nodes/direct_node.h: nodes of a compiled graph that call their kernel straight.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "compiler/nodes/execution_host.h"
#include "runtime/driver/op_tag.h"

namespace graft::compiler {

// Queues one node: its results go to the places that the call names, with no tensor and no copy in
// between. Random nodes draw from the host's numbers.
using DirectNode = std::function<void(const ExternalCall&, ExecutionHost&, Stream&)>;

// What messages call a node's kernel: as its operator, unless a text says otherwise.
struct KernelName : std::string {
  KernelName(const char* text) : std::string(text) {}
  KernelName(const Node& node) : std::string(node.op->qualified()) {}
};

// run(call, stream), which queues a kernel of that name.
template <class Run>
DirectNode under(const KernelName& name, Run run) {
  return [run = std::move(run), tag = op_tag(name)](const ExternalCall& call, ExecutionHost&,
                                                    Stream& stream) {
    const OpScope named(tag);
    run(call, stream);
  };
}

// The same, but nothing where the first result has no element.
template <class Run>
DirectNode unless_empty(const KernelName& name, Run run) {
  return under(name, [run = std::move(run)](const ExternalCall& call, Stream& stream) {
    if (call.results[0].count() != 0) run(call, stream);
  });
}

// Of dropout that trains, of attention without dropout, of its gradients in float32, and of what
// images.h, indexing.h, moves.h and training.h name; empty for other nodes. What it throws is an
// Error: where that lacks_kernel(), the host must run the node.
DirectNode direct_node(const Graph& graph, const Node& node);

}  // namespace graft::compiler

// src/torch/compiled/direct_node.h: nodes of a compiled graph that call their kernel straight.
#pragma once

#include <c10/core/Device.h>

#include <functional>

#include "compiler/run/execution_host.h"

namespace graft::binding {

// Enqueues one node: its results go to the places that the call names, with no tensor and no copy
// in between. Random nodes draw from the device's default generator, as many numbers as eager's.
using DirectNode = std::function<void(const compiler::ExternalCall&, Stream&)>;

// Of dropout that trains, of attention in float32 without dropout and of what direct_images.h
// names; empty for other nodes. What it throws is an Error: where that lacks_kernel(), PyTorch's
// operator must take the node. REQUIRES: the graph outlives it.
DirectNode direct_node(const compiler::Graph& graph, const compiler::Node& node,
                       c10::DeviceIndex device);

}  // namespace graft::binding

// src/torch/ve/backward.h: the streams of backward passes on the slot.
#pragma once

#include "torch/version/autograd.h"

namespace graft::binding::ve {

// Makes the stream current on which the node's forward ran, for a thread of autograd's engine.
// What the backward passes of that thread had queued comes before; when the pass ends, all
// streams that it used go on behind its last one. Does nothing for nodes of other device types.
void enter_node(const torch::autograd::Node& node);

// Called before a command of the slot is queued: PyTorch's engine follows the streams of the
// accelerator's device type alone.
inline void follow_backward() {
  if (const auto node = torch::autograd::get_current_node()) [[unlikely]]
    enter_node(*node);
}

}  // namespace graft::binding::ve

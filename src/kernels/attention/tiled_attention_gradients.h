// src/kernels/attention/tiled_attention_gradients.h: the kernels of attention's gradients on
// GPU-like devices.
#pragma once

#include "kernels/attention/operands.h"

namespace graft {

// A group keeps a tile of queries and walks along the keys. Arguments: gradient of the query,
// slopes [batch, heads, rows] (written: the sum of each row's output times its gradient),
// logsumexp, output and its gradient, the operands.
ir::Kernel query_gradient_kernel(const std::string& key, const TiledAttention& kernel);

// A group keeps a tile of keys and walks along the queries of all heads that see it. Arguments:
// gradients of key and value, slopes, logsumexp, gradient of the output, the operands.
ir::Kernel key_gradient_kernel(const std::string& key, const TiledAttention& kernel);

}  // namespace graft

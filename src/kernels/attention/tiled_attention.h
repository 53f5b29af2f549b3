// src/kernels/attention/tiled_attention.h: attention with tiles in local memory, for GPU-like
// devices.
#pragma once

#include "kernels/attention/attention.h"
#include "runtime/driver/open_device.h"

namespace graft {

// Whether both of the following take the call, whose tensors may then be float16 or bfloat16 too,
// with logsumexp in float32.
GRAFT_EXPORT bool tiles_attention(OpenDevice& device, const Attention& call);

// attention() in one launch and without a score in memory: a group of work-items keeps a tile of
// queries and walks along the keys, with the rows' largest scores and sums so far. False, with
// nothing done, where AttentionTile has none for the call. After FlashAttention-2 (Dao, 2023)
// and Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018).
bool tiled_attention(Stream& stream, const TensorView& output, const TensorView& logsumexp,
                     const Attention& call);

// attention_backward() likewise in two launches: one keeps tiles of queries, one tiles of keys, and
// both make the scores once more.
bool tiled_attention_backward(Stream& stream, const TensorView& grad_query,
                              const TensorView& grad_key, const TensorView& grad_value,
                              const TensorView& grad_output, const Attention& call);

}  // namespace graft

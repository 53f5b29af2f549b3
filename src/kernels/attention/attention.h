// src/kernels/attention/attention.h: scaled dot product attention in blocks of rows, and its
// gradients.
#pragma once

#include <cstdint>

#include "kernels/random/random.h"
#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Queries [batch, heads, rows, depth]; keys [batch, key heads, columns, depth]; values [batch, key
// heads, columns, value depth]; heads is a multiple of key heads (query head h belongs to key head
// h / group). All of one dtype, any strides: float32, float64, and a half type in the forward pass
// (in the backward pass where tiles_attention()).
struct Attention {
  TensorView query, key, value;
  // Added to the scores; any floating dtype, [batch, heads, rows, columns], stride 0 to repeat.
  const TensorView* bias = nullptr;
  double scale = 1;
  bool causal = false;  // row i sees the columns up to i
  double dropout = 0;   // probability with which a weight becomes 0
  Philox philox;
  // What attention() gave for this call, logsumexp in float32 for the half types: the gradients on
  // some devices make it once more without them.
  const TensorView *output = nullptr, *logsumexp = nullptr;
};

// output = dropout(softmax(scale * query key^T + bias)) value; logsumexp [batch, heads, rows],
// contiguous, is that of the rows' scores, in float32 for the half types, which are computed in it.
// A row that sees nothing gives zeros, and -inf.
// Scores exist for one block of rows and heads at a time, so memory grows with rows + columns.
// After Rabe and Staats, "Self-attention does not need O(n^2) memory" (2021), and FlashAttention
// (Dao et al., 2022), whose recomputation of the blocks the gradient takes.
GRAFT_EXPORT void attention(Stream& stream, const TensorView& output, const TensorView& logsumexp,
                            const Attention& call);

// Gradients of query, key and value for that of the output; the same philox draws the same mask.
GRAFT_EXPORT void attention_backward(Stream& stream, const TensorView& grad_query,
                                     const TensorView& grad_key, const TensorView& grad_value,
                                     const TensorView& grad_output, const Attention& call);

// How far the caller advances the generator's offset where dropout is not 0.
GRAFT_EXPORT uint64_t attention_increment(const Attention& call);

inline constexpr int64_t kAttentionBlockElements = 1 << 20;

}  // namespace graft

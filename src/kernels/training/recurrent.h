// src/kernels/training/recurrent.h: the elementwise part of LSTM and GRU cells, one launch for a
// step.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// All tensors are contiguous and of one floating dtype, computed in float32 (float64 for float64)
// and rounded once. n rows and a hidden size of h: states [n, h], gates [n, gates * h] with the
// gates side by side in a row, biases [gates * h] or null.

// Gates input, forget, cell, output = the sum of the four; cy = forget * cx + in * cell, hy =
// out * tanh(cy). workspace [n, 4 h] keeps the activated gates.
GRAFT_EXPORT void lstm_cell(Stream& stream, const TensorView& hy, const TensorView& cy,
                            const TensorView& workspace, const TensorView& input_gates,
                            const TensorView& hidden_gates, const TensorView& cx,
                            const TensorView* input_bias, const TensorView* hidden_bias);

// Gradients of either kind of gates and of cx; a null gradient of hy or cy stands for zeros.
GRAFT_EXPORT void lstm_cell_backward(Stream& stream, const TensorView& grad_gates,
                                     const TensorView& grad_cx, const TensorView* grad_hy,
                                     const TensorView* grad_cy, const TensorView& cx,
                                     const TensorView& cy, const TensorView& workspace);

// Gates reset, update, new; fresh = tanh(input part + reset * hidden part of new), hy = fresh +
// update * (hx - fresh). workspace [n, 5 h] keeps reset, update, fresh, hx, hidden part of new.
GRAFT_EXPORT void gru_cell(Stream& stream, const TensorView& hy, const TensorView& workspace,
                           const TensorView& input_gates, const TensorView& hidden_gates,
                           const TensorView& hx, const TensorView* input_bias,
                           const TensorView* hidden_bias);

GRAFT_EXPORT void gru_cell_backward(Stream& stream, const TensorView& grad_input_gates,
                                    const TensorView& grad_hidden_gates, const TensorView& grad_hx,
                                    const TensorView& grad_hy, const TensorView& workspace);

}  // namespace graft

// src/kernels/loss/ctc_loss.h: the connectionist temporal classification loss and its gradient.
#pragma once

#include <cstdint>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Sums over all alignments of a sequence of labels with the time steps, in logarithms: Graves,
// Fernandez, Gomez, Schmidhuber, "Connectionist Temporal Classification", ICML 2006, equations 6 to
// 16. One work-item per sequence.
struct CtcSequences {
  TensorView log_probs;  // [time, batch, labels], float32 or float64, any strides
  TensorView targets;    // int32 or int64 [all labels in a row] or [batch, labels], any strides
  // Contiguous int64 [batch, 3]: time steps, labels, and where the first label lies in targets, in
  // elements. The caller has checked them against the sizes.
  TensorView lengths;
  int64_t blank = 0;
};

// losses: [batch]. log_alpha: contiguous [batch, time, states] with states >= 2 * labels + 1 of the
// longest sequence; what lies beyond a sequence's own stays unwritten. Targets that are no label
// are clamped and reported (error_record.h).
GRAFT_EXPORT void ctc_loss(Stream& stream, const CtcSequences& sequences, const TensorView& losses,
                           const TensorView& log_alpha);

// Writes every element of grad_input (log_probs' sizes); grad: [batch], any stride. zero_infinity:
// 0 where the loss is infinite.
GRAFT_EXPORT void ctc_loss_backward(Stream& stream, const CtcSequences& sequences,
                                    const TensorView& grad_input, const TensorView& grad,
                                    const TensorView& losses, const TensorView& log_alpha,
                                    bool zero_infinity);

}  // namespace graft

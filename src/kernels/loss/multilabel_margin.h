// src/kernels/loss/multilabel_margin.h: the hinge loss of samples with several labels, and its
// gradient.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Contiguous views: scores and marks [samples, classes] and losses [samples] of one floating dtype,
// labels int64 [samples, classes]. A sample's labels end at the first one below 0. Labels beyond
// the classes are clamped and reported (checked_index.h).

// marks = 1 at a sample's labels, 0 elsewhere;
// losses = sum over labels l and unmarked classes i of max(0, 1 - score[l] + score[i]) / classes.
GRAFT_EXPORT void multilabel_margin(Stream& stream, const TensorView& losses,
                                    const TensorView& marks, const TensorView& scores,
                                    const TensorView& labels);

// slopes [samples, classes] = the gradient of losses times classes: for each pair that misses the
// margin -1 at the label and 1 at the class.
GRAFT_EXPORT void multilabel_margin_backward(Stream& stream, const TensorView& slopes,
                                             const TensorView& scores, const TensorView& labels,
                                             const TensorView& marks);

}  // namespace graft

// src/kernels/attention/mask.h: which weights the dropout of attention keeps, by the host.
#pragma once

#include "kernels/attention/attention.h"
#include "runtime/driver/export.h"

namespace graft {

// What attention() drew for the call, for gradients whose kernel its device lacks: true at kept for
// each weight of [batch, heads, rows, columns], contiguous, that stays, and for those that causal
// hides. Needs no device; the views' addresses are not read.
GRAFT_EXPORT void attention_mask(const Attention& call, bool* kept);

}  // namespace graft

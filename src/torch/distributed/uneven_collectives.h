// src/torch/distributed/uneven_collectives.h: collectives whose parts differ in size, as one for
// each rank.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <vector>

#include "torch/distributed/call_sequence.h"
#include "torch/version/c10d.h"

namespace graft::binding {

// The work of an all_gather as broadcasts of group, whose calls go through calls. outputs: a tensor
// for each rank; every rank gives the same sizes. The caller's thread. Throws RuntimeError where
// input does not fit this rank's output, before anything was started.
c10::intrusive_ptr<c10d::Work> gather_uneven(c10d::Backend& group, CallSequence& calls,
                                             const std::vector<at::Tensor>& outputs,
                                             const at::Tensor& input,
                                             const c10d::AllgatherOptions& options);

// The work of a reduce_scatter as reductions of group, likewise. inputs: a tensor for each rank,
// only read.
c10::intrusive_ptr<c10d::Work> reduce_scatter_uneven(c10d::Backend& group, CallSequence& calls,
                                                     const at::Tensor& output,
                                                     const std::vector<at::Tensor>& inputs,
                                                     const c10d::ReduceScatterOptions& options);

}  // namespace graft::binding

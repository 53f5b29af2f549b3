// src/torch/distributed/uneven_collectives.cpp: collectives whose parts differ in size, as one for
// each rank.
#include "torch/distributed/uneven_collectives.h"

namespace graft::binding {

c10::intrusive_ptr<c10d::Work> gather_uneven(c10d::Backend& group, CallSequence& calls,
                                             const std::vector<at::Tensor>& outputs,
                                             const at::Tensor& input,
                                             const c10d::AllgatherOptions& options) {
  const at::Tensor& own = outputs[static_cast<size_t>(group.getRank())];
  TORCH_CHECK(own.numel() == input.numel() && own.scalar_type() == input.scalar_type(),
              "all_gather: this rank's tensor of the list is ", own.scalar_type(), own.sizes(),
              ", its input ", input.scalar_type(), input.sizes());
  {
    const at::NoGradGuard no_grad;
    own.copy_(input.view_as(own));
  }
  return calls.for_every_rank([&](int rank) {
    c10d::BroadcastOptions one;
    one.rootRank = rank;
    one.timeout = options.timeout;
    one.asyncOp = options.asyncOp;
    std::vector<at::Tensor> part{outputs[static_cast<size_t>(rank)]};
    return group.broadcast(part, one);
  });
}

c10::intrusive_ptr<c10d::Work> reduce_scatter_uneven(c10d::Backend& group, CallSequence& calls,
                                                     const at::Tensor& output,
                                                     const std::vector<at::Tensor>& inputs,
                                                     const c10d::ReduceScatterOptions& options) {
  const at::Tensor& own = inputs[static_cast<size_t>(group.getRank())];
  TORCH_CHECK(own.numel() == output.numel() && own.scalar_type() == output.scalar_type(),
              "reduce_scatter: this rank's tensor of the list is ", own.scalar_type(), own.sizes(),
              ", its output ", output.scalar_type(), output.sizes());
  {
    const at::NoGradGuard no_grad;
    output.copy_(own.view_as(output));
  }
  return calls.for_every_rank([&](int rank) {
    c10d::ReduceOptions one;
    one.reduceOp = options.reduceOp;
    one.rootRank = rank;
    one.timeout = options.timeout;
    one.asyncOp = options.asyncOp;
    std::vector<at::Tensor> part{rank == group.getRank() ? output
                                                         : inputs[static_cast<size_t>(rank)]};
    return group.reduce(part, one);
  });
}

}  // namespace graft::binding

// src/torch/distributed/process_group_uneven.cpp: collectives whose parts differ in size, as one
// for each rank.
#include <algorithm>
#include <utility>

#include "torch/distributed/process_group.h"

namespace graft::binding {

ProcessGroup::WorkPtr ProcessGroup::for_every_rank(const std::function<WorkPtr(int rank)>& each) {
  std::optional<std::vector<WorkPtr>> outer = std::exchange(coalescing_, std::nullopt);
  std::vector<WorkPtr> works;
  try {
    for (int rank = 0; rank < getSize(); ++rank) works.push_back(each(rank));
  } catch (...) {
    coalescing_ = std::move(outer);
    throw;
  }
  coalescing_ = std::move(outer);
  return noted(c10::make_intrusive<CoalescedWork>(getRank(), std::move(works)));
}

ProcessGroup::WorkPtr ProcessGroup::gather_uneven(const Tensors& outputs, const at::Tensor& input,
                                                  const c10d::AllgatherOptions& options) {
  const at::Tensor& own = outputs[static_cast<size_t>(getRank())];
  TORCH_CHECK(own.numel() == input.numel() && own.scalar_type() == input.scalar_type(),
              "all_gather: this rank's tensor of the list is ", own.scalar_type(), own.sizes(),
              ", its input ", input.scalar_type(), input.sizes());
  {
    const at::NoGradGuard no_grad;
    own.copy_(input.view_as(own));
  }
  return for_every_rank([&](int rank) {
    c10d::BroadcastOptions one;
    one.rootRank = rank;
    one.timeout = options.timeout;
    one.asyncOp = options.asyncOp;
    Tensors part{outputs[static_cast<size_t>(rank)]};
    return broadcast(part, one);
  });
}

// The parts of the others are only read.
ProcessGroup::WorkPtr ProcessGroup::reduce_scatter_uneven(
    const at::Tensor& output, const Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  const at::Tensor& own = inputs[static_cast<size_t>(getRank())];
  TORCH_CHECK(own.numel() == output.numel() && own.scalar_type() == output.scalar_type(),
              "reduce_scatter: this rank's tensor of the list is ", own.scalar_type(), own.sizes(),
              ", its output ", output.scalar_type(), output.sizes());
  {
    const at::NoGradGuard no_grad;
    output.copy_(own.view_as(output));
  }
  return for_every_rank([&](int rank) {
    c10d::ReduceOptions one;
    one.reduceOp = options.reduceOp;
    one.rootRank = rank;
    one.timeout = options.timeout;
    one.asyncOp = options.asyncOp;
    Tensors part{rank == getRank() ? output : inputs[static_cast<size_t>(rank)]};
    return reduce(part, one);
  });
}

}  // namespace graft::binding

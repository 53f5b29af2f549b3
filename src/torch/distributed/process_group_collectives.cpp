// src/torch/distributed/process_group_collectives.cpp: the collectives of a group, as exchanges of
// its engine.
#include <algorithm>
#include <utility>

#include "torch/distributed/process_group.h"

namespace graft::binding {
namespace {

using Tensors = ProcessGroup::Tensors;
using Lists = ProcessGroup::Lists;

void check_one(const Tensors& tensors, const char* what) {
  TORCH_CHECK(tensors.size() == 1, what, " takes one tensor on each rank, got ", tensors.size());
}

void check_same_dtype(const Tensors& tensors, const char* what) {
  TORCH_CHECK(!tensors.empty(), what, " takes at least one tensor");
  for (const at::Tensor& tensor : tensors) {
    TORCH_CHECK(tensor.scalar_type() == tensors[0].scalar_type(), what,
                " takes tensors of one dtype, got ", tensors[0].scalar_type(), " and ",
                tensor.scalar_type());
  }
}

void check_pairs(const Tensors& outputs, const Tensors& inputs, const char* what) {
  TORCH_CHECK(outputs.size() == inputs.size() && !inputs.empty(), what,
              " takes an output for each input, got ", outputs.size(), " for ", inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    TORCH_CHECK(outputs[i].scalar_type() == inputs[i].scalar_type(), what, ": the output is of ",
                outputs[i].scalar_type(), ", the input of ", inputs[i].scalar_type());
  }
}

void check_list(const Tensors& list, size_t size, const at::Tensor& like, const char* what) {
  TORCH_CHECK(list.size() == size, what, " takes a list of ", size, " tensors, got ", list.size());
  for (const at::Tensor& tensor : list) {
    TORCH_CHECK(tensor.numel() == like.numel() && tensor.scalar_type() == like.scalar_type(), what,
                ": a tensor of the list is ", tensor.scalar_type(), tensor.sizes(), ", expected ",
                like.scalar_type(), like.sizes());
  }
}

// Whether the tensors of a list have several sizes. Every rank has the same list of sizes.
bool differ(const Tensors& list) {
  return std::any_of(list.begin(), list.end(),
                     [&](const at::Tensor& one) { return one.numel() != list[0].numel(); });
}

Tensors flat(const Lists& lists) {
  Tensors all;
  for (const Tensors& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// Where each rank's rows of a tensor lie. splits: rows for each rank; none: as many for each.
std::vector<Span> rows(const Region& region, const at::Tensor& tensor,
                       const std::vector<int64_t>& splits, size_t ranks) {
  c10d::checkSplitSizes(splits, tensor, static_cast<int>(ranks));
  const auto count = static_cast<uint64_t>(tensor.size(0));
  const uint64_t row = count == 0 ? 0 : region.bytes / count;
  std::vector<Span> spans;
  uint64_t at = region.address;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const uint64_t mine = splits.empty() ? count / ranks : static_cast<uint64_t>(splits[rank]);
    spans.push_back({{at, mine * row}});
    at += mine * row;
  }
  return spans;
}

}  // namespace

ProcessGroup::WorkPtr ProcessGroup::broadcast(Tensors& tensors,
                                              const c10d::BroadcastOptions& options) {
  check_one(tensors, "broadcast");
  CollectiveBuilder draft(Collective::kBroadcast, options, options.rootRank);
  const bool root = options.rootRank == getRank();
  draft.exchange.send = {{root ? draft.input(tensors[0]) : draft.output(tensors[0])}};
  draft.exchange.receive = draft.exchange.send;
  draft.measure(draft.exchange.send);
  return start({c10d::OpType::BROADCAST, "graft:broadcast", tensors, tensors}, draft);
}

ProcessGroup::WorkPtr ProcessGroup::reduce_all(c10d::OpType type, const char* title,
                                               const Tensors& tensors,
                                               const c10d::AllreduceOptions& options) {
  check_same_dtype(tensors, "all_reduce");
  CollectiveBuilder draft(Collective::kAllReduce, options);
  const CollectiveReduction reduction(options.reduceOp, tensors[0].scalar_type(), getSize());
  draft.use(reduction);
  Span span;
  for (const at::Tensor& tensor : tensors) span.push_back(draft.in_out(tensor, reduction, true));
  draft.exchange.send = {span};
  draft.exchange.receive = {span};
  draft.measure(draft.exchange.send);
  return start({type, title, tensors, tensors}, draft);
}

ProcessGroup::WorkPtr ProcessGroup::allreduce(Tensors& tensors,
                                              const c10d::AllreduceOptions& options) {
  return reduce_all(c10d::OpType::ALLREDUCE, "graft:all_reduce", tensors, options);
}

ProcessGroup::WorkPtr ProcessGroup::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  return reduce_all(c10d::OpType::ALLREDUCE_COALESCED, "graft:all_reduce_coalesced", tensors,
                    options);
}

ProcessGroup::WorkPtr ProcessGroup::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  check_one(tensors, "reduce");
  CollectiveBuilder draft(Collective::kReduce, options, options.rootRank);
  const CollectiveReduction reduction(options.reduceOp, tensors[0].scalar_type(), getSize());
  draft.use(reduction);
  draft.exchange.send = {{draft.in_out(tensors[0], reduction, options.rootRank == getRank())}};
  draft.exchange.receive = draft.exchange.send;
  draft.measure(draft.exchange.send);
  return start({c10d::OpType::REDUCE, "graft:reduce", tensors, tensors}, draft);
}

ProcessGroup::WorkPtr ProcessGroup::gather_into(c10d::OpType type, const char* title,
                                                const Tensors& outputs, const Tensors& inputs,
                                                const c10d::AllgatherOptions& options) {
  check_pairs(outputs, inputs, "all_gather_into_tensor");
  CollectiveBuilder draft(Collective::kAllGather, options);
  draft.exchange.send.resize(1);
  draft.exchange.receive.resize(ranks());
  for (size_t i = 0; i < inputs.size(); ++i) {
    TORCH_CHECK(outputs[i].numel() == inputs[i].numel() * getSize(), "all_gather_into_tensor of ",
                inputs[i].numel(), " elements on ", getSize(), " ranks needs an output of ",
                inputs[i].numel() * getSize(), ", got ", outputs[i].numel());
    draft.exchange.send[0].push_back(draft.input(inputs[i]));
    draft.scatter_over(draft.exchange.receive, draft.output(outputs[i]));
  }
  draft.measure(draft.exchange.send);
  return start({type, title, inputs, outputs}, draft);
}

ProcessGroup::WorkPtr ProcessGroup::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                    const c10d::AllgatherOptions& options) {
  return gather_into(c10d::OpType::_ALLGATHER_BASE, "graft:_all_gather_base", {output}, {input},
                     options);
}

ProcessGroup::WorkPtr ProcessGroup::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  return gather_into(c10d::OpType::COALESCED, "graft:all_gather_into_tensor_coalesced", outputs,
                     inputs, options);
}

// outputs: a list for each rank, with a tensor for each input.
ProcessGroup::WorkPtr ProcessGroup::gather_lists(c10d::OpType type, const char* title,
                                                 const Lists& outputs, const Tensors& inputs,
                                                 const c10d::AllgatherOptions& options) {
  CollectiveBuilder draft(Collective::kAllGather, options);
  draft.exchange.send.resize(1);
  draft.exchange.receive.resize(ranks());
  for (size_t i = 0; i < inputs.size(); ++i) {
    draft.exchange.send[0].push_back(draft.input(inputs[i]));
    Tensors list;
    for (size_t rank = 0; rank < ranks(); ++rank) list.push_back(outputs[rank].at(i));
    check_list(list, ranks(), inputs[i], "all_gather");
    for (size_t rank = 0; rank < ranks(); ++rank) {
      draft.exchange.receive[rank].push_back(draft.output(list[rank]));
    }
  }
  draft.measure(draft.exchange.send);
  return start({type, title, inputs, flat(outputs)}, draft);
}

ProcessGroup::WorkPtr ProcessGroup::allgather(Lists& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) {
  check_one(inputs, "all_gather");
  TORCH_CHECK(outputs.size() == 1 && outputs[0].size() == ranks(), "all_gather takes a list of ",
              getSize(), " tensors, one for each rank");
  if (differ(outputs[0])) return gather_uneven(outputs[0], inputs[0], options);
  Lists by_rank;
  for (const at::Tensor& tensor : outputs[0]) by_rank.push_back({tensor});
  return gather_lists(c10d::OpType::ALLGATHER, "graft:all_gather", by_rank, inputs, options);
}

ProcessGroup::WorkPtr ProcessGroup::allgather_coalesced(Lists& outputs, Tensors& inputs,
                                                        const c10d::AllgatherOptions& options) {
  TORCH_CHECK(!inputs.empty() && outputs.size() == ranks(),
              "all_gather_coalesced takes a list of tensors for each of the ", getSize(), " ranks");
  for (const Tensors& list : outputs) {
    TORCH_CHECK(list.size() == inputs.size(), "all_gather_coalesced takes lists of ", inputs.size(),
                " tensors, one for each input, got ", list.size());
  }
  return gather_lists(c10d::OpType::ALLGATHER_COALESCED, "graft:all_gather_coalesced", outputs,
                      inputs, options);
}

ProcessGroup::WorkPtr ProcessGroup::gather(Lists& outputs, Tensors& inputs,
                                           const c10d::GatherOptions& options) {
  check_one(inputs, "gather");
  const bool root = options.rootRank == getRank();
  CollectiveBuilder draft(Collective::kGather, options, options.rootRank);
  draft.exchange.send = {{draft.input(inputs[0])}};
  TORCH_CHECK(root ? outputs.size() == 1 : outputs.empty(),
              "gather takes a list of tensors on the root only");
  if (root) {
    check_list(outputs[0], ranks(), inputs[0], "gather");
    for (const at::Tensor& tensor : outputs[0]) {
      draft.exchange.receive.push_back({draft.output(tensor)});
    }
  }
  draft.measure(draft.exchange.send);
  return start({c10d::OpType::GATHER, "graft:gather", inputs, flat(outputs)}, draft);
}

ProcessGroup::WorkPtr ProcessGroup::scatter(Tensors& outputs, Lists& inputs,
                                            const c10d::ScatterOptions& options) {
  check_one(outputs, "scatter");
  const bool root = options.rootRank == getRank();
  CollectiveBuilder draft(Collective::kScatter, options, options.rootRank);
  draft.exchange.receive = {{draft.output(outputs[0])}};
  TORCH_CHECK(root ? inputs.size() == 1 : inputs.empty(),
              "scatter takes a list of tensors on the root only");
  if (root) {
    check_list(inputs[0], ranks(), outputs[0], "scatter");
    for (const at::Tensor& tensor : inputs[0]) draft.exchange.send.push_back({draft.input(tensor)});
  }
  draft.measure(draft.exchange.receive);
  return start({c10d::OpType::SCATTER, "graft:scatter", flat(inputs), outputs}, draft);
}

ProcessGroup::WorkPtr ProcessGroup::reduce_scatter(Tensors& outputs, Lists& inputs,
                                                   const c10d::ReduceScatterOptions& options) {
  check_one(outputs, "reduce_scatter");
  TORCH_CHECK(inputs.size() == 1, "reduce_scatter takes one list of tensors, got ", inputs.size());
  if (inputs[0].size() == ranks() && differ(inputs[0])) {
    return reduce_scatter_uneven(outputs[0], inputs[0], options);
  }
  check_list(inputs[0], ranks(), outputs[0], "reduce_scatter");
  CollectiveBuilder draft(Collective::kReduceScatter, options);
  const CollectiveReduction reduction(options.reduceOp, outputs[0].scalar_type(), getSize());
  draft.use(reduction);
  for (const at::Tensor& tensor : inputs[0]) {
    draft.exchange.send.push_back({draft.input(tensor, reduction)});
  }
  draft.exchange.receive = {{draft.output(outputs[0], reduction)}};
  draft.measure(draft.exchange.receive);
  return start({c10d::OpType::REDUCE_SCATTER, "graft:reduce_scatter", inputs[0], outputs}, draft);
}

ProcessGroup::WorkPtr ProcessGroup::reduce_scatter_tensors(
    c10d::OpType type, const char* title, const Tensors& outputs, const Tensors& inputs,
    const c10d::ReduceScatterOptions& options) {
  check_pairs(outputs, inputs, "reduce_scatter_tensor");
  check_same_dtype(inputs, "reduce_scatter_tensor");
  CollectiveBuilder draft(Collective::kReduceScatter, options);
  const CollectiveReduction reduction(options.reduceOp, inputs[0].scalar_type(), getSize());
  draft.use(reduction);
  draft.exchange.send.resize(ranks());
  draft.exchange.receive.resize(1);
  for (size_t i = 0; i < inputs.size(); ++i) {
    TORCH_CHECK(inputs[i].numel() == outputs[i].numel() * getSize(), "reduce_scatter_tensor of ",
                inputs[i].numel(), " elements on ", getSize(), " ranks needs an output of 1/",
                getSize(), " of them, got ", outputs[i].numel());
    draft.scatter_over(draft.exchange.send, draft.input(inputs[i], reduction));
    draft.exchange.receive[0].push_back(draft.output(outputs[i], reduction));
  }
  draft.measure(draft.exchange.receive);
  return start({type, title, inputs, outputs}, draft);
}

ProcessGroup::WorkPtr ProcessGroup::_reduce_scatter_base(
    at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) {
  return reduce_scatter_tensors(c10d::OpType::_REDUCE_SCATTER_BASE, "graft:_reduce_scatter_base",
                                {output}, {input}, options);
}

ProcessGroup::WorkPtr ProcessGroup::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  return reduce_scatter_tensors(c10d::OpType::REDUCE_SCATTER_TENSOR_COALESCED,
                                "graft:reduce_scatter_tensor_coalesced", outputs, inputs, options);
}

ProcessGroup::WorkPtr ProcessGroup::alltoall(Tensors& outputs, Tensors& inputs,
                                             const c10d::AllToAllOptions& options) {
  TORCH_CHECK(outputs.size() == ranks() && inputs.size() == ranks(), "all_to_all takes lists of ",
              getSize(), " tensors, got ", outputs.size(), " and ", inputs.size());
  CollectiveBuilder draft(Collective::kAllToAll, options);
  for (const at::Tensor& tensor : inputs) draft.exchange.send.push_back({draft.input(tensor)});
  for (const at::Tensor& tensor : outputs) draft.exchange.receive.push_back({draft.output(tensor)});
  return start({c10d::OpType::ALLTOALL, "graft:all_to_all", inputs, outputs}, draft);
}

ProcessGroup::WorkPtr ProcessGroup::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                  std::vector<int64_t>& output_splits,
                                                  std::vector<int64_t>& input_splits,
                                                  const c10d::AllToAllOptions& options) {
  check_pairs({output}, {input}, "all_to_all_single");
  CollectiveBuilder draft(Collective::kAllToAll, options);
  draft.exchange.send = rows(draft.input(input), input, input_splits, ranks());
  draft.exchange.receive = rows(draft.output(output), output, output_splits, ranks());
  return start({c10d::OpType::ALLTOALL_BASE, "graft:all_to_all", {input}, {output}}, draft);
}

}  // namespace graft::binding

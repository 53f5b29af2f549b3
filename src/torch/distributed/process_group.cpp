// src/torch/distributed/process_group.cpp: the backend of torch.distributed for tensors of our
// devices.
#include "torch/distributed/process_group.h"

#include <algorithm>

#include "torch/device/current.h"
#include "torch/device/errors.h"
#include "torch/device/type.h"
#include "torch/distributed/collective_builder.h"
#include "torch/distributed/exchange.h"
#include "torch/distributed/tensor_lists.h"
#include "torch/distributed/uneven_collectives.h"

namespace graft::binding {
namespace {

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

ProcessGroup::ProcessGroup(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                           c10::intrusive_ptr<c10d::Backend> host,
                           c10::intrusive_ptr<GroupOptions> options)
    : Backend(rank, size),
      options_(std::move(options)),
      engines_(store, rank, size, std::move(host), options_),
      calls_(engines_, rank, size) {}

void ProcessGroup::setTimeout(std::chrono::milliseconds timeout) {
  options_->timeout = timeout;
  engines_.staged().host().setTimeout(timeout);
}

void ProcessGroup::eagerConnectSingleDevice(at::Device device) {
  setBoundDeviceId(device);
  if (on_bound_) on_bound_(device);
}

c10::intrusive_ptr<c10d::Backend> ProcessGroup::split(const c10::intrusive_ptr<c10d::Store>& store,
                                                      const std::vector<int>& ranks,
                                                      const c10::intrusive_ptr<Options>& options) {
  const auto found = std::find(ranks.begin(), ranks.end(), getRank());
  if (found == ranks.end()) return nullptr;
  if (split_name_ == options->group_name) {
    if (auto known = split_.lock()) return known;
  }
  auto mine =
      c10::make_intrusive<GroupOptions>(options_->backend, options->timeout, options_->engine);
  mine->group_name = options->group_name;
  const auto& names = options_->global_ranks_in_group;
  for (const int rank : ranks) {
    const auto index = static_cast<size_t>(rank);
    mine->global_ranks_in_group.push_back(index < names.size() ? names[index] : index);
  }
  // Not Gloo's own options, which its split would change while it reads them.
  auto plain = c10::make_intrusive<Options>("gloo", options->timeout);
  plain->group_name = options->group_name;
  auto part = engines_.staged().host().split(
      c10::make_intrusive<c10d::PrefixStore>("staging", store), ranks, plain);
  auto made = c10::make_intrusive<ProcessGroup>(
      c10::make_intrusive<c10d::PrefixStore>("device", store),
      static_cast<int>(found - ranks.begin()), static_cast<int>(ranks.size()), std::move(part),
      std::move(mine));
  split_name_ = options->group_name;
  split_ = c10::weak_intrusive_ptr<c10d::Backend>(c10::intrusive_ptr<c10d::Backend>(made));
  return made;
}

void ProcessGroup::shutdown() {
  translate([&] { engines_.finish(); });
}

c10d::ErrorType ProcessGroup::getError() {
  return engines_.failed() ? c10d::ErrorType::COMM_ERROR : c10d::ErrorType::SUCCESS;
}

ProcessGroup::WorkPtr ProcessGroup::broadcast(Tensors& tensors,
                                              const c10d::BroadcastOptions& options) {
  check_one(tensors, "broadcast");
  CollectiveBuilder draft(Collective::kBroadcast, options, options.rootRank);
  const bool root = options.rootRank == getRank();
  draft.exchange.send = {{root ? draft.input(tensors[0]) : draft.output(tensors[0])}};
  draft.exchange.receive = draft.exchange.send;
  draft.measure(draft.exchange.send);
  return calls_.start({c10d::OpType::BROADCAST, "graft:broadcast", tensors, tensors}, draft);
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
  return calls_.start({type, title, tensors, tensors}, draft);
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
  return calls_.start({c10d::OpType::REDUCE, "graft:reduce", tensors, tensors}, draft);
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
  return calls_.start({type, title, inputs, outputs}, draft);
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
  return calls_.start({type, title, inputs, flat(outputs)}, draft);
}

ProcessGroup::WorkPtr ProcessGroup::allgather(Lists& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) {
  check_one(inputs, "all_gather");
  TORCH_CHECK(outputs.size() == 1 && outputs[0].size() == ranks(), "all_gather takes a list of ",
              getSize(), " tensors, one for each rank");
  if (differ(outputs[0])) return gather_uneven(*this, calls_, outputs[0], inputs[0], options);
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
  return calls_.start({c10d::OpType::GATHER, "graft:gather", inputs, flat(outputs)}, draft);
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
  return calls_.start({c10d::OpType::SCATTER, "graft:scatter", flat(inputs), outputs}, draft);
}

ProcessGroup::WorkPtr ProcessGroup::reduce_scatter(Tensors& outputs, Lists& inputs,
                                                   const c10d::ReduceScatterOptions& options) {
  check_one(outputs, "reduce_scatter");
  TORCH_CHECK(inputs.size() == 1, "reduce_scatter takes one list of tensors, got ", inputs.size());
  if (inputs[0].size() == ranks() && differ(inputs[0])) {
    return reduce_scatter_uneven(*this, calls_, outputs[0], inputs[0], options);
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
  return calls_.start({c10d::OpType::REDUCE_SCATTER, "graft:reduce_scatter", inputs[0], outputs},
                      draft);
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
  return calls_.start({type, title, inputs, outputs}, draft);
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
  return calls_.start({c10d::OpType::ALLTOALL, "graft:all_to_all", inputs, outputs}, draft);
}

ProcessGroup::WorkPtr ProcessGroup::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                  std::vector<int64_t>& output_splits,
                                                  std::vector<int64_t>& input_splits,
                                                  const c10d::AllToAllOptions& options) {
  check_pairs({output}, {input}, "all_to_all_single");
  CollectiveBuilder draft(Collective::kAllToAll, options);
  draft.exchange.send = rows(draft.input(input), input, input_splits, ranks());
  draft.exchange.receive = rows(draft.output(output), output, output_splits, ranks());
  return calls_.start({c10d::OpType::ALLTOALL_BASE, "graft:all_to_all", {input}, {output}}, draft);
}

ProcessGroup::WorkPtr ProcessGroup::peer_to_peer(c10d::OpType type, const char* title,
                                                 Tensors& tensors, int peer, int tag) {
  TORCH_CHECK(tensors.size() == 1, "send and recv take one tensor");
  TORCH_CHECK(peer < getSize(), "the group has ", getSize(), " ranks, so there is no rank ", peer);
  TORCH_CHECK(!options_->mirrored(),
              "send and recv need a process for each rank: the ranks of this group are ",
              "simulated by one (GRAFT_HOST_SIMULATE)");
  const bool sends = type == c10d::OpType::SEND;
  CollectiveBuilder draft(Collective::kBroadcast, c10d::BroadcastOptions());
  const Span span{sends ? draft.input(tensors[0]) : draft.output(tensors[0])};
  return calls_.transfer({type, title, tensors, tensors}, draft, span, peer, tag);
}

ProcessGroup::WorkPtr ProcessGroup::send(Tensors& tensors, int peer, int tag) {
  return peer_to_peer(c10d::OpType::SEND, "graft:send", tensors, peer, tag);
}

ProcessGroup::WorkPtr ProcessGroup::recv(Tensors& tensors, int peer, int tag) {
  return peer_to_peer(c10d::OpType::RECV, "graft:recv", tensors, peer, tag);
}

ProcessGroup::WorkPtr ProcessGroup::recvAnysource(Tensors& tensors, int tag) {
  return peer_to_peer(c10d::OpType::RECVANYSOURCE, "graft:recvAnySource", tensors, -1, tag);
}

ProcessGroup::WorkPtr ProcessGroup::barrier(const c10d::BarrierOptions& options) {
  const bool given = options.device && options.device->type() == kDeviceType;
  const auto index = given ? options.device->index() : c10::DeviceIndex{-1};
  return calls_.barrier(options.timeout, device_of(resolve(index)));
}

void ProcessGroup::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  engines_.staged().host().monitoredBarrier(options, wait_all_ranks);
}

}  // namespace graft::binding

// src/torch/distributed/process_group.h: the backend of torch.distributed for tensors of our
// devices.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "torch/distributed/call_sequence.h"
#include "torch/distributed/group_engines.h"
#include "torch/distributed/group_options.h"
#include "torch/version/c10d.h"

namespace graft::binding {

// One rank's side of a group. Collectives only queue; see CollectiveWork for what wait() means.
// As with every backend, all ranks call the same collectives in the same order, from one thread.
class ProcessGroup final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Lists = std::vector<std::vector<at::Tensor>>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  // store: the group's own. host: a backend for CPU tensors of the same ranks, used by this group
  // alone. options: the backend's name, its default timeout and the global ranks.
  ProcessGroup(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
               c10::intrusive_ptr<c10d::Backend> host, c10::intrusive_ptr<GroupOptions> options);

  // Called when the group is bound to a device (init_process_group with device_id).
  void on_bound(std::function<void(at::Device)> told) { on_bound_ = std::move(told); }

  // The device type's name.
  const std::string getBackendName() const override { return options_->backend; }
  c10::intrusive_ptr<Options> getBackendOptions() override { return options_; }
  const c10::intrusive_ptr<GroupOptions>& options() const { return options_; }
  bool supportsSplitting() const override { return true; }
  void setTimeout(std::chrono::milliseconds timeout) override;
  void setSequenceNumberForGroup() override {}
  // How many collectives were called.
  uint64_t getSequenceNumberForGroup() override { return calls_.count(); }
  // Remembers the device, and tells on_bound.
  void eagerConnectSingleDevice(at::Device device) override;
  // A group of some ranks of this one, with this engine and these names; null where this rank is
  // not of them. Every rank of the part calls it. PyTorch asks once for each device type that the
  // group serves: while the part lives, its name gives the same one.
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store,
                                          const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<Options>& options) override;
  // What is under way and what comes later fails. Any thread.
  void abort() override { engines_.abort(); }
  // Waits for what is under way; throws RuntimeError where it failed and nobody was told.
  void shutdown() override;
  c10d::ErrorType getError() override;
  // Between the two, every collective's work is also part of the one that endCoalescing returns.
  void startCoalescing() override { calls_.start_coalescing(); }
  WorkPtr endCoalescing() override { return calls_.end_coalescing(); }

  // The collectives, as torch.distributed describes them. They throw RuntimeError for tensors that
  // do not fit, before anything was started; all else becomes an error of the work.
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr allgather(Lists& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(Lists& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override;
  WorkPtr gather(Lists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, Lists& inputs, const c10d::ScatterOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, Lists& inputs,
                         const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                   const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                        std::vector<int64_t>& input_splits,
                        const c10d::AllToAllOptions& options) override;
  WorkPtr send(Tensors& tensors, int peer, int tag) override;
  WorkPtr recv(Tensors& tensors, int peer, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

 private:
  WorkPtr reduce_all(c10d::OpType type, const char* title, const Tensors& tensors,
                     const c10d::AllreduceOptions& options);
  WorkPtr gather_into(c10d::OpType type, const char* title, const Tensors& outputs,
                      const Tensors& inputs, const c10d::AllgatherOptions& options);
  WorkPtr gather_lists(c10d::OpType type, const char* title, const Lists& outputs,
                       const Tensors& inputs, const c10d::AllgatherOptions& options);
  WorkPtr reduce_scatter_tensors(c10d::OpType type, const char* title, const Tensors& outputs,
                                 const Tensors& inputs, const c10d::ReduceScatterOptions& options);
  WorkPtr peer_to_peer(c10d::OpType type, const char* title, Tensors& tensors, int peer, int tag);
  size_t ranks() const { return static_cast<size_t>(getSize()); }

  const c10::intrusive_ptr<GroupOptions> options_;
  GroupEngines engines_;
  std::function<void(at::Device)> on_bound_;
  CallSequence calls_;
  std::string split_name_;  // of the last part
  c10::weak_intrusive_ptr<c10d::Backend> split_{c10::intrusive_ptr<c10d::Backend>()};
};

}  // namespace graft::binding

// src/torch/offload/device_copies.h: copies on a device that follow tensors in host memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "torch/offload/copy_watch.h"
#include "torch/offload/host_watch.h"

namespace graft::binding {

// Pairs of a tensor in host memory, the host, and a tensor on a device of ours or of
// torch.device("ve"), its copy. A copy stays the same object while its host changes. One thread at
// a time, without Python's lock. After an error the pairs are usable: what was not copied is copied
// by the next call.
class DeviceCopies {
 public:
  // gradients: copies of hosts that require gradients are functions of their hosts, so that a
  // backward pass goes on to the hosts, with autograd's own copy of each gradient. A copy that is
  // no buffer shares its host's count of writes: PyTorch refuses a backward pass that saved it
  // before a counted write to either, and refresh() adds nothing to the count.
  DeviceCopies(UncountedWrites uncounted, bool gradients)
      : hosts_(uncounted), gradients_(gradients) {}

  // copy: of host's dtype, sizes and device's choice of memory, with any values, requiring no
  // gradient, used by nothing else. buffer: the model may write it without telling autograd.
  // Throws as check_host().
  void add(const at::Tensor& host, const at::Tensor& copy, bool buffer);

  // Makes each copy equal to its host again, on the device's current stream; the number of those
  // that were not. Other sizes, strides or another dtype give the copy other memory. Throws
  // torch.OutOfMemoryError, the stream's late errors, and as check_host().
  size_t refresh();

  // Makes each host equal to its copy where the device's commands wrote the copy since refresh(),
  // and waits for that; the number of these. A buffer's count of writes goes up; another host's did
  // when the device wrote. Where memory may be written behind Graft's back, buffers are always
  // taken for written.
  size_t write_back();

  // Drops the pairs whose host is none of these.
  void keep(const std::vector<at::Tensor>& hosts);

  size_t size() const { return copies_.size(); }
  // Copies that refresh() made or renewed, since the beginning.
  uint64_t refreshed() const { return refreshed_; }

 private:
  struct Copy {
    CopyWatch watch;
    bool stale = true;
  };

  void renew(const at::Tensor& host, const CopyWatch& copy) const;

  HostWatch hosts_;
  std::vector<Copy> copies_;  // at the places of hosts_
  const bool gradients_;
  uint64_t refreshed_ = 0;
};

}  // namespace graft::binding

// src/torch/compiled/tensor_watch.h: whether a tensor still is, and holds, what it did.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "runtime/stream/write_epochs.h"

namespace graft::binding {

// Watches the memory of tensors, for who computes something of their values once and keeps it. Its
// look() comes before the computation, whose stream must have waited for wait_for_writers();
// unchanged() then says whether the result still holds. Any thread, one at a time.
class TensorWatch {
 public:
  // Tensors on devices of ours or of torch.device("ve"); their memory need not be Graft's own.
  explicit TensorWatch(std::vector<at::Tensor> tensors);

  // True when every tensor has the memory, sizes and strides of the last look(), and no command
  // that writes that memory was queued since; never before the first look(). Always false while
  // the memory of one can be written behind Graft's back: see trusted(). A few ns per tensor.
  bool unchanged() const;

  // Takes the tensors as they are now.
  void look();

  // Whether only Graft's commands write the memory of all the tensors. Not so for memory that
  // another library made, that another process was given, whose address was asked for since the
  // look (DLPack, data_ptr()), and on a device whose native stream handle was handed out.
  bool trusted() const;

  // The current stream of each device goes on when all streams have done what they have now: what
  // it then reads is what a look() before this call has seen, or newer.
  void wait_for_writers() const;

  const std::vector<at::Tensor>& tensors() const { return tensors_; }

 private:
  struct Seen {
    const void* data = nullptr;
    int64_t numel = -1;
    c10::SmallVector<int64_t, 5> sizes, strides;
    std::shared_ptr<const WatchedMemory> memory;  // null where nobody can watch
    uint64_t epoch = 0;
  };
  static bool same(const at::Tensor& tensor, const Seen& seen);
  static Seen seen(const at::Tensor& tensor, std::shared_ptr<const WatchedMemory> before);

  std::vector<at::Tensor> tensors_;
  std::vector<Seen> seen_;
};

}  // namespace graft::binding

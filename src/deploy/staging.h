// src/deploy/staging.h: host memory between a caller's tensors and a stream's device.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernels/tensor/view.h"
#include "runtime/stream/stream.h"

namespace graft::deploy {

// A tensor in host memory, row-major.
struct HostResult {
  TensorView view;  // address: of memory
  std::shared_ptr<char[]> memory;
};

// The elements of a host tensor of any strides, row-major.
std::shared_ptr<char[]> packed(const TensorView& host);

// Holds the memory of copies until the stream is done with it. Not thread-safe. The stream outlives
// it. Throws what Stream::copy and Stream::synchronize throw.
class Staging {
 public:
  explicit Staging(Stream& stream) : stream_(stream) {}
  ~Staging() { release(); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Queues the copy of row-major elements to device memory, in the strides that to has.
  void upload(const TensorView& to, std::shared_ptr<char[]> elements);

  // Copies tensors of the device and waits.
  std::vector<HostResult> download(std::span<const TensorView> tensors);

  using Memory = std::vector<std::shared_ptr<char[]>>;

  // The memory of what is queued, which the caller keeps until the stream is done with it.
  Memory take() { return std::exchange(memory_, {}); }

  void wait();              // for what is queued
  void release() noexcept;  // after a failure, too: does not wait for a device that is lost

 private:
  Stream& stream_;
  Memory memory_;
};

}  // namespace graft::deploy

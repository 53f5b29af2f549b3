// src/torch/distributed/staged_chunk.h: a part of an exchange on its way through pinned host
// memory.
#pragma once

#include <ATen/core/Tensor.h>

#include "runtime/stream/event.h"
#include "runtime/stream/stream.h"
#include "torch/distributed/exchange.h"
#include "torch/version/c10d.h"

namespace graft::binding {

// A host tensor of bytes in pinned memory of the stream's device; the memory lives as long as
// tensors of it.
at::Tensor pinned_bytes(const Stream& stream, uint64_t bytes);

// Enqueues the copies of a span's bytes from offset on, between the device and host.
void copy_to_host(Stream& stream, const Span& span, uint64_t offset, uint64_t bytes, uint8_t* host);
void copy_from_host(Stream& stream, const Span& span, uint64_t offset, uint64_t bytes,
                    const uint8_t* host);

// The bytes [offset, offset + bytes) of every rank's part. Steps, in this order: fetch, arrive,
// post, deliver. One thread.
class StagedChunk {
 public:
  // exchange outlives the chunk.
  StagedChunk(const Exchange& exchange, int rank, int size, uint64_t offset, uint64_t bytes);

  // Enqueues the copies to the host.
  void fetch(Stream& down);

  // Waits for them. Throws what failed on the device.
  void arrive();

  // Starts the exchange of host memory.
  void post(c10d::Backend& host) { work_ = start(host); }

  c10d::Work& work() const { return *work_; }

  // Enqueues the copies back. REQUIRES: work() is done.
  void deliver(Stream& up);

 private:
  bool sends() const;
  bool receives() const;
  uint64_t send_bytes(size_t part) const;
  uint64_t receive_bytes(size_t part) const;
  c10::intrusive_ptr<c10d::Work> start(c10d::Backend& host);
  c10::intrusive_ptr<c10d::Work> start_reduction(c10d::Backend& host);
  c10::intrusive_ptr<c10d::Work> start_lists(c10d::Backend& host);
  void reduce_parts();

  const Exchange& exchange_;
  const int rank_;
  const int size_;
  const uint64_t offset_;
  const uint64_t bytes_;
  at::Tensor sent_, received_;  // the same one for collectives in place
  std::unique_ptr<Event> fetched_;
  c10::intrusive_ptr<c10d::Work> work_;
};

}  // namespace graft::binding

// src/torch/distributed/staged_chunk.cpp: a part of an exchange on its way through pinned host
// memory.
#include "torch/distributed/staged_chunk.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>

#include <algorithm>
#include <memory>

#include "runtime/platform/platform.h"
#include "torch/device/pinned.h"

namespace graft::binding {
namespace {

// Calls visit(address, bytes) for the pieces of [offset, offset + bytes) of a span, in order.
template <class Visit>
void each_piece(const Span& span, uint64_t offset, uint64_t bytes, Visit visit) {
  for (const Region& region : span) {
    if (bytes == 0) return;
    if (offset >= region.bytes) {
      offset -= region.bytes;
      continue;
    }
    const uint64_t piece = std::min(bytes, region.bytes - offset);
    visit(region.address + offset, piece);
    offset = 0;
    bytes -= piece;
  }
}

uint8_t* bytes_at(const at::Tensor& tensor) { return tensor.data_ptr<uint8_t>(); }

uint64_t number(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

std::vector<at::Tensor> parts_of(const at::Tensor& bytes, int count) { return bytes.chunk(count); }

void reduce_into(at::Tensor& to, const at::Tensor& from, c10d::ReduceOp::RedOpType reduction) {
  switch (reduction) {
    case c10d::ReduceOp::PRODUCT:
      to.mul_(from);
      return;
    case c10d::ReduceOp::MIN:
      at::minimum_out(to, to, from);
      return;
    case c10d::ReduceOp::MAX:
      at::maximum_out(to, to, from);
      return;
    case c10d::ReduceOp::BAND:
      to.bitwise_and_(from);
      return;
    case c10d::ReduceOp::BOR:
      to.bitwise_or_(from);
      return;
    case c10d::ReduceOp::BXOR:
      to.bitwise_xor_(from);
      return;
    default:
      to.add_(from);
  }
}

// Those of torch.distributed for an exchange.
template <class Options>
Options options_of(const Exchange& exchange) {
  Options options;
  options.timeout = exchange.timeout;
  if constexpr (requires { options.rootRank; }) options.rootRank = exchange.root;
  if constexpr (requires { options.reduceOp; }) options.reduceOp = exchange.reduction;
  return options;
}

bool in_place(Collective kind) {
  return kind == Collective::kBroadcast || kind == Collective::kAllReduce ||
         kind == Collective::kReduce;
}

}  // namespace

at::Tensor pinned_bytes(const Stream& stream, uint64_t bytes) {
  PinnedBlock* block =
      platform().device(stream).pinned_allocator().allocate(std::max<uint64_t>(bytes, 1));
  return at::from_blob(
      block->pointer, {static_cast<int64_t>(bytes)},
      [block](void*) { block->allocator->free(block); }, at::kByte);
}

void copy_to_host(Stream& stream, const Span& span, uint64_t offset, uint64_t bytes,
                  uint8_t* host) {
  each_piece(span, offset, bytes, [&](graft_address address, uint64_t piece) {
    stream.copy(number(host), address, piece, GRAFT_DEVICE_TO_HOST);
    host += piece;
  });
}

void copy_from_host(Stream& stream, const Span& span, uint64_t offset, uint64_t bytes,
                    const uint8_t* host) {
  each_piece(span, offset, bytes, [&](graft_address address, uint64_t piece) {
    stream.copy(address, number(host), piece, GRAFT_HOST_TO_DEVICE);
    host += piece;
  });
}

StagedChunk::StagedChunk(const Exchange& exchange, int rank, int size, uint64_t offset,
                         uint64_t bytes)
    : exchange_(exchange), rank_(rank), size_(size), offset_(offset), bytes_(bytes) {}

bool StagedChunk::sends() const {
  const bool from_root =
      exchange_.kind == Collective::kBroadcast || exchange_.kind == Collective::kScatter;
  return !from_root || rank_ == exchange_.root;
}

bool StagedChunk::receives() const {
  const bool root = rank_ == exchange_.root;
  if (exchange_.kind == Collective::kBroadcast) return !root;
  return root || (exchange_.kind != Collective::kReduce && exchange_.kind != Collective::kGather);
}

uint64_t StagedChunk::send_bytes(size_t part) const {
  return exchange_.kind == Collective::kAllToAll ? bytes_of(exchange_.send[part]) : bytes_;
}

uint64_t StagedChunk::receive_bytes(size_t part) const {
  return exchange_.kind == Collective::kAllToAll ? bytes_of(exchange_.receive[part]) : bytes_;
}

void StagedChunk::fetch(Stream& down) {
  uint64_t total = 0;
  for (size_t part = 0; part < exchange_.send.size(); ++part) total += send_bytes(part);
  sent_ = pinned_bytes(down, total);
  if (in_place(exchange_.kind)) {
    received_ = sent_;
  } else {
    total = 0;
    for (size_t part = 0; part < exchange_.receive.size(); ++part) total += receive_bytes(part);
    // The parts of all ranks arrive before they are reduced to one.
    if (exchange_.kind == Collective::kReduceScatter) total = bytes_ * static_cast<uint64_t>(size_);
    received_ = pinned_bytes(down, total);
  }
  if (!sends()) return;
  uint8_t* host = bytes_at(sent_);
  for (size_t part = 0; part < exchange_.send.size(); ++part) {
    copy_to_host(down, exchange_.send[part], offset_, send_bytes(part), host);
    host += send_bytes(part);
  }
  record_pinned(bytes_at(sent_), down);
  fetched_ = std::make_unique<Event>(down.device(), false);
  fetched_->record(down);
}

void StagedChunk::arrive() {
  if (fetched_) fetched_->synchronize();
}

c10::intrusive_ptr<c10d::Work> StagedChunk::start(c10d::Backend& host) {
  switch (exchange_.kind) {
    case Collective::kAllGather:
      return host._allgather_base(received_, sent_, options_of<c10d::AllgatherOptions>(exchange_));
    case Collective::kReduceScatter:
    case Collective::kAllToAll: {
      std::vector<int64_t> in, out;
      for (size_t part = 0; part < exchange_.send.size(); ++part) {
        in.push_back(static_cast<int64_t>(send_bytes(part)));
        const bool even = exchange_.kind == Collective::kReduceScatter;
        out.push_back(static_cast<int64_t>(even ? bytes_ : receive_bytes(part)));
      }
      return host.alltoall_base(received_, sent_, out, in,
                                options_of<c10d::AllToAllOptions>(exchange_));
    }
    case Collective::kGather:
    case Collective::kScatter:
      return start_lists(host);
    default:
      return start_reduction(host);
  }
}

c10::intrusive_ptr<c10d::Work> StagedChunk::start_reduction(c10d::Backend& host) {
  if (exchange_.kind == Collective::kBroadcast) {
    std::vector<at::Tensor> tensors{sent_};
    return host.broadcast(tensors, options_of<c10d::BroadcastOptions>(exchange_));
  }
  std::vector<at::Tensor> tensors{sent_.view(exchange_.dtype)};
  if (exchange_.kind == Collective::kAllReduce) {
    return host.allreduce(tensors, options_of<c10d::AllreduceOptions>(exchange_));
  }
  return host.reduce(tensors, options_of<c10d::ReduceOptions>(exchange_));
}

c10::intrusive_ptr<c10d::Work> StagedChunk::start_lists(c10d::Backend& host) {
  const bool gathers = exchange_.kind == Collective::kGather;
  std::vector<std::vector<at::Tensor>> lists;
  if (rank_ == exchange_.root) lists.push_back(parts_of(gathers ? received_ : sent_, size_));
  std::vector<at::Tensor> tensors{gathers ? sent_ : received_};
  if (gathers) return host.gather(lists, tensors, options_of<c10d::GatherOptions>(exchange_));
  return host.scatter(tensors, lists, options_of<c10d::ScatterOptions>(exchange_));
}

void StagedChunk::reduce_parts() {
  std::vector<at::Tensor> parts = parts_of(received_, size_);
  at::Tensor to = parts[0].view(exchange_.dtype);
  for (size_t part = 1; part < parts.size(); ++part) {
    reduce_into(to, parts[part].view(exchange_.dtype), exchange_.reduction);
  }
}

void StagedChunk::deliver(Stream& up) {
  if (!receives()) return;
  if (exchange_.kind == Collective::kReduceScatter) reduce_parts();
  const uint8_t* host = bytes_at(received_);
  for (size_t part = 0; part < exchange_.receive.size(); ++part) {
    copy_from_host(up, exchange_.receive[part], offset_, receive_bytes(part), host);
    host += receive_bytes(part);
  }
  record_pinned(bytes_at(received_), up);
}

}  // namespace graft::binding

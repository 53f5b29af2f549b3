// src/torch/distributed/exchange.h: one collective operation, as the engines carry it out.
#pragma once

#include <c10/core/ScalarType.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "graft/driver.h"
#include "runtime/stream/event.h"
#include "torch/distributed/collective_work.h"
#include "torch/version/c10d.h"

namespace graft::binding {

enum class Collective : uint8_t {
  kBroadcast,
  kAllReduce,
  kReduce,
  kAllGather,
  kReduceScatter,
  kGather,
  kScatter,
  kAllToAll,
};

// A piece of device memory.
struct Region {
  graft_address address = 0;
  uint64_t bytes = 0;
};

// What belongs to one rank: the regions, one after the other.
using Span = std::vector<Region>;

inline uint64_t bytes_of(const Span& span) {
  uint64_t bytes = 0;
  for (const Region& region : span) bytes += region.bytes;
  return bytes;
}

// kReduce, kAllReduce, kBroadcast: one span each way, of the same memory. kAllGather, kGather: one
// span to send, one for each rank to receive; kReduceScatter, kScatter the other way round;
// kAllToAll: one for each rank both ways. Where only the root sends or receives, the others' list
// is empty. Every span has part_bytes, but those of kAllToAll.
struct Exchange {
  Collective kind = Collective::kBroadcast;
  c10::ScalarType dtype = c10::ScalarType::Byte;              // of the elements
  c10d::ReduceOp::RedOpType reduction = c10d::ReduceOp::SUM;  // SUM, PRODUCT, MIN, MAX or bitwise
  int root = 0;
  std::chrono::milliseconds timeout = c10d::kUnsetTimeout;
  bool asynchronous = true;  // the caller works on beside it
  std::vector<Span> send;
  std::vector<Span> receive;
  uint64_t part_bytes = 0;
};

// Carries exchanges out. Every rank of a group gives it the same exchanges in the same order.
class CollectiveEngine {
 public:
  virtual ~CollectiveEngine() = default;

  // Starts an exchange after ready, a mark in the caller's stream, and returns; work completes, or
  // fails, when it is done. work keeps the memory. Throws Error where nothing was started.
  virtual void run(const Exchange& exchange, std::shared_ptr<Event> ready,
                   const c10::intrusive_ptr<CollectiveWork>& work) = 0;

  // What is under way fails, and what comes later, too. Any thread.
  virtual void abort() = 0;
};

}  // namespace graft::binding

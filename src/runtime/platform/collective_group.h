// src/runtime/platform/collective_group.h: ranks that compute together through a driver's
// collectives.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>
#include <vector>

#include "graft/driver.h"
#include "graft/extensions.h"
#include "runtime/driver/export.h"

namespace graft {

class OpenDevice;
class Stream;

// One rank of a group, by the extension graft.collectives of its device's driver. Every method but
// abort() belongs to one thread at a time, and every rank makes the same calls in the same order;
// the stream's commands are queued and fail as late errors of the stream (INVALID_ARGUMENT where
// the ranks' commands differ, TIMEOUT where a rank died or did not come; then every later command
// of the group fails). What the driver refuses at the call throws Error, as does a stream that
// records: a graph holds no collectives. Another stream than the last one waits for the group's
// commands on that one. Buffers and in-place rules: graft/extensions.h.
class GRAFT_EXPORT CollectiveGroup {
 public:
  using Id = std::array<uint8_t, GRAFT_GROUP_ID_BYTES>;

  // Whether the device's driver has collectives. Where they reach some ranks only, making a group
  // throws Error UNSUPPORTED.
  static bool available(OpenDevice& device);

  // A fresh id, for rank 0 to bring to the others. Throws Error UNSUPPORTED unless available.
  static Id make_id(OpenDevice& device);

  // Blocks until every rank of the id has come; throws Error TIMEOUT that names the missing ones.
  // timeout also bounds each command, from when it begins to run. REQUIRES: device outlives this.
  CollectiveGroup(OpenDevice& device, const Id& id, uint32_t rank, uint32_t size,
                  std::chrono::nanoseconds timeout);
  // Waits for the group's commands, whose errors stay with their streams: abort() first where a
  // rank may never come. Does nothing in a forked child.
  ~CollectiveGroup();
  CollectiveGroup(const CollectiveGroup&) = delete;
  CollectiveGroup& operator=(const CollectiveGroup&) = delete;

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }
  OpenDevice& device() const { return device_; }

  void all_reduce(Stream& stream, graft_address send, graft_address receive, uint64_t count,
                  graft_dtype dtype, graft_reduction reduction);
  // Only root's receive is written.
  void reduce(Stream& stream, graft_address send, graft_address receive, uint64_t count,
              graft_dtype dtype, graft_reduction reduction, uint32_t root);
  // Only root's send is read; receive is written on root, too.
  void broadcast(Stream& stream, graft_address send, graft_address receive, uint64_t count,
                 graft_dtype dtype, uint32_t root);
  // count: of send; receive has size() times as many elements.
  void all_gather(Stream& stream, graft_address send, graft_address receive, uint64_t count,
                  graft_dtype dtype);
  // count: of receive; send has size() times as many elements.
  void reduce_scatter(Stream& stream, graft_address send, graft_address receive, uint64_t count,
                      graft_dtype dtype, graft_reduction reduction);
  // peer receives the same count and dtype. A rank reaches itself in a batch alone.
  void send(Stream& stream, graft_address address, uint64_t count, graft_dtype dtype,
            uint32_t peer);
  void receive(Stream& stream, graft_address address, uint64_t count, graft_dtype dtype,
               uint32_t peer);

  // The sends and receives that transfers makes, on one stream, are one command in which none waits
  // for another. What transfers throws passes on, after those before it were queued.
  void batch(const std::function<void()>& transfers);

  // Commands under way and later ones fail, on all ranks. Any thread; does nothing in a forked
  // child.
  void abort() noexcept;

 private:
  template <class... Parameters, class... Arguments>
  void enqueue(std::string_view what, Stream& stream, graft_address written,
               graft_status (*slot)(Parameters...), Arguments... arguments);
  void move_to(Stream& stream);
  void end_batch();

  OpenDevice& device_;
  const uint32_t rank_, size_;
  const graft_collectives_table& table_;
  graft_group group_ = nullptr;

  std::mutex mutex_;              // guards what follows
  std::vector<Stream*> streams_;  // that have had commands, the last one last
  bool batching_ = false;
  Stream* batch_stream_ = nullptr;
};

}  // namespace graft

// drivers/host/collectives/group.h: ranks on one machine that wait for one another over shared
// memory.
#ifndef GRAFT_DRIVERS_HOST_COLLECTIVES_GROUP_H_
#define GRAFT_DRIVERS_HOST_COLLECTIVES_GROUP_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "graft/extensions.h"
#include "kernel/processor.h"
#include "shared_segment.h"

namespace graft::host {

enum class CommandKind : uint32_t {
  kJoin,
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kTransfer,  // sends and receives
};

// A command as messages name it: "all_reduce of 8 float32 (sum)".
std::string describe(const CommandRecord& record);

// Fills GRAFT_GROUP_ID_BYTES.
void make_group_id(uint8_t* out_id);

// One rank's side of a group. What collectives do goes in rounds: each rank fills its slot, tells
// the others, reads theirs, tells again; two slots take turns. What fails breaks the group for all.
// Methods throw GroupError; all but abort() belong to the thread that holds running().
class Group {
 public:
  // Joins the group of an id and blocks until all ranks have.
  Group(const uint8_t* id, uint32_t rank, uint32_t size, std::chrono::nanoseconds timeout);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }
  const SharedSegment& segment() const { return segment_; }

  // Held while a command runs.
  std::mutex& running() { return running_; }

  // Breaks the group. Any thread.
  void abort() noexcept;

  // Begins a command: its time counts from here. Throws when the group is broken. arrival_ns: in
  // simulated time.
  void begin_command(const CommandRecord& record, int64_t arrival_ns);
  int64_t arrival_ns() const { return arrival_ns_; }

  // The latest arrival of those ranks whose records were compared, and of those that were met.
  int64_t latest_ns() const { return latest_ns_; }
  void meet(int64_t arrival_ns) { latest_ns_ = std::max(latest_ns_, arrival_ns); }

  // This rank's slot for the next round, once nobody reads it any more.
  char* begin_round();
  // Whether begin_round() would not wait.
  bool round_is_free() const;
  // The slot is filled; record is what the others must run too.
  void publish(const CommandRecord& record);
  // Whether all ranks have published this round.
  bool all_published() const;
  // Waits until a rank has published, and compares its record with this rank's.
  void await(uint32_t peer, const CommandRecord& record);
  void await_all(const CommandRecord& record);
  // What a rank published, until end_round().
  const char* slot(uint32_t peer) const { return segment_.slot(peer, round_ % 2); }
  void end_round();

  // Waits until ready() holds: spins for some microseconds, then sleeps. waits_for names the ranks
  // that this depends on now.
  template <class Ready>
  void wait(const Ready& ready, const std::function<bool(uint32_t peer)>& waits_for) {
    if (!spin(ready)) sleep_until(ready, waits_for);
  }
  // The first part of that: whether ready() came to hold.
  template <class Ready>
  static bool spin(const Ready& ready) {
    for (int i = 0; i < kSpins; ++i) {
      if (ready()) return true;
      spin_pause();
    }
    return false;
  }

  // Wakes a rank that may wait for what was just changed.
  void ring(uint32_t peer);

  // Breaks the group and throws.
  [[noreturn]] void give_up(graft_status status, const std::string& text);

  // "rank 1 (process 4711)".
  std::string name(uint32_t peer) const;

 private:
  // Ranks may share a core: longer would keep the one that is waited for from running.
  static constexpr int kSpins = 1000;

  void join();
  bool is_complete() const;
  bool has_left(uint32_t peer) const;
  bool has_died(uint32_t peer) const;
  void sleep_until(const std::function<bool()>& ready,
                   const std::function<bool(uint32_t peer)>& waits_for);
  void look_for_trouble(const std::function<bool()>& ready,
                        const std::function<bool(uint32_t peer)>& waits_for);
  void refuse_broken() const;
  bool break_for_all(graft_status status, const std::string& text) noexcept;
  void ring_others();
  void compare(uint32_t peer, const CommandRecord& record);

  const uint32_t rank_, size_;
  const std::chrono::nanoseconds timeout_;
  SharedSegment segment_;
  std::mutex running_;
  // Of the thread that holds it:
  uint32_t round_ = 0;
  int64_t arrival_ns_ = 0, latest_ns_ = 0;
  CommandRecord current_;
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_COLLECTIVES_GROUP_H_

// drivers/host/collectives/shared_segment.h: memory that the ranks of a group share.
#ifndef GRAFT_DRIVERS_HOST_COLLECTIVES_SHARED_SEGMENT_H_
#define GRAFT_DRIVERS_HOST_COLLECTIVES_SHARED_SEGMENT_H_

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "graft/driver.h"
#include "process_identity.h"

namespace graft::host {

// Why a group cannot be made or go on. Never leaves the driver.
class GroupError : public std::runtime_error {
 public:
  GroupError(graft_status status, const std::string& text)
      : std::runtime_error(text), status(status) {}
  const graft_status status;
};

// What a rank runs, for the others to compare with.
struct CommandRecord {
  uint32_t kind = 0;  // CommandKind
  uint32_t dtype = 0, reduction = 0, root = 0;
  uint64_t count = 0;
  uint32_t sequence = 0;  // of the group's collectives
  uint32_t piece = 0;     // of the command

  bool operator==(const CommandRecord&) const = default;
};

// The structs below lie in the segment and begin as zeros. Counters wrap round.
static_assert(std::atomic<uint32_t>::is_always_lock_free);

enum MemberState : uint32_t { kAbsent, kJoining, kJoined, kLeft };

struct Member {
  std::atomic<uint32_t> state;
  ProcessIdentity process;  // written before kJoined
  // What the rank sleeps on; whoever changes what it may wait for counts it up.
  alignas(64) std::atomic<uint32_t> bell;
  std::atomic<uint32_t> sleepers;
  // Rounds whose slot the rank has filled, and whose slots of others it has read.
  alignas(64) std::atomic<uint32_t> published;
  alignas(64) std::atomic<uint32_t> consumed;
  alignas(64) CommandRecord records[2];  // by round, as the slots
  int64_t arrivals_ns[2];                // in simulated time; as the records
};

// What one rank sends to one other.
struct Channel {
  alignas(64) std::atomic<uint32_t> sent;
  alignas(64) std::atomic<uint32_t> received;
  alignas(64) CommandRecord records[2];
  int64_t arrivals_ns[2];  // in simulated time
};

enum BreakState : uint32_t { kWhole, kBreaking, kBroken };

struct SegmentHeader {
  std::atomic<uint32_t> size;      // ranks, as the first one said
  std::atomic<uint32_t> joined;    // ranks that have mapped the segment
  std::atomic<uint32_t> complete;  // all have, and it has no name any more
  std::atomic<uint32_t> broken;    // BreakState; what follows is written before kBroken
  uint32_t broken_status, broken_rank;
  char broken_text[1024];
};

// A POSIX segment of shared memory, mapped for one rank.
class SharedSegment {
 public:
  static constexpr uint32_t kMostRanks = 64;
  static constexpr uint64_t kSlotBytes = 512 << 10;  // two of them stay in a core's cache

  // Makes the segment or, where another rank was first, opens it. Throws GroupError.
  SharedSegment(std::string name, uint32_t size);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  // Takes the name away; the memory lives until the last rank unmaps it.
  void unlink() noexcept;

  SegmentHeader& header() const { return *at<SegmentHeader>(0); }
  Member& member(uint32_t rank) const { return at<Member>(members_)[rank]; }
  Channel& channel(uint32_t from, uint32_t to) const {
    return at<Channel>(channels_)[from * size_ + to];
  }
  // Slots of kSlotBytes and of channel_bytes(); index: 0 or 1.
  char* slot(uint32_t rank, uint32_t index) const {
    return at<char>(slots_) + (uint64_t(rank) * 2 + index) * kSlotBytes;
  }
  char* channel_slot(uint32_t from, uint32_t to, uint32_t index) const {
    const uint64_t channel = uint64_t(from) * size_ + to;
    return at<char>(channel_slots_) + (channel * 2 + index) * channel_bytes_;
  }
  uint64_t channel_bytes() const { return channel_bytes_; }

 private:
  template <class T>
  T* at(uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }
  void lay_out();

  const std::string name_;
  const uint32_t size_;
  uint64_t members_ = 0, channels_ = 0, slots_ = 0, channel_slots_ = 0;  // offsets
  uint64_t channel_bytes_ = 0, bytes_ = 0;
  char* base_ = nullptr;
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_COLLECTIVES_SHARED_SEGMENT_H_

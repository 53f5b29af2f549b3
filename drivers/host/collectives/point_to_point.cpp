// drivers/host/collectives/point_to_point.cpp: what single ranks send to one another.
#include "point_to_point.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "exchange.h"
#include "reduction.h"
#include "simulation/ring.h"

namespace graft::host {
namespace {

// One batch as it runs.
class Lanes {
 public:
  Lanes(Group& group, std::vector<Transfer>& transfers) : group_(group), lanes_(2 * group.size()) {
    for (Transfer& transfer : transfers) lane(transfer.sends, transfer.peer).push_back(&transfer);
  }

  void run() {
    while (!is_empty()) {
      bool moved = false;
      for (auto& lane : lanes_) {
        while (!lane.empty() && is_ready(*lane.front())) {
          move_piece(*lane.front());
          moved = true;
          if (is_over(*lane.front())) lane.pop_front();
        }
      }
      if (moved || is_empty()) continue;
      group_.wait([this] { return any_ready(); },
                  [this](uint32_t peer) {
                    return !lane(true, peer).empty() || !lane(false, peer).empty();
                  });
    }
  }

 private:
  // Two pieces of a channel are under way at most.
  static constexpr uint32_t kPieces = 2;

  std::deque<Transfer*>& lane(bool sends, uint32_t peer) {
    return lanes_[2 * peer + (sends ? 1 : 0)];
  }

  bool is_empty() const {
    return std::all_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane.empty(); });
  }

  bool any_ready() const {
    return std::any_of(lanes_.begin(), lanes_.end(), [this](const auto& lane) {
      return !lane.empty() && is_ready(*lane.front());
    });
  }

  static uint64_t total(const Transfer& t) { return t.count * dtype_bytes(t.dtype); }
  static bool is_over(const Transfer& t) { return t.piece > 0 && t.done == total(t); }

  Channel& channel(const Transfer& t) const {
    return t.sends ? group_.segment().channel(group_.rank(), t.peer)
                   : group_.segment().channel(t.peer, group_.rank());
  }

  bool is_ready(const Transfer& t) const {
    const Channel& c = channel(t);
    const uint32_t under_way =
        c.sent.load(std::memory_order_acquire) - c.received.load(std::memory_order_acquire);
    return t.sends ? under_way < kPieces : under_way > 0;
  }

  void move_piece(Transfer& t) {
    const SharedSegment& segment = group_.segment();
    const uint64_t bytes = std::min(segment.channel_bytes(), total(t) - t.done);
    const CommandRecord record = {
        uint32_t(CommandKind::kTransfer), t.dtype, 0, 0, t.count, 0, t.piece};
    Channel& c = channel(t);
    if (t.sends) {
      const uint32_t number = c.sent.load(std::memory_order_relaxed);
      c.records[number % kPieces] = record;
      c.arrivals_ns[number % kPieces] = group_.arrival_ns();
      char* slot = segment.channel_slot(group_.rank(), t.peer, number % kPieces);
      if (bytes != 0) std::memcpy(slot, t.bytes + t.done, bytes);
      c.sent.store(number + 1, std::memory_order_release);
    } else {
      const uint32_t number = c.received.load(std::memory_order_relaxed);
      compare(t, record, c.records[number % kPieces]);
      group_.meet(c.arrivals_ns[number % kPieces]);
      const char* slot = segment.channel_slot(t.peer, group_.rank(), number % kPieces);
      if (bytes != 0) std::memcpy(t.bytes + t.done, slot, bytes);
      c.received.store(number + 1, std::memory_order_release);
    }
    group_.ring(t.peer);
    t.done += bytes;
    ++t.piece;
  }

  void compare(const Transfer& t, const CommandRecord& mine, const CommandRecord& theirs) {
    if (mine == theirs) return;
    const auto text = [](const CommandRecord& record) {
      return std::to_string(record.count) + " " + dtype_name(record.dtype);
    };
    group_.give_up(GRAFT_INVALID_ARGUMENT,
                   "the ranks' commands differ: " + group_.name(t.peer) + " sends " + text(theirs) +
                       ", " + group_.name(group_.rank()) + " receives " + text(mine));
  }

  Group& group_;
  std::vector<std::deque<Transfer*>> lanes_;  // by peer and direction
};

}  // namespace

Outcome TransferBatch::operator()() {
  return run_in_group(*group, [this] {
    if (planted) {
      group->give_up(GRAFT_INTERNAL, "rank " + std::to_string(group->rank()) +
                                         "'s collective failed: planted by GRAFT_HOST_FAULTS");
    }
    CommandRecord record;
    record.kind = uint32_t(CommandKind::kTransfer);
    group->begin_command(record, clock != nullptr ? clock->begin(issued_ns) : 0);
    Lanes(*group, transfers).run();
    if (clock != nullptr) {
      clock->end(group->latest_ns() + transfers_ns(simulation(), transfers, group->rank()));
    }
  });
}

}  // namespace graft::host

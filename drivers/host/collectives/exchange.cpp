// drivers/host/collectives/exchange.cpp: collectives of one rank with the others of its group.
#include "exchange.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "reduction.h"
#include "simulation/ring.h"

namespace graft::host {
namespace {

constexpr uint64_t kSlotBytes = SharedSegment::kSlotBytes;
// Up to here every rank reduces everything: one round instead of two.
constexpr uint64_t kSmallBytes = 16 << 10;
constexpr uint64_t kLine = 64;

void copy_bytes(char* to, const char* from, uint64_t bytes) {
  if (bytes != 0 && to != from) std::memcpy(to, from, bytes);
}

// How n elements are split among the ranks: whole cache lines each, the last ones get less.
struct Parts {
  Parts(uint64_t n, uint64_t ranks, uint64_t element) : n(n), bytes(element) {
    const uint64_t line = std::max<uint64_t>(1, kLine / element);
    each = ((n + ranks - 1) / ranks + line - 1) / line * line;
  }
  uint64_t begin(uint32_t rank) const { return std::min(n, rank * each); }
  uint64_t count(uint32_t rank) const { return begin(rank + 1) - begin(rank); }
  uint64_t byte(uint32_t rank) const { return begin(rank) * bytes; }

  uint64_t n, bytes, each;
};

// One collective as it runs.
class Run {
 public:
  Run(Group& group, const CommandRecord& record, const char* send, char* receive)
      : group_(group),
        record_(record),
        send_(send),
        receive_(receive),
        element_(dtype_bytes(record.dtype)),
        sources_(group.size()) {}

  void small_start() {
    copy_bytes(group_.begin_round(), send_, record_.count * element_);
    group_.publish(record_);
  }

  void small_finish() {
    group_.await_all(record_);
    reduce_slots(receive_, 0, record_.count);
    group_.end_round();
  }

  void all_reduce() {
    const uint64_t chunk = kSlotBytes / element_;
    for (uint64_t done = 0; done < record_.count; done += chunk) {
      all_reduce_chunk(done * element_, std::min(chunk, record_.count - done));
    }
  }

  void reduce_to_root() {
    const bool root = record_.root == group_.rank();
    each_chunk(kSlotBytes / element_, [&](uint64_t done, uint64_t n) {
      char* slot = group_.begin_round();
      if (!root) copy_bytes(slot, send_ + done, n * element_);
      group_.publish(record_);
      if (root) {
        group_.await_all(record_);
        reduce_with_own(send_ + done, receive_ + done, 0, n);
      }
      finish_round();
    });
  }

  void broadcast() {
    const bool root = record_.root == group_.rank();
    each_chunk(kSlotBytes / element_, [&](uint64_t done, uint64_t n) {
      char* slot = group_.begin_round();
      if (root) copy_bytes(slot, send_ + done, n * element_);
      group_.publish(record_);
      if (root) {
        copy_bytes(receive_ + done, send_ + done, n * element_);
      } else {
        group_.await(record_.root, record_);
        copy_bytes(receive_ + done, group_.slot(record_.root), n * element_);
      }
      finish_round();
    });
  }

  void all_gather() {
    const uint64_t row = record_.count * element_;
    each_chunk(kSlotBytes / element_, [&](uint64_t done, uint64_t n) {
      const char* own = send_ + done;
      copy_bytes(group_.begin_round(), own, n * element_);
      group_.publish(record_);
      group_.await_all(record_);
      for (uint32_t rank = 0; rank < group_.size(); ++rank) {
        const char* from = rank == group_.rank() ? own : group_.slot(rank);
        copy_bytes(receive_ + rank * row + done, from, n * element_);
      }
      finish_round();
    });
  }

  void reduce_scatter() {
    const uint64_t row = record_.count * element_;
    each_chunk(kSlotBytes / element_ / group_.size(), [&](uint64_t done, uint64_t n) {
      const uint64_t bytes = n * element_;
      char* slot = group_.begin_round();
      for (uint32_t rank = 0; rank < group_.size(); ++rank) {
        if (rank != group_.rank())
          copy_bytes(slot + rank * bytes, send_ + rank * row + done, bytes);
      }
      group_.publish(record_);
      group_.await_all(record_);
      const uint64_t mine = group_.rank() * bytes;
      reduce_with_own(send_ + group_.rank() * row + done, receive_ + done, mine, n);
      finish_round();
    });
  }

 private:
  // Calls body(offset in bytes, elements) for pieces of at most chunk elements; once for none.
  template <class Body>
  void each_chunk(uint64_t chunk, const Body& body) {
    uint64_t done = 0;
    do {
      const uint64_t n = std::min(chunk, record_.count - done);
      body(done * element_, n);
      done += n;
    } while (done < record_.count);
  }

  // In its first round a command compares all ranks' records, whomever else it waits for.
  void finish_round() {
    if (record_.piece == 0) group_.await_all(record_);
    group_.end_round();
    ++record_.piece;
  }

  // Each rank reduces its part of the chunk, then all collect the parts.
  void all_reduce_chunk(uint64_t offset, uint64_t n) {
    const Parts parts(n, group_.size(), element_);
    const uint32_t self = group_.rank();
    const char* from = send_ + offset;
    char* to = receive_ + offset;
    const uint64_t begin = parts.byte(self), end = parts.byte(self + 1);
    char* slot = group_.begin_round();
    copy_bytes(slot, from, begin);
    copy_bytes(slot + end, from + end, n * element_ - end);
    group_.publish(record_);
    group_.await_all(record_);
    reduce_with_own(from + begin, to + begin, begin, parts.count(self));
    finish_round();
    slot = group_.begin_round();
    copy_bytes(slot, to + begin, end - begin);
    group_.publish(record_);
    group_.await_all(record_);
    for (uint32_t rank = 0; rank < group_.size(); ++rank) {
      if (rank == self) continue;
      copy_bytes(to + parts.byte(rank), group_.slot(rank), parts.count(rank) * element_);
    }
    finish_round();
  }

  // Reduces n elements of all slots from an offset in bytes on.
  void reduce_slots(char* to, uint64_t offset, uint64_t n) {
    for (uint32_t rank = 0; rank < group_.size(); ++rank) {
      sources_[rank] = group_.slot(rank) + offset;
    }
    reduce(record_.dtype, record_.reduction, to, sources_.data(), group_.size(), n);
  }

  // The same with this rank's elements from elsewhere. In the order of the ranks all the same.
  void reduce_with_own(const char* own, char* to, uint64_t offset, uint64_t n) {
    for (uint32_t rank = 0; rank < group_.size(); ++rank) {
      sources_[rank] = rank == group_.rank() ? own : group_.slot(rank) + offset;
    }
    reduce(record_.dtype, record_.reduction, to, sources_.data(), group_.size(), n);
  }

  Group& group_;
  CommandRecord record_;
  const char* const send_;
  char* const receive_;
  const uint64_t element_;
  std::vector<const void*> sources_;
};

}  // namespace

Outcome failed(graft_status status, const std::string& text) {
  thread_local std::string kept;
  kept = text;
  return {status, kept.c_str()};
}

bool Exchange::is_small() const {
  return CommandKind(record.kind) == CommandKind::kAllReduce &&
         record.count * dtype_bytes(record.dtype) <= kSmallBytes;
}

bool Exchange::try_now(Outcome* out_outcome) {
  if (!is_small() || planted) return false;
  bool finished = false;
  *out_outcome = run_in_group(*group, [&] {
    if (!group->round_is_free()) return;
    group->begin_command(record, 0);
    Run run(*group, record, send, receive);
    started = true;
    run.small_start();
    if (!Group::spin([this] { return group->all_published(); })) return;
    run.small_finish();
    finished = true;
  });
  return finished || out_outcome->status != GRAFT_OK;
}

void Exchange::run() {
  if (!started) group->begin_command(record, clock != nullptr ? clock->begin(issued_ns) : 0);
  Run run(*group, record, send, receive);
  switch (CommandKind(record.kind)) {
    case CommandKind::kAllReduce:
      if (!is_small()) return run.all_reduce();
      if (!started) run.small_start();
      return run.small_finish();
    case CommandKind::kReduce:
      return run.reduce_to_root();
    case CommandKind::kBroadcast:
      return run.broadcast();
    case CommandKind::kAllGather:
      return run.all_gather();
    case CommandKind::kReduceScatter:
      return run.reduce_scatter();
    default:
      group->give_up(GRAFT_INTERNAL, "unknown collective");
  }
}

Outcome Exchange::operator()() {
  return run_in_group(*group, [this] {
    if (planted) {
      group->give_up(GRAFT_INTERNAL, "rank " + std::to_string(group->rank()) +
                                         "'s collective failed: planted by GRAFT_HOST_FAULTS");
    }
    run();
    if (clock != nullptr) {
      clock->end(group->latest_ns() + collective_ns(simulation(), record, group->size()));
    }
  });
}

}  // namespace graft::host

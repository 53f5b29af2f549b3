// drivers/host/collectives/group.cpp: ranks on one machine that wait for one another over shared
// memory.
#include "group.h"

#include <linux/futex.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "graft/driver_slot.h"
#include "reduction.h"

namespace graft::host {
namespace {

using Clock = std::chrono::steady_clock;

// How often a sleeping rank looks after the others.
constexpr std::chrono::milliseconds kLook{20};

// What an id holds; the rest of its bytes is 0.
struct GroupId {
  char magic[8];
  uint8_t number[16];
  char machine[40];  // the system's boot: differs between machines
};
static_assert(sizeof(GroupId) <= GRAFT_GROUP_ID_BYTES);
constexpr char kMagic[8] = {'g', 'r', 'a', 'f', 't', 'h', 's', 't'};

void read_machine(char (&out)[40]) {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(file, text);
  copy_text(text, out, sizeof out);
}

std::string segment_name(const uint8_t* bytes) {
  GroupId id;
  std::memcpy(&id, bytes, sizeof id);
  if (std::memcmp(id.magic, kMagic, sizeof kMagic) != 0) {
    throw GroupError(GRAFT_INVALID_ARGUMENT, "the id is not from this driver's group_id");
  }
  char machine[40] = "";
  read_machine(machine);
  if (std::memcmp(id.machine, machine, sizeof machine) != 0) {
    throw GroupError(GRAFT_UNSUPPORTED,
                     "the ranks run on several machines, but the host driver reaches one only");
  }
  std::string name = "/graft-group-";
  for (const uint8_t byte : id.number) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    name += digits;
  }
  return name;
}

long futex(std::atomic<uint32_t>* word, int operation, uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), operation, value, timeout, nullptr,
                 0);
}

// Whether a counter that wraps round has come to target.
bool reached(const std::atomic<uint32_t>& counter, uint32_t target) {
  return int32_t(counter.load(std::memory_order_acquire) - target) >= 0;
}

std::string seconds_text(std::chrono::nanoseconds time) {
  char text[40];
  std::snprintf(text, sizeof text, "%g s", std::chrono::duration<double>(time).count());
  return text;
}

}  // namespace

std::string describe(const CommandRecord& record) {
  constexpr const char* kNames[] = {"group_create",      "all_reduce", "reduce",
                                    "broadcast",         "all_gather", "reduce_scatter",
                                    "sends and receives"};
  std::string text = record.kind < std::size(kNames) ? kNames[record.kind] : "?";
  const auto kind = CommandKind(record.kind);
  if (kind == CommandKind::kJoin || kind == CommandKind::kTransfer) return text;
  text += " of " + std::to_string(record.count) + " " + dtype_name(record.dtype);
  if (kind == CommandKind::kAllReduce || kind == CommandKind::kReduce ||
      kind == CommandKind::kReduceScatter) {
    text += std::string(" (") + reduction_name(record.reduction) + ")";
  }
  if (kind == CommandKind::kReduce) text += " to rank " + std::to_string(record.root);
  if (kind == CommandKind::kBroadcast) text += " from rank " + std::to_string(record.root);
  return text + " (command " + std::to_string(record.sequence) + " of the group)";
}

void make_group_id(uint8_t* out_id) {
  GroupId id = {};
  std::memcpy(id.magic, kMagic, sizeof kMagic);
  if (getrandom(id.number, sizeof id.number, 0) != ssize_t(sizeof id.number)) {
    throw GroupError(GRAFT_IO, "getrandom returned no random bytes");
  }
  read_machine(id.machine);
  std::memset(out_id, 0, GRAFT_GROUP_ID_BYTES);
  std::memcpy(out_id, &id, sizeof id);
}

Group::Group(const uint8_t* id, uint32_t rank, uint32_t size, std::chrono::nanoseconds timeout)
    : rank_(rank), size_(size), timeout_(timeout), segment_(segment_name(id), size) {
  try {
    join();
  } catch (...) {
    segment_.unlink();
    throw;
  }
}

Group::~Group() { segment_.member(rank_).state.store(kLeft); }

bool Group::is_complete() const {
  return segment_.header().complete.load(std::memory_order_acquire) != 0;
}

void Group::join() {
  current_ = {};
  deadline_ = Clock::now() + timeout_;
  SegmentHeader& header = segment_.header();
  uint32_t others = 0;
  if (!header.size.compare_exchange_strong(others, size_) && others != size_) {
    const std::string text = "rank " + std::to_string(rank_) + " says that the group has " +
                             std::to_string(size_) + " ranks, but another rank says " +
                             std::to_string(others);
    // Nobody can be woken where the sizes, and so the places, differ.
    break_for_all(GRAFT_INVALID_ARGUMENT, text);
    throw GroupError(GRAFT_INVALID_ARGUMENT, text);
  }
  Member& self = segment_.member(rank_);
  uint32_t absent = kAbsent;
  if (!self.state.compare_exchange_strong(absent, kJoining)) {
    give_up(GRAFT_INVALID_ARGUMENT, "two callers claim to be " + name(rank_));
  }
  self.process = this_process();
  self.state.store(kJoined);
  try {
    // Every rank has mapped the segment now, so its name is not needed any more.
    if (header.joined.fetch_add(1) + 1 == size_) {
      segment_.unlink();
      header.complete.store(1);
    }
    ring_others();
    wait([this] { return is_complete(); },
         [this](uint32_t peer) { return segment_.member(peer).state.load() < kJoined; });
  } catch (...) {
    self.state.store(kLeft);
    throw;
  }
}

void Group::abort() noexcept {
  break_for_all(GRAFT_TIMEOUT, "rank " + std::to_string(rank_) + " aborted the group");
  ring_others();
  ring(rank_);
}

void Group::begin_command(const CommandRecord& record, int64_t arrival_ns) {
  current_ = record;
  arrival_ns_ = latest_ns_ = arrival_ns;
  deadline_ = Clock::now() + timeout_;
  refuse_broken();
}

bool Group::round_is_free() const {
  for (uint32_t peer = 0; peer < size_; ++peer) {
    if (peer != rank_ && !reached(segment_.member(peer).consumed, round_ - 1)) return false;
  }
  return true;
}

char* Group::begin_round() {
  wait([this] { return round_is_free(); },
       [this](uint32_t peer) { return !reached(segment_.member(peer).consumed, round_ - 1); });
  return segment_.slot(rank_, round_ % 2);
}

void Group::publish(const CommandRecord& record) {
  Member& self = segment_.member(rank_);
  self.records[round_ % 2] = record;
  self.arrivals_ns[round_ % 2] = arrival_ns_;
  self.published.store(round_ + 1, std::memory_order_release);
  ring_others();
}

bool Group::all_published() const {
  for (uint32_t peer = 0; peer < size_; ++peer) {
    if (!reached(segment_.member(peer).published, round_ + 1)) return false;
  }
  return true;
}

void Group::compare(uint32_t peer, const CommandRecord& record) {
  const CommandRecord& theirs = segment_.member(peer).records[round_ % 2];
  if (theirs == record) return meet(segment_.member(peer).arrivals_ns[round_ % 2]);
  give_up(GRAFT_INVALID_ARGUMENT, "the ranks' commands differ: " + name(rank_) + " runs " +
                                      describe(record) + ", " + name(peer) + " runs " +
                                      describe(theirs));
}

void Group::await(uint32_t peer, const CommandRecord& record) {
  wait([&] { return reached(segment_.member(peer).published, round_ + 1); },
       [&](uint32_t other) { return other == peer; });
  compare(peer, record);
}

void Group::await_all(const CommandRecord& record) {
  for (uint32_t peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    wait([&] { return reached(segment_.member(peer).published, round_ + 1); },
         [this](uint32_t other) { return !reached(segment_.member(other).published, round_ + 1); });
    compare(peer, record);
  }
}

void Group::end_round() {
  ++round_;
  segment_.member(rank_).consumed.store(round_, std::memory_order_release);
  ring_others();
}

void Group::ring(uint32_t peer) {
  Member& member = segment_.member(peer);
  member.bell.fetch_add(1);
  if (member.sleepers.load() != 0) futex(&member.bell, FUTEX_WAKE, INT_MAX, nullptr);
}

void Group::ring_others() {
  for (uint32_t peer = 0; peer < size_; ++peer) {
    if (peer != rank_) ring(peer);
  }
}

void Group::sleep_until(const std::function<bool()>& ready,
                        const std::function<bool(uint32_t peer)>& waits_for) {
  Member& self = segment_.member(rank_);
  auto next_look = Clock::now() + std::min<Clock::duration>(kLook, timeout_);
  while (true) {
    const uint32_t bell = self.bell.load();
    if (ready()) return;
    refuse_broken();
    const auto now = Clock::now();
    if (now >= next_look) {
      look_for_trouble(ready, waits_for);
      if (ready()) return;
      next_look = now + kLook;
    }
    const auto left = std::chrono::nanoseconds(next_look - now) + std::chrono::microseconds(1);
    const timespec pause = {0, long(std::clamp<int64_t>(left.count(), 1000, 20'000'000))};
    // A ring between the load above and the sleep changes the word, and the sleep ends at once.
    self.sleepers.fetch_add(1);
    futex(&self.bell, FUTEX_WAIT, bell, &pause);
    self.sleepers.fetch_sub(1);
  }
}

bool Group::has_left(uint32_t peer) const { return segment_.member(peer).state.load() == kLeft; }

bool Group::has_died(uint32_t peer) const {
  const Member& member = segment_.member(peer);
  return member.state.load() == kJoined && has_ended(member.process);
}

void Group::look_for_trouble(const std::function<bool()>& ready,
                             const std::function<bool(uint32_t peer)>& waits_for) {
  const bool joining = current_.kind == uint32_t(CommandKind::kJoin);
  std::string late;
  for (uint32_t peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const bool waited_for = waits_for(peer);
    if (waited_for) late += (late.empty() ? "" : ", ") + name(peer);
    if (!waited_for && !joining) continue;
    const bool died = has_died(peer);
    // It may have done its part before it went.
    if ((!died && !has_left(peer)) || ready()) continue;
    refuse_broken();  // why it went, if it said so
    give_up(GRAFT_TIMEOUT, name(peer) + (died ? " died" : " left the group") + " during " +
                               describe(current_) + ", says rank " + std::to_string(rank_));
  }
  if (Clock::now() < deadline_ || ready()) return;
  give_up(GRAFT_TIMEOUT, "rank " + std::to_string(rank_) + " of " + std::to_string(size_) +
                             " waited " + seconds_text(timeout_) + " in " + describe(current_) +
                             " for " + (late.empty() ? "itself" : late));
}

bool Group::break_for_all(graft_status status, const std::string& text) noexcept {
  SegmentHeader& header = segment_.header();
  uint32_t whole = kWhole;
  if (!header.broken.compare_exchange_strong(whole, kBreaking)) return false;
  header.broken_status = status;
  header.broken_rank = rank_;
  copy_text(text, header.broken_text, sizeof header.broken_text);
  header.broken.store(kBroken);
  return true;
}

void Group::give_up(graft_status status, const std::string& text) {
  if (break_for_all(status, text)) ring_others();
  throw GroupError(status, text);
}

void Group::refuse_broken() const {
  const SegmentHeader& header = segment_.header();
  if (header.broken.load() != kBroken) return;
  const std::string text = header.broken_text;
  const bool own = header.broken_rank == rank_;
  throw GroupError(graft_status(header.broken_status),
                   own ? text : "rank " + std::to_string(header.broken_rank) + " gave up: " + text);
}

std::string Group::name(uint32_t peer) const {
  const Member& member = segment_.member(peer);
  std::string text = "rank " + std::to_string(peer);
  if (member.state.load() < kJoined) return text;
  return text + " (process " + std::to_string(member.process.pid) + ")";
}

}  // namespace graft::host

// src/runtime/memory/block_users.h: the streams that use blocks of other streams, and until when.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/memory/free_blocks.h"
#include "runtime/stream/event.h"

namespace graft {

// The users of a block are the streams beside its own that use it. A block that has users when its
// holder gives it back is pending: it becomes free when an event on each user has passed. A failed
// command counts as done. REQUIRES of each call: the owner's lock is held, unless said otherwise.
class BlockUsers {
 public:
  // Events that a block waits for, one for each user. lasting: it waits for good, because a wait
  // for a user that has no event ended early.
  struct Marks {
    std::vector<std::unique_ptr<Event>> events;
    bool lasting = false;

    bool none() const { return events.empty() && !lasting; }
  };

  // mutex: the owner's lock. REQUIRES: both outlive this object.
  BlockUsers(OpenDevice& device, std::mutex& mutex) : device_(device), mutex_(mutex) {}

  // stream, which is not the block's own, uses a held block. Sets block->shared.
  void add(CachedBlock* block, Stream& stream);

  // Forgets the users of a shared block and records an event on each; if that fails, waits for the
  // user. REQUIRES: the lock is not held. Takes it, but not while it records and waits.
  Marks mark_users(CachedBlock* block) noexcept;

  // Counts in block->pending the marks that the block waits for. REQUIRES: not marks.none().
  void wait_for(CachedBlock* block, Marks marks) noexcept;

  // Whether blocks wait for events, and the streams of these events, each once.
  bool has_marks() const { return !marks_.empty(); }
  std::vector<Stream*> marked_streams() const;

  // The blocks that no longer wait, because their last event has passed; each is returned once.
  std::vector<CachedBlock*> take_passed() noexcept;

 private:
  struct Mark {
    std::unique_ptr<Event> event;
    CachedBlock* block;
  };

  OpenDevice& device_;
  std::mutex& mutex_;
  std::unordered_map<CachedBlock*, std::vector<Stream*>> users_;  // of blocks that are shared
  std::map<Stream*, std::deque<Mark>> marks_;  // oldest first; no empty queue stays
  std::vector<std::unique_ptr<Event>> spare_events_;
};

}  // namespace graft

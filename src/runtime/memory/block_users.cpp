// src/runtime/memory/block_users.cpp: the streams that use blocks of other streams, and until when.
#include "runtime/memory/block_users.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "runtime/driver/error.h"
#include "runtime/stream/stream.h"

namespace graft {

void BlockUsers::add(CachedBlock* block, Stream& stream) {
  std::vector<Stream*>& users = users_[block];
  if (std::find(users.begin(), users.end(), &stream) == users.end()) users.push_back(&stream);
  block->shared = true;
}

BlockUsers::Marks BlockUsers::mark_users(CachedBlock* block) noexcept {
  std::vector<Stream*> users;
  std::vector<std::unique_ptr<Event>> spare;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    users = std::move(users_.extract(block).mapped());
    block->shared = false;
    for (size_t i = 0; i < users.size() && !spare_events_.empty(); ++i) {
      spare.push_back(std::move(spare_events_.back()));
      spare_events_.pop_back();
    }
  }
  Marks marks;
  for (Stream* user : users) {
    try {
      if (user->recording() != nullptr) {  // a mark there counts as passed at once
        marks.lasting |= !user->settle();
      }
      std::unique_ptr<Event> event;
      if (&user->device() == &device_ && !spare.empty()) {
        event = std::move(spare.back());
        spare.pop_back();
      } else {
        event = std::make_unique<Event>(user->device(), false);
      }
      event->record(*user);
      marks.events.push_back(std::move(event));
    } catch (const std::exception&) {
      marks.lasting |=
          !user->settle();  // no event to wait for: wait now (at once on a lost device)
    }
  }
  return marks;
}

void BlockUsers::wait_for(CachedBlock* block, Marks marks) noexcept {
  block->pending = static_cast<uint32_t>(marks.events.size()) + (marks.lasting ? 1 : 0);
  for (std::unique_ptr<Event>& event : marks.events) {
    std::deque<Mark>& queue = marks_[event->stream()];
    queue.push_back({std::move(event), block});
  }
}

std::vector<Stream*> BlockUsers::marked_streams() const {
  std::vector<Stream*> streams;
  for (const auto& [stream, marks] : marks_) streams.push_back(stream);
  return streams;
}

std::vector<CachedBlock*> BlockUsers::take_passed() noexcept {
  std::vector<CachedBlock*> passed;
  for (auto queue = marks_.begin(); queue != marks_.end();) {
    std::deque<Mark>& marks = queue->second;
    while (!marks.empty()) {
      Mark& mark = marks.front();
      try {
        if (!mark.event->query()) break;
      } catch (const Error&) {  // what failed is done
      }
      if (&mark.event->device() == &device_) spare_events_.push_back(std::move(mark.event));
      if (--mark.block->pending == 0) passed.push_back(mark.block);
      marks.pop_front();
    }
    queue = marks.empty() ? marks_.erase(queue) : std::next(queue);
  }
  return passed;
}

}  // namespace graft

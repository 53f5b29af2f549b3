// src/runtime/stream/write_epochs.cpp: whether device memory was written since somebody looked.
#include "runtime/stream/write_epochs.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <tuple>
#include <unordered_set>
#include <vector>

namespace graft {

std::atomic<uint32_t> detail::watched_count{0};

// Every watched allocation, in the order of devices and addresses. No two overlap.
class WriteWatches {
 public:
  std::shared_ptr<const WatchedMemory> add(const OpenDevice& device, graft_address address,
                                           uint64_t bytes) {
    const std::unique_lock lock(mutex_);
    const uint64_t end = address + std::max<uint64_t>(bytes, 1);
    size_t at = first_behind(device, address);
    while (at < entries_.size() && entries_[at].device == &device && entries_[at].begin < end) {
      const Entry& entry = entries_[at];
      if (entry.begin == address && entry.end == end) {
        if (auto known = entry.memory.lock()) return known;
      }
      drop(at);
    }
    const std::shared_ptr<WatchedMemory> memory(new WatchedMemory(address),
                                                [this](WatchedMemory* gone) {
                                                  remove(gone);
                                                  delete gone;
                                                });
    if (distrusted_.contains(&device)) memory->trusted_ = false;
    entries_.insert(entries_.begin() + static_cast<ptrdiff_t>(at),
                    {&device, address, end, memory, memory.get()});
    detail::watched_count.store(static_cast<uint32_t>(entries_.size()));
    return memory;
  }

  template <class Change>
  void change(const OpenDevice& device, graft_address address, Change change) {
    const std::shared_lock lock(mutex_);
    const size_t at = first_behind(device, address);
    if (at == entries_.size()) return;
    const Entry& entry = entries_[at];
    if (entry.device == &device && entry.begin <= address) change(*entry.cell);
  }

  template <class Change>
  void change_all(const OpenDevice& device, Change change) {
    const std::shared_lock lock(mutex_);
    for (const Entry& entry : entries_) {
      if (entry.device == &device) change(*entry.cell);
    }
  }

  void release(const OpenDevice& device, graft_address address) {
    bool watched = false;  // most memory is not, and is given back often
    change(device, address, [&](WatchedMemory&) { watched = true; });
    if (!watched) return;
    const std::unique_lock lock(mutex_);
    const size_t at = first_behind(device, address);
    if (at < entries_.size() && entries_[at].device == &device && entries_[at].begin <= address) {
      drop(at);
    }
  }

  void distrust(const OpenDevice& device) {
    const std::unique_lock lock(mutex_);
    distrusted_.insert(&device);
    for (const Entry& entry : entries_) {
      if (entry.device == &device) trust_no_more(*entry.cell);
    }
  }

  void close(const OpenDevice& device) {
    const std::unique_lock lock(mutex_);
    distrusted_.erase(&device);
  }

  static void count(WatchedMemory& memory) {
    memory.writes_.fetch_add(1, std::memory_order_release);
  }
  static void trust_no_more(WatchedMemory& memory) {
    memory.trusted_.store(false, std::memory_order_release);
  }

 private:
  struct Entry {
    const OpenDevice* device;
    graft_address begin, end;
    std::weak_ptr<WatchedMemory> memory;
    WatchedMemory* cell;  // alive while the entry is there
  };

  // REQUIRES for all below: mutex_ is held. The first entry that ends behind address.
  size_t first_behind(const OpenDevice& device, graft_address address) const {
    const auto found = std::upper_bound(
        entries_.begin(), entries_.end(), std::tuple(&device, address),
        [](const auto& wanted, const Entry& entry) {
          return wanted < std::tuple<const OpenDevice*, graft_address>(entry.device, entry.end);
        });
    return static_cast<size_t>(found - entries_.begin());
  }
  void drop(size_t at) {
    entries_[at].cell->held_.store(false, std::memory_order_release);
    entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(at));
    detail::watched_count.store(static_cast<uint32_t>(entries_.size()));
  }

  void remove(const WatchedMemory* gone) {
    const std::unique_lock lock(mutex_);
    const auto found =
        std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.cell == gone; });
    if (found != entries_.end()) drop(static_cast<size_t>(found - entries_.begin()));
  }

  mutable std::shared_mutex mutex_;  // guards what follows
  std::vector<Entry> entries_;
  std::unordered_set<const OpenDevice*> distrusted_;
};

namespace {

WriteWatches& watches() {
  static auto* const the_watches = new WriteWatches;  // streams outlive static objects
  return *the_watches;
}

}  // namespace

std::shared_ptr<const WatchedMemory> watch_writes(const OpenDevice& device, graft_address address,
                                                  uint64_t bytes) {
  return watches().add(device, address, bytes);
}

void note_write(const OpenDevice& device, graft_address address) noexcept {
  watches().change(device, address, &WriteWatches::count);
}

void note_any_write(const OpenDevice& device) noexcept {
  watches().change_all(device, &WriteWatches::count);
}

void note_release(const OpenDevice& device, graft_address address) noexcept {
  watches().release(device, address);
}

void distrust(const OpenDevice& device, graft_address address) noexcept {
  watches().change(device, address, &WriteWatches::trust_no_more);
}

void distrust_device(const OpenDevice& device) noexcept { watches().distrust(device); }

void note_closed(const OpenDevice& device) noexcept { watches().close(device); }

}  // namespace graft

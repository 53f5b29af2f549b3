// tests/runtime/memory/caching_model_test.cpp: the caching allocator against a model, with random
// requests.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "runtime/memory/caching_allocator.h"
#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

struct Held {
  Block* block;
  std::vector<Stream*> users;
};

// What the allocator promises: no two blocks overlap while one is held or a stream may still use
// it, and the figures and the snapshot add up.
class Model {
 public:
  Model(Device& device, uint64_t seed) : device_(device), random_(seed) {
    streams_ = {&device.default_stream(), &device.stream_from_pool(0), &device.stream_from_pool(0)};
  }

  void step() {
    const uint64_t what = random_() % 100;
    if (what < 45 || held_.empty()) return allocate();
    if (what < 85) return free();
    if (what < 93) return share();
    if (what < 98) return fake::release(stream());
    device_.allocator().empty_cache();
  }

  void check() {
    uint64_t allocated = 0, requested = 0;
    for (const Held& one : held_) {
      allocated += one.block->capacity;
      requested += one.block->bytes;
    }
    const MemoryStatistics now = device_.allocator().statistics();
    ASSERT_EQ(now.allocation.all().current, static_cast<int64_t>(held_.size()));
    ASSERT_EQ(now.allocated_bytes.all().current, static_cast<int64_t>(allocated));
    ASSERT_EQ(now.requested_bytes.all().current, static_cast<int64_t>(requested));
    ASSERT_EQ(now.reserved_bytes.all().current, static_cast<int64_t>(fake::controls().used));
    check_snapshot(now);
  }

  void finish() {
    while (!held_.empty()) free();
    device_.allocator().empty_cache();
    ASSERT_EQ(fake::controls().used, 0u);
    ASSERT_EQ(device_.allocator().statistics().active_bytes.all().current, 0);
    ASSERT_EQ(device_.allocator().statistics().inactive_split_bytes.all().current, 0);
  }

 private:
  Stream& stream() { return *streams_[random_() % streams_.size()]; }

  void allocate() {
    const uint64_t bytes = 1 + random_() % (uint64_t{1} << (4 + random_() % 21));
    try {
      Stream& on = stream();
      Block* block = device_.allocator().allocate(bytes, on);
      ASSERT_GE(block->capacity, bytes);
      const auto next = ranges_.lower_bound(block->address);
      ASSERT_TRUE(next == ranges_.end() || next->first >= block->address + block->capacity);
      ASSERT_TRUE(next == ranges_.begin() ||
                  std::prev(next)->first + std::prev(next)->second <= block->address);
      ranges_[block->address] = block->capacity;
      // A use by another stream that is not over would see this byte change.
      for (const auto& [address, marks] : foreign_) {
        if (address < block->address || address >= block->address + block->capacity) continue;
        for (const auto& [user, until] : marks) ASSERT_GE(user->handle()->done, until);
      }
      held_.push_back({block, {}});
    } catch (const Error& error) {
      ASSERT_EQ(error.status(), GRAFT_OUT_OF_MEMORY);
    }
  }

  void free() {
    const size_t which = random_() % held_.size();
    std::swap(held_[which], held_.back());
    const Held one = held_.back();
    held_.pop_back();
    ranges_.erase(one.block->address);
    auto& marks = foreign_[one.block->address];
    marks.clear();
    for (Stream* user : one.users) marks.emplace_back(user, user->handle()->enqueued);
    if (marks.empty()) foreign_.erase(one.block->address);
    device_.allocator().free(one.block);
  }

  void share() {
    Held& one = held_[random_() % held_.size()];
    Stream& user = stream();
    user.launch(nullptr, 1, {});
    device_.allocator().record_stream(one.block, user);
    if (&user != one.block->stream) one.users.push_back(&user);
  }

  void check_snapshot(const MemoryStatistics& now) {
    uint64_t reserved = 0, active = 0;
    for (const SegmentSnapshot& segment : device_.allocator().snapshot().segments) {
      graft_address at = segment.address;
      bool was_free = false;
      for (const BlockSnapshot& block : segment.blocks) {
        ASSERT_EQ(block.address, at);
        at += block.capacity;
        const bool free = block.state == BlockState::kInactive;
        ASSERT_FALSE(free && was_free) << "free neighbours were not joined";
        was_free = free;
      }
      ASSERT_EQ(at, segment.address + segment.bytes);
      reserved += segment.bytes;
      active += segment.active;
    }
    ASSERT_EQ(static_cast<int64_t>(reserved), now.reserved_bytes.all().current);
    ASSERT_EQ(static_cast<int64_t>(active), now.active_bytes.all().current);
  }

  Device& device_;
  std::mt19937_64 random_;
  std::vector<Stream*> streams_;
  std::vector<Held> held_;
  std::map<graft_address, uint64_t> ranges_;
  std::map<graft_address, std::vector<std::pair<Stream*, uint64_t>>> foreign_;
};

TEST(CachingModelTest, RandomRequestsKeepEveryPromise) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    fake::Fake fake;
    fake::controls().memory = 256 << 20;
    Model model(fake.open(), seed);
    fake::controls().hold = true;
    for (int i = 0; i < 3000; ++i) {
      model.step();
      if (i % 50 == 0) model.check();
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
    model.finish();
  }
}

}  // namespace
}  // namespace graft

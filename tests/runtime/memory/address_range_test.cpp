// tests/runtime/memory/address_range_test.cpp: memory that is mapped where there is room, and taken
// away where it lies idle.
#include "runtime/memory/address_range.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <map>
#include <vector>

#include "runtime/memory/caching_allocator.h"
#include "runtime/memory/direct_allocator.h"
#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kUnit = 2 * kMiB;

bool wished = false;
// What the driver mapped, by unit; its reservations.
struct Mapped {
  std::map<graft_address, uint64_t> units, ranges;
};
Mapped& mapped() {
  static Mapped all;
  return all;
}

graft_status map(graft_device, graft_address address, uint64_t bytes) {
  auto& now = fake::controls();
  if (now.used + bytes > now.memory) return GRAFT_OUT_OF_MEMORY;
  for (uint64_t at = address; at < address + bytes; at += kUnit) {
    if (!mapped().units.try_emplace(at, kUnit).second) return GRAFT_INVALID_ARGUMENT;
  }
  now.used += bytes;
  return GRAFT_OK;
}

graft_status unmap(graft_device, graft_address address, uint64_t bytes) {
  for (uint64_t at = address; at < address + bytes; at += kUnit) {
    if (mapped().units.erase(at) == 0) ADD_FAILURE() << "unmapped what was not mapped";
  }
  fake::controls().used -= bytes;
  return GRAFT_OK;
}

void add_mapping(graft_driver_table& table) {
  table.memory_reserve = [](graft_device, uint64_t bytes, graft_address* out) {
    static graft_address next = uint64_t{1} << 40;
    *out = next;
    next += bytes + kUnit;
    mapped().ranges[*out] = bytes;
    return GRAFT_OK;
  };
  table.memory_map = &map;
  table.memory_unmap = &unmap;
  table.memory_unreserve = [](graft_device, graft_address address) {
    return mapped().ranges.erase(address) == 1 ? GRAFT_OK : GRAFT_INVALID_ARGUMENT;
  };
}

class AddressRangeTest : public testing::Test {
 protected:
  AddressRangeTest() {
    mapped() = {};
    add_mapping(fake::table());
    fake::controls().properties.map_granularity = kUnit;
    fake::controls().properties.memory_bytes = 200 * kMiB;
    fake::controls().memory = 200 * kMiB;
    fake::controls().used = 0;
    wished = true;
    set_mapping_wish([]() noexcept { return wished; });
    fake_.open();
  }
  ~AddressRangeTest() override {
    fake_.close();
    set_mapping_wish(nullptr);
    EXPECT_TRUE(mapped().units.empty()) << "memory is left";
    EXPECT_TRUE(mapped().ranges.empty()) << "addresses are left";
  }

  Allocator& allocator() { return fake_.device().allocator(); }
  Block* take(uint64_t bytes) {
    return allocator().allocate(bytes, fake_.device().default_stream());
  }
  uint64_t reserved() {
    return static_cast<uint64_t>(allocator().statistics().reserved_bytes.all().current);
  }

  // Three segments with a short block that stays in each, then a block that is longer than each.
  bool fits_beside_what_stays() {
    std::vector<Block*> kept, freed;
    for (int segment = 0; segment < 3; ++segment) {
      allocator().free(take(60 * kMiB));
      kept.push_back(take(2 * kMiB));
      freed.push_back(take(58 * kMiB));
    }
    for (Block* block : freed) allocator().free(block);
    bool fits = true;
    try {
      allocator().free(take(190 * kMiB));
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), GRAFT_OUT_OF_MEMORY);
      fits = false;
    }
    for (Block* block : kept) allocator().free(block);
    return fits;
  }

  fake::Fake fake_;
};

TEST_F(AddressRangeTest, MemoryMovesToWhereItFits) { EXPECT_TRUE(fits_beside_what_stays()); }

TEST_F(AddressRangeTest, SegmentsStayWhereTheyAre) {
  wished = false;
  EXPECT_FALSE(fits_beside_what_stays());
}

TEST_F(AddressRangeTest, OneRangeGrowsAndIsCounted) {
  Block* const first = take(30 * kMiB);
  Block* const second = take(10 * kMiB);
  EXPECT_EQ(second->address, first->address + 30 * kMiB);
  EXPECT_EQ(reserved(), 40 * kMiB);
  EXPECT_EQ(allocator().statistics().segment.all().current, 1);
  const MemorySnapshot snapshot = allocator().snapshot();
  ASSERT_EQ(snapshot.segments.size(), 1u);
  EXPECT_TRUE(snapshot.segments[0].mapped);
  EXPECT_EQ(snapshot.segments[0].bytes, 40 * kMiB);
  EXPECT_EQ(snapshot.segments[0].active, 40 * kMiB);
  EXPECT_EQ(allocator().find(second->address + 5), second);
  EXPECT_EQ(allocator().find(first->address + 100 * kMiB), nullptr) << "no memory is there";
  allocator().free(first);
  allocator().empty_cache();
  EXPECT_EQ(reserved(), 10 * kMiB);
  EXPECT_EQ(allocator().find(second->address), second);
  Block* const third = take(20 * kMiB);
  EXPECT_EQ(third->address, first->address) << "the hole is mapped first";
  allocator().free(second);
  allocator().free(third);
  allocator().empty_cache();
  EXPECT_EQ(reserved(), 0u);
  EXPECT_EQ(allocator().statistics().segment.all().current, 0);
  EXPECT_TRUE(allocator().snapshot().segments.empty());
  EXPECT_EQ(fake::controls().used, 0u);
}

TEST_F(AddressRangeTest, SmallBlocksHaveARangeOfTheirOwn) {
  Block* const small = take(1000);
  Block* const large = take(3 * kMiB);
  EXPECT_EQ(mapped().ranges.size(), 2u);
  EXPECT_EQ(reserved(), 2 * kMiB + 4 * kMiB);
  allocator().free(small);
  allocator().free(large);
}

TEST_F(AddressRangeTest, TheLimitHolds) {
  allocator().set_limit(20 * kMiB);
  Block* const block = take(15 * kMiB);
  graft_status status = GRAFT_OK;
  const std::string text = fake::error_of([&] { take(10 * kMiB); }, &status);
  EXPECT_EQ(status, GRAFT_OUT_OF_MEMORY);
  EXPECT_TRUE(fake::has(text, "the limit of this process"));
  allocator().free(block);
  allocator().free(take(18 * kMiB));
}

TEST_F(AddressRangeTest, HistoryHasWhatWasMapped) {
  allocator().record_history(100, nullptr);
  Block* const block = take(5 * kMiB);
  allocator().free(block);
  allocator().empty_cache();
  std::vector<std::string> actions;
  for (const MemoryRecord& one : allocator().snapshot().history) {
    actions.emplace_back(action_name(one.action));
  }
  EXPECT_EQ(actions.front(), "segment_map");
  EXPECT_EQ(actions.back(), "segment_unmap");
}

// Steps at random beside a plain account of who has what.
TEST_F(AddressRangeTest, RandomStepsKeepBlocksApart) {
  uint64_t seed = 7;
  const auto draw = [&](uint64_t below) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (seed >> 33) % below;
  };
  std::map<graft_address, Block*> held;
  for (int step = 0; step < 4000; ++step) {
    if (draw(50) == 0) allocator().empty_cache();
    if (held.size() > 12 || (!held.empty() && draw(2) == 0)) {
      const auto one = std::next(held.begin(), static_cast<int64_t>(draw(held.size())));
      allocator().free(one->second);
      held.erase(one);
      continue;
    }
    Block* const block = take(1 + draw(draw(2) == 0 ? 20 * kMiB : 4000));
    const auto after = held.lower_bound(block->address);
    ASSERT_TRUE(after == held.end() || after->first >= block->address + block->capacity);
    ASSERT_TRUE(after == held.begin() ||
                std::prev(after)->first + std::prev(after)->second->capacity <= block->address);
    for (uint64_t at = block->address / kUnit * kUnit; at < block->address + block->bytes;
         at += kUnit) {
      ASSERT_TRUE(mapped().units.contains(at)) << "a block has no memory";
    }
    held[block->address] = block;
    ASSERT_EQ(reserved(), mapped().units.size() * kUnit);
  }
  for (const auto& [address, block] : held) allocator().free(block);
}

}  // namespace
}  // namespace graft

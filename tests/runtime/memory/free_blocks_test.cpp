// tests/runtime/memory/free_blocks_test.cpp: finding a free block by size.
#include "runtime/memory/free_blocks.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <set>

namespace graft {
namespace {

TEST(FreeBlocksTest, FindsExactFitsAmongOthers) {
  FreeBlocks pool;
  std::deque<CachedBlock> blocks(40);
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].capacity = 512 * (100 + i);
    pool.insert(&blocks[i]);
  }
  for (CachedBlock& block : blocks) EXPECT_EQ(pool.find(block.capacity), &block);
  EXPECT_EQ(pool.find(512 * 140), nullptr);
  EXPECT_EQ(pool.find(512), &blocks[0]);
  EXPECT_EQ(pool.largest(), 512u * 139);
}

TEST(FreeBlocksTest, AgreesWithASetOnWhetherSomethingFits) {
  std::mt19937_64 random(7);
  FreeBlocks pool;
  std::deque<CachedBlock> all(2000);
  std::multiset<uint64_t> sizes;
  std::vector<CachedBlock*> inside, outside;
  for (CachedBlock& block : all) outside.push_back(&block);
  for (int step = 0; step < 20000; ++step) {
    const uint64_t size = 512 * (1 + random() % (uint64_t{1} << (random() % 20)));
    if (random() % 2 == 0 && !outside.empty()) {
      CachedBlock* block = outside.back();
      outside.pop_back();
      block->capacity = size;
      pool.insert(block);
      sizes.insert(size);
    } else if (CachedBlock* block = pool.find(size)) {
      ASSERT_GE(block->capacity, size);
      pool.remove(block);
      sizes.erase(sizes.find(block->capacity));
      outside.push_back(block);
    } else {
      // Only a class with more blocks than a search looks at may hide a fit.
      ASSERT_LE(std::distance(sizes.lower_bound(size), sizes.end()), 64);
    }
    ASSERT_EQ(pool.largest(), sizes.empty() ? 0 : *sizes.rbegin());
  }
}

}  // namespace
}  // namespace graft

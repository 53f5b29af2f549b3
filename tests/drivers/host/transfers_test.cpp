// tests/drivers/host/transfers_test.cpp: sends, receives and batches of them between ranks.
#include <gtest/gtest.h>

#include <numeric>

#include "ranks.h"

namespace graft::host_test {
namespace {

// Bytes that differ from place to place and between seeds.
std::vector<char> bytes_of(uint64_t count, uint32_t seed) {
  std::vector<char> bytes(count);
  uint32_t state = seed * 2654435761u + 1;
  for (char& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

graft_status send(Rank& rank, graft_address from, uint64_t bytes, uint32_t peer) {
  return collectives().send(rank.session.stream, rank.group, from, bytes, GRAFT_UINT8, peer, 0);
}

graft_status receive(Rank& rank, graft_address to, uint64_t bytes, uint32_t peer) {
  return collectives().receive(rank.session.stream, rank.group, to, bytes, GRAFT_UINT8, peer, 0);
}

TEST(HostTransfers, GoFromRankToRank) {
  in_threads(2, [](Rank& rank) {
    // A channel takes 256 KiB at a time.
    for (const uint64_t bytes : {0, 1, 262143, 262144, 262145, 1500000}) {
      const std::vector<char> data = bytes_of(bytes, 7);
      if (rank.rank == 0) {
        const graft_address from = rank.upload(data);
        EXPECT_EQ(send(rank, from, bytes, 1), GRAFT_OK) << last_message();
        EXPECT_EQ(receive(rank, from, bytes, 1), GRAFT_OK);
        EXPECT_EQ(rank.synchronize(), GRAFT_OK) << last_message();
      } else {
        const graft_address to = rank.upload(bytes_of(bytes, 8));
        EXPECT_EQ(receive(rank, to, bytes, 0), GRAFT_OK) << last_message();
        EXPECT_TRUE(rank.download(to, bytes) == data) << bytes << " bytes";
        EXPECT_EQ(send(rank, to, bytes, 0), GRAFT_OK);
      }
    }
  });
}

TEST(HostTransfers, OfABatchWaitForNoneOfEachOther) {
  for (const uint32_t size : {2u, 4u}) {
    in_threads(size, [](Rank& rank) {
      // Everyone sends to everyone, itself too, more than the channels hold.
      constexpr uint64_t kBytes = 700001;
      std::vector<graft_address> to(rank.size);
      ASSERT_EQ(collectives().batch_begin(rank.group), GRAFT_OK);
      for (uint32_t peer = 0; peer < rank.size; ++peer) {
        const graft_address from = rank.upload(bytes_of(kBytes, 10 * rank.rank + peer));
        to[peer] = rank.session.allocate(kBytes);
        EXPECT_EQ(send(rank, from, kBytes, peer), GRAFT_OK) << last_message();
        EXPECT_EQ(receive(rank, to[peer], kBytes, peer), GRAFT_OK) << last_message();
      }
      ASSERT_EQ(collectives().batch_end(rank.group), GRAFT_OK) << last_message();
      for (uint32_t peer = 0; peer < rank.size; ++peer) {
        EXPECT_TRUE(rank.download(to[peer], kBytes) == bytes_of(kBytes, 10 * peer + rank.rank))
            << "from " << peer << " to " << rank.rank;
      }
    });
  }
}

TEST(HostTransfers, BetweenTheSameRanksKeepTheirOrder) {
  in_threads(2, [](Rank& rank) {
    constexpr int kMessages = 20;
    std::vector<int> data(kMessages);
    std::iota(data.begin(), data.end(), 1);
    std::vector<char> bytes(sizeof(int) * kMessages);
    if (rank.rank == 0) std::memcpy(bytes.data(), data.data(), bytes.size());
    const graft_address at = rank.upload(bytes);
    ASSERT_EQ(collectives().batch_begin(rank.group), GRAFT_OK);
    for (int i = 0; i < kMessages; ++i) {
      const graft_address one = at + sizeof(int) * static_cast<uint64_t>(i);
      EXPECT_EQ(rank.rank == 0 ? send(rank, one, 4, 1) : receive(rank, one, 4, 0), GRAFT_OK);
    }
    ASSERT_EQ(collectives().batch_end(rank.group), GRAFT_OK);
    bytes = rank.download(at, bytes.size());
    std::vector<int> got(kMessages);
    std::memcpy(got.data(), bytes.data(), bytes.size());
    EXPECT_EQ(got, data);
  });
}

TEST(HostTransfers, GoBesideCollectives) {
  in_threads(3, [](Rank& rank) {
    const graft_address at = rank.upload(std::vector<char>(4096, 0));
    for (int i = 0; i < 50; ++i) {
      ASSERT_EQ(rank.all_reduce(at, 16), GRAFT_OK);
      const graft_status status = rank.rank == 0   ? send(rank, at, 64, 2)
                                  : rank.rank == 2 ? receive(rank, at, 64, 0)
                                                   : GRAFT_OK;
      ASSERT_EQ(status, GRAFT_OK);
      ASSERT_EQ(rank.all_reduce(at, 1024), GRAFT_OK);
    }
    EXPECT_EQ(rank.synchronize(), GRAFT_OK) << last_message();
  });
}

TEST(HostTransfers, ToItselfNeedABatch) {
  in_threads(1, [](Rank& rank) {
    const graft_address at = rank.session.allocate(8);
    EXPECT_EQ(send(rank, at, 8, 0), GRAFT_INVALID_ARGUMENT);
    EXPECT_TRUE(says("batch"));
    EXPECT_EQ(collectives().batch_end(rank.group), GRAFT_INVALID_ARGUMENT);
    ASSERT_EQ(collectives().batch_begin(rank.group), GRAFT_OK);
    EXPECT_EQ(collectives().batch_begin(rank.group), GRAFT_INVALID_ARGUMENT);
    EXPECT_EQ(rank.all_reduce(at, 1), GRAFT_INVALID_ARGUMENT);
    EXPECT_TRUE(says("batch"));
    EXPECT_EQ(collectives().batch_end(rank.group), GRAFT_OK);
  });
}

TEST(HostTransfers, ThatDifferNameBothSides) {
  in_threads(2, [](Rank& rank) {
    const graft_address at = rank.session.allocate(64);
    const graft_status status = rank.rank == 0 ? send(rank, at, 8, 1) : receive(rank, at, 16, 0);
    ASSERT_EQ(status, GRAFT_OK);
    if (rank.rank == 1) {
      EXPECT_EQ(rank.synchronize(), GRAFT_INVALID_ARGUMENT);
      EXPECT_TRUE(says("rank 0"));
      EXPECT_TRUE(says("sends 8 uint8"));
      EXPECT_TRUE(says("receives 16 uint8"));
    }
  });
}

}  // namespace
}  // namespace graft::host_test

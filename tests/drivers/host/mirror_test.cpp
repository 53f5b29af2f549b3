// tests/drivers/host/mirror_test.cpp: mirrored ranks: how long collectives take, and what they
// give.
#include <gtest/gtest.h>

#include <cmath>

#include "ranks.h"

namespace graft::host_test {
namespace {

constexpr double kBandwidth = 1e9, kLatency = 3'000;
constexpr uint32_t kSizes[] = {2, 3, 8, 64, 256};
constexpr uint64_t kCounts[] = {0, 1, 1000, uint64_t{1} << 18};  // of float32 on each rank

bool reran_with_mirrors() {
  return reran({"GRAFT_HOST_SIMULATE=ranks=256,bandwidth=1G,latency=3us"});
}

// Rank 0 of a group whose other ranks are nowhere.
struct Lone : Rank {
  explicit Lone(uint32_t size, uint32_t rank = 0) : Rank(make_id(), rank, size) {
    EXPECT_EQ(driver().event_create(session.device, 1, &start), GRAFT_OK);
    EXPECT_EQ(driver().event_create(session.device, 1, &end), GRAFT_OK);
  }
  ~Lone() {
    driver().event_destroy(start);
    driver().event_destroy(end);
  }

  // Simulated nanoseconds of what calls() queues.
  template <class Calls>
  double time_of(const Calls& calls) {
    int64_t ns = -1;
    EXPECT_EQ(driver().event_record(start, session.stream), GRAFT_OK);
    EXPECT_EQ(calls(), GRAFT_OK) << last_message();
    EXPECT_EQ(driver().event_record(end, session.stream), GRAFT_OK);
    EXPECT_EQ(synchronize(), GRAFT_OK) << last_message();
    EXPECT_EQ(driver().event_elapsed(start, end, &ns), GRAFT_OK) << last_message();
    return static_cast<double>(ns);
  }

  std::vector<float> floats(graft_address at, uint64_t count) {
    const std::vector<char> bytes = download(at, count * sizeof(float));
    std::vector<float> result(count);
    std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }
  graft_address put(const std::vector<float>& values) {
    const char* from = reinterpret_cast<const char*>(values.data());
    return upload(std::vector<char>(from, from + values.size() * sizeof(float)));
  }

  graft_event start = nullptr, end = nullptr;
};

// Nanoseconds of a number of steps, in which a part of the bytes crosses a link.
double steps(double count, double part_bytes) {
  return count * (part_bytes / kBandwidth * 1e9 + kLatency);
}

TEST(HostMirror, AllReduceTakesTheTimeOfTheClosedFormula) {
  if (reran_with_mirrors()) return;
  for (const uint32_t size : kSizes) {
    for (const uint64_t count : kCounts) {
      SCOPED_TRACE(std::to_string(size) + " ranks, " + std::to_string(count) + " elements");
      Lone rank(size);
      const double n = size, bytes = 4.0 * static_cast<double>(count);
      const double formula = 2 * (n - 1) / n * bytes / kBandwidth * 1e9 + 2 * (n - 1) * kLatency;
      const graft_address a = rank.session.allocate(std::max<uint64_t>(count * 4, 4));
      EXPECT_NEAR(rank.time_of([&] { return rank.all_reduce(a, count); }), formula, 1);
    }
  }
}

TEST(HostMirror, OtherCollectivesTakeTheTimeOfTheirs) {
  if (reran_with_mirrors()) return;
  constexpr uint64_t kCount = 1000;
  for (const uint32_t size : kSizes) {
    SCOPED_TRACE(size);
    Lone rank(size);
    const double n = size, bytes = 4.0 * kCount;
    const graft_address whole = rank.session.allocate(size * kCount * 4);
    const graft_address part = rank.session.allocate(kCount * 4);
    const auto& table = collectives();
    EXPECT_NEAR(rank.time_of([&] {
      return table.all_gather(rank.session.stream, rank.group, part, whole, kCount, GRAFT_FLOAT32,
                              0);
    }),
                steps(n - 1, bytes), 1);
    EXPECT_NEAR(rank.time_of([&] {
      return table.reduce_scatter(rank.session.stream, rank.group, whole, part, kCount,
                                  GRAFT_FLOAT32, GRAFT_REDUCE_SUM, 0);
    }),
                steps(n - 1, bytes), 1);
    const double chain = (n - 1) * kLatency + 2 * (n - 1) / n * bytes / kBandwidth * 1e9;
    EXPECT_NEAR(rank.time_of([&] {
      return table.broadcast(rank.session.stream, rank.group, part, part, kCount, GRAFT_FLOAT32, 0,
                             0);
    }),
                chain, 1);
    EXPECT_NEAR(rank.time_of([&] {
      return table.reduce(rank.session.stream, rank.group, part, part, kCount, GRAFT_FLOAT32,
                          GRAFT_REDUCE_SUM, size - 1, 0);
    }),
                chain, 1);
  }
}

TEST(HostMirror, TheSlowestLinkBoundsTheRing) {
  if (reran({"GRAFT_HOST_SIMULATE=ranks=64,bandwidth=1G,latency=3us,node=8,outer_bandwidth=100M,"
             "outer_latency=50us"})) {
    return;
  }
  constexpr uint64_t kCount = 1 << 18;
  const auto time = [](uint32_t size) {
    Lone rank(size);
    const graft_address a = rank.session.allocate(kCount * 4);
    return rank.time_of([&] { return rank.all_reduce(a, kCount); });
  };
  EXPECT_NEAR(time(8), steps(14, kCount * 4.0 / 8), 1);  // inside a node
  const double part_ns = kCount * 4.0 / 64 / 100e6 * 1e9;
  EXPECT_GE(time(64), 126 * part_ns);
  EXPECT_LE(time(64), 126 * (part_ns + 50'000));
}

TEST(HostMirror, EveryRankHoldsTheSameBytes) {
  if (reran_with_mirrors()) return;
  for (const uint32_t size : {2u, 7u, 256u}) {
    SCOPED_TRACE(size);
    Lone rank(size, 1);
    const auto n = static_cast<float>(size);
    const graft_address a = rank.put({1, 2, -3});
    ASSERT_EQ(rank.all_reduce(a, 3), GRAFT_OK) << last_message();
    EXPECT_EQ(rank.floats(a, 3), (std::vector<float>{n, 2 * n, -3 * n}));
    for (const graft_reduction same : {GRAFT_REDUCE_MAX, GRAFT_REDUCE_AVERAGE}) {
      ASSERT_EQ(rank.all_reduce(a, 3, same), GRAFT_OK) << last_message();
      EXPECT_EQ(rank.floats(a, 3), (std::vector<float>{n, 2 * n, -3 * n}));
    }
    std::vector<float> rows;
    for (uint32_t i = 0; i < size; ++i) rows.insert(rows.end(), {float(i), 1});
    const graft_address whole = rank.put(rows), part = rank.put({5, 6});
    const auto& table = collectives();
    ASSERT_EQ(table.reduce_scatter(rank.session.stream, rank.group, whole, part, 2, GRAFT_FLOAT32,
                                   GRAFT_REDUCE_SUM, 0),
              GRAFT_OK);
    EXPECT_EQ(rank.floats(part, 2), (std::vector<float>{n, n}));  // rank 1's row
    ASSERT_EQ(table.all_gather(rank.session.stream, rank.group, part, whole, 2, GRAFT_FLOAT32, 0),
              GRAFT_OK);
    EXPECT_EQ(rank.floats(whole, 2 * size), std::vector<float>(2 * size, n));
  }
}

TEST(HostMirror, TransfersCrossOneLinkEachWay) {
  if (reran_with_mirrors()) return;
  constexpr uint32_t kRanks = 5, kCount = 1000;
  Lone rank(kRanks);
  const graft_address out = rank.put(std::vector<float>(kRanks * kCount, 2));
  const graft_address in = rank.put(std::vector<float>(kRanks * kCount, 1));
  const auto& table = collectives();
  const double ns = rank.time_of([&] {
    EXPECT_EQ(table.batch_begin(rank.group), GRAFT_OK);
    for (uint32_t peer = 1; peer < kRanks; ++peer) {
      const uint64_t offset = uint64_t{4} * peer * kCount;
      EXPECT_EQ(
          table.send(rank.session.stream, rank.group, out + offset, kCount, GRAFT_FLOAT32, peer, 0),
          GRAFT_OK);
      EXPECT_EQ(table.receive(rank.session.stream, rank.group, in + offset, kCount, GRAFT_FLOAT32,
                              peer, 0),
                GRAFT_OK);
    }
    return table.batch_end(rank.group);
  });
  EXPECT_NEAR(ns, 4 * kCount * 4.0 / kBandwidth * 1e9 + kLatency, 1);
  EXPECT_EQ(rank.floats(in + 4 * kCount, kCount), std::vector<float>(kCount, 2));
  EXPECT_EQ(rank.floats(in, kCount), std::vector<float>(kCount, 1));
}

TEST(HostMirror, MoreRanksThanTheSettingSaysAreRefused) {
  if (reran({"GRAFT_HOST_SIMULATE=ranks=8"})) return;
  Session s;
  graft_group group = nullptr;
  const GroupId id = make_id();
  EXPECT_EQ(collectives().group_create(s.device, id.data(), 0, 9, 1'000'000, &group),
            GRAFT_INVALID_ARGUMENT);
  EXPECT_TRUE(says("9 ranks"));
  EXPECT_TRUE(says("ranks=8"));
}

}  // namespace
}  // namespace graft::host_test

// tests/drivers/host/collective_faults_test.cpp: ranks that die, differ, abort or never come.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <filesystem>
#include <memory>

#include "ranks.h"

namespace graft::host_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

// Bytes that an all_reduce takes in many rounds.
constexpr uint64_t kManyBytes = 16 << 20;

std::string segment_path(const GroupId& id) {
  std::string path = "/dev/shm/graft-group-";
  for (size_t i = 8; i < 24; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", id[i]);
    path += digits;
  }
  return path;
}

TEST(HostCollectiveFaults, ADeadRankIsNamedWithinTheTime) {
  if (is_rank_process()) {
    as_rank_process([](Rank& rank) {
      const graft_address at = rank.session.allocate(kManyBytes);
      const auto begin = Clock::now();
      graft_status status = GRAFT_OK;
      while (status == GRAFT_OK && Clock::now() - begin < seconds(30)) {
        ASSERT_EQ(rank.all_reduce(at, kManyBytes / 4), GRAFT_OK);
        if (rank.rank == 1 && Clock::now() - begin > milliseconds(100)) raise(SIGKILL);
        status = rank.synchronize();
      }
      // Long before the group's own time is over.
      EXPECT_LT(Clock::now() - begin, seconds(20));
      EXPECT_EQ(status, GRAFT_TIMEOUT);
      EXPECT_TRUE(says("rank 1 (process "));
      EXPECT_TRUE(says("died"));
      EXPECT_TRUE(says("all_reduce of 4194304 float32 (sum)"));
      // And every later command.
      ASSERT_EQ(rank.all_reduce(at, 1), GRAFT_OK);
      EXPECT_EQ(rank.synchronize(), GRAFT_TIMEOUT);
      EXPECT_TRUE(says("rank 1 (process "));
    });
    return;
  }
  std::vector<std::string> outputs;
  const std::vector<int> statuses = in_processes(3, &outputs);
  EXPECT_EQ(statuses[0], 0) << outputs[0];
  EXPECT_EQ(statuses[1], 128 + SIGKILL) << outputs[1];
  EXPECT_EQ(statuses[2], 0) << outputs[2];
}

TEST(HostCollectiveFaults, ALateRankIsNamed) {
  std::barrier over(2);
  in_threads(
      2,
      [&](Rank& rank) {
        const graft_address at = rank.session.allocate(64);
        if (rank.rank == 0) {
          ASSERT_EQ(rank.all_reduce(at, 4, GRAFT_REDUCE_SUM, 77), GRAFT_OK);
          EXPECT_EQ(rank.synchronize(), GRAFT_TIMEOUT);
          EXPECT_TRUE(says("waited 1 s"));
          EXPECT_TRUE(says("for rank 1"));
          uint32_t tag = 0;
          char text[1024] = "";
          EXPECT_EQ(driver().stream_error(rank.session.stream, &tag, text, sizeof text), GRAFT_OK);
          EXPECT_EQ(tag, 77u);
          EXPECT_NE(std::string(text).find("all_reduce of 4 float32"), std::string::npos) << text;
        }
        over.arrive_and_wait();
        if (rank.rank == 1) {
          ASSERT_EQ(rank.all_reduce(at, 4), GRAFT_OK);
          EXPECT_EQ(rank.synchronize(), GRAFT_TIMEOUT);
          EXPECT_TRUE(says("rank 0 gave up"));
        }
      },
      seconds(1));
}

TEST(HostCollectiveFaults, ARankThatLeftIsNamed) {
  const GroupId id = make_id();
  std::thread leaver([&] { Rank rank(id, 1, 2); });
  Rank rank(id, 0, 2);
  leaver.join();
  ASSERT_EQ(rank.all_reduce(rank.session.allocate(64), 4), GRAFT_OK);
  EXPECT_EQ(rank.synchronize(), GRAFT_TIMEOUT);
  EXPECT_TRUE(says("rank 1"));
  EXPECT_TRUE(says("left the group"));
}

// Two commands that differ, and what both ranks must be told.
struct Difference {
  std::function<graft_status(Rank&, graft_address)> commands[2];
  std::vector<std::string> parts;
};

void expect_difference(const Difference& difference) {
  in_threads(2, [&](Rank& rank) {
    const graft_address at = rank.session.allocate(4096);
    ASSERT_EQ(difference.commands[rank.rank](rank, at), GRAFT_OK) << last_message();
    EXPECT_EQ(rank.synchronize(), GRAFT_INVALID_ARGUMENT);
    for (const std::string& part : difference.parts) EXPECT_TRUE(says(part));
    EXPECT_TRUE(says("rank 0"));
    EXPECT_TRUE(says("rank 1"));
  });
}

TEST(HostCollectiveFaults, CommandsThatDifferNameBothSides) {
  const auto reduce = [](uint64_t count, graft_dtype dtype, graft_reduction reduction) {
    return [=](Rank& rank, graft_address at) {
      return collectives().all_reduce(rank.session.stream, rank.group, at, at, count, dtype,
                                      reduction, 0);
    };
  };
  const auto broadcast = [](uint32_t root) {
    return [=](Rank& rank, graft_address at) {
      return collectives().broadcast(rank.session.stream, rank.group, at, at, 10, GRAFT_INT64, root,
                                     0);
    };
  };
  expect_difference({{reduce(10, GRAFT_FLOAT32, GRAFT_REDUCE_SUM), broadcast(1)},
                     {"all_reduce of 10 float32 (sum)", "broadcast of 10 int64 from rank 1"}});
  expect_difference(
      {{reduce(10, GRAFT_FLOAT32, GRAFT_REDUCE_SUM), reduce(11, GRAFT_FLOAT32, GRAFT_REDUCE_SUM)},
       {"of 10 float32", "of 11 float32"}});
  expect_difference(
      {{reduce(10, GRAFT_FLOAT32, GRAFT_REDUCE_SUM), reduce(10, GRAFT_INT32, GRAFT_REDUCE_SUM)},
       {"of 10 float32", "of 10 int32"}});
  expect_difference(
      {{reduce(10, GRAFT_FLOAT32, GRAFT_REDUCE_SUM), reduce(10, GRAFT_FLOAT32, GRAFT_REDUCE_MAX)},
       {"(sum)", "(max)"}});
  expect_difference({{broadcast(0), broadcast(1)}, {"from rank 0", "from rank 1"}});
}

TEST(HostCollectiveFaults, AbortEndsWhatWaits) {
  std::barrier ended(2);
  in_threads(2, [&](Rank& rank) {
    const graft_address at = rank.session.allocate(kManyBytes);
    if (rank.rank == 0) {
      ASSERT_EQ(rank.all_reduce(at, kManyBytes / 4), GRAFT_OK);
      std::thread aborter([&] {
        std::this_thread::sleep_for(milliseconds(50));
        EXPECT_EQ(collectives().group_abort(rank.group), GRAFT_OK);
      });
      const auto begin = Clock::now();
      EXPECT_EQ(rank.synchronize(), GRAFT_TIMEOUT);
      EXPECT_LT(Clock::now() - begin, seconds(20));
      EXPECT_TRUE(says("rank 0 aborted the group"));
      aborter.join();
    }
    ended.arrive_and_wait();
    if (rank.rank == 1) {
      ASSERT_EQ(rank.all_reduce(at, 4), GRAFT_OK);
      EXPECT_EQ(rank.synchronize(), GRAFT_TIMEOUT);
      EXPECT_TRUE(says("rank 0 aborted the group"));
    }
  });
}

TEST(HostCollectiveFaults, MissingRanksAreNamedAndLeaveNoSegment) {
  const GroupId id = make_id();
  std::vector<std::thread> threads;
  for (const uint32_t rank : {0u, 2u}) {
    threads.emplace_back([&, rank] {
      Session session;
      graft_group group = nullptr;
      EXPECT_EQ(
          collectives().group_create(session.device, id.data(), rank, 4, 1'000'000'000, &group),
          GRAFT_TIMEOUT);
      EXPECT_TRUE(says("for rank 1, rank 3"));
      EXPECT_EQ(group, nullptr);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(std::filesystem::exists(segment_path(id)));
}

TEST(HostCollectiveFaults, TheSegmentHasNoNameOnceAllRanksHaveIt) {
  const GroupId id = make_id();
  std::thread other([&] { Rank rank(id, 1, 2); });
  {
    Rank rank(id, 0, 2);
    EXPECT_FALSE(std::filesystem::exists(segment_path(id)));
  }
  other.join();
  EXPECT_FALSE(std::filesystem::exists(segment_path(id)));
}

TEST(HostCollectiveFaults, AForkedChildHasNoPartInTheGroup) {
  in_threads(1, [](Rank& rank) {
    const graft_address at = rank.upload(std::vector<char>(64, 0));
    const pid_t child = fork();
    if (child == 0) {
      const bool refused = rank.all_reduce(at, 4) == GRAFT_DEVICE_LOST &&
                           collectives().group_abort(rank.group) == GRAFT_OK &&
                           collectives().group_destroy(rank.group) == GRAFT_OK;
      _exit(refused ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    ASSERT_EQ(rank.all_reduce(at, 4), GRAFT_OK);
    EXPECT_EQ(rank.synchronize(), GRAFT_OK) << last_message();
  });
}

TEST(HostCollectiveFaults, WrongArgumentsAreRefusedAtTheCall) {
  Session session;
  GroupId id = make_id();
  graft_group group = nullptr;
  const auto create = [&](uint32_t rank, uint32_t size, int64_t timeout) {
    return collectives().group_create(session.device, id.data(), rank, size, timeout, &group);
  };
  EXPECT_EQ(create(2, 2, 1'000'000), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(create(0, 1, 0), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(create(0, 65, 1'000'000), GRAFT_UNSUPPORTED);
  id[30] ^= 1;  // of the machine
  EXPECT_EQ(create(0, 1, 1'000'000), GRAFT_UNSUPPORTED);
  EXPECT_TRUE(says("several machines"));
  id = GroupId{};
  EXPECT_EQ(create(0, 1, 1'000'000), GRAFT_INVALID_ARGUMENT);
  in_threads(1, [](Rank& rank) {
    const auto& table = collectives();
    graft_stream stream = rank.session.stream;
    const graft_address at = rank.session.allocate(4096);
    EXPECT_EQ(table.all_reduce(stream, rank.group, at, at, 1025, GRAFT_FLOAT32, 0, 0),
              GRAFT_INVALID_ARGUMENT);
    EXPECT_TRUE(says("inside one allocation"));
    EXPECT_EQ(table.all_reduce(stream, rank.group, at, at, ~0ull, GRAFT_FLOAT32, 0, 0),
              GRAFT_INVALID_ARGUMENT);
    EXPECT_EQ(table.broadcast(stream, rank.group, at, at, 1, 99, 0, 0), GRAFT_INVALID_ARGUMENT);
    EXPECT_EQ(table.broadcast(stream, rank.group, at, at, 1, GRAFT_INT8, 1, 0),
              GRAFT_INVALID_ARGUMENT);
    EXPECT_EQ(table.send(stream, rank.group, at, 1, GRAFT_INT8, 5, 0), GRAFT_INVALID_ARGUMENT);
    EXPECT_EQ(
        table.all_reduce(stream, rank.group, at, at, 1, GRAFT_FLOAT32, GRAFT_REDUCE_BIT_OR, 0),
        GRAFT_UNSUPPORTED);
    EXPECT_TRUE(says("float32 has no reduction 'bit or'"));
    EXPECT_EQ(rank.synchronize(), GRAFT_OK);
  });
}

TEST(HostCollectiveFaults, APlantedFaultReachesAllRanks) {
  if (reran({"GRAFT_HOST_FAULTS=collective:1",
             "GRAFT_HOST_FAULTS=collective:1 GRAFT_HOST_MODE=async"}))
    return;
  in_threads(3, [](Rank& rank) {
    const graft_address at = rank.session.allocate(64);
    ASSERT_EQ(rank.all_reduce(at, 4), GRAFT_OK);
    EXPECT_EQ(rank.synchronize(), GRAFT_INTERNAL);
    EXPECT_TRUE(says("planted by GRAFT_HOST_FAULTS"));
  });
}

TEST(HostCollectiveFaults, OneThreadMayDriveTwoRanks) {
  const GroupId id = make_id();
  std::unique_ptr<Rank> ranks[2];
  std::thread other([&] { ranks[1] = std::make_unique<Rank>(id, 1, 2); });
  ranks[0] = std::make_unique<Rank>(id, 0, 2);
  other.join();
  for (const uint64_t bytes : {uint64_t{64}, kManyBytes}) {
    for (auto& rank : ranks) {
      ASSERT_EQ(rank->all_reduce(rank->session.allocate(bytes), bytes / 4), GRAFT_OK);
    }
    for (auto& rank : ranks) EXPECT_EQ(rank->synchronize(), GRAFT_OK) << last_message();
  }
}

}  // namespace
}  // namespace graft::host_test

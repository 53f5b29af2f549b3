// tests/drivers/host/ranks.h: ranks of a group on host devices, as threads or as processes.
#ifndef GRAFT_TESTS_DRIVERS_HOST_HOST_RANKS_H_
#define GRAFT_TESTS_DRIVERS_HOST_HOST_RANKS_H_

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "driver.h"
#include "graft/extensions.h"

namespace graft::host_test {

using GroupId = std::array<uint8_t, GRAFT_GROUP_ID_BYTES>;

inline const graft_collectives_table& collectives() {
  static const graft_collectives_table* const table = [] {
    const void* found = nullptr;
    if (driver().extension("graft.collectives", 1, &found) != GRAFT_OK) std::abort();
    return static_cast<const graft_collectives_table*>(found);
  }();
  return *table;
}

inline GroupId make_id() {
  Session session;
  GroupId id{};
  EXPECT_EQ(collectives().group_id(session.device, id.data()), GRAFT_OK) << last_message();
  return id;
}

// A device of its own, a stream and a place in the group.
struct Rank {
  Rank(const GroupId& id, uint32_t rank, uint32_t size,
       std::chrono::nanoseconds timeout = std::chrono::seconds(60))
      : rank(rank), size(size) {
    EXPECT_EQ(
        collectives().group_create(session.device, id.data(), rank, size, timeout.count(), &group),
        GRAFT_OK)
        << last_message();
  }
  ~Rank() {
    driver().stream_synchronize(session.stream);
    if (group == nullptr) return;
    EXPECT_EQ(collectives().group_destroy(group), GRAFT_OK);
  }

  graft_address upload(const std::vector<char>& bytes) {
    const graft_address address = session.allocate(bytes.empty() ? 1 : bytes.size());
    EXPECT_EQ(session.upload(address, bytes.data(), bytes.size()), GRAFT_OK);
    EXPECT_EQ(synchronize(), GRAFT_OK) << last_message();  // before the bytes go
    return address;
  }
  std::vector<char> download(graft_address address, uint64_t bytes) {
    std::vector<char> result(bytes);
    EXPECT_EQ(session.download(result.data(), address, bytes), GRAFT_OK) << last_message();
    return result;
  }
  graft_status all_reduce(graft_address address, uint64_t count,
                          graft_reduction reduction = GRAFT_REDUCE_SUM, uint32_t tag = 0) {
    return collectives().all_reduce(session.stream, group, address, address, count, GRAFT_FLOAT32,
                                    reduction, tag);
  }
  // What the commands so far failed with; the text is left in last_message().
  graft_status synchronize() { return driver().stream_synchronize(session.stream); }

  const uint32_t rank, size;
  Session session;
  graft_group group = nullptr;
};

// Runs body in a thread per rank and waits for all.
inline void in_threads(uint32_t size, const std::function<void(Rank&)>& body,
                       std::chrono::nanoseconds timeout = std::chrono::seconds(60)) {
  const GroupId id = make_id();
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < size; ++i) {
    threads.emplace_back([&, i] {
      Rank rank(id, i, size, timeout);
      if (rank.group != nullptr) body(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

inline constexpr char kRankVariable[] = "GRAFT_TEST_RANK";

// Whether this process was started by in_processes().
inline bool is_rank_process() { return std::getenv(kRankVariable) != nullptr; }

// In such a process: runs body as its rank.
inline void as_rank_process(const std::function<void(Rank&)>& body) {
  GroupId id{};
  const char* digits = std::getenv("GRAFT_TEST_GROUP");
  for (size_t i = 0; i < id.size(); ++i) {
    const char pair[] = {digits[2 * i], digits[2 * i + 1], '\0'};
    id[i] = static_cast<uint8_t>(std::strtoul(pair, nullptr, 16));
  }
  const auto number = [](const char* name) {
    return static_cast<uint32_t>(std::strtoul(std::getenv(name), nullptr, 10));
  };
  Rank rank(id, number(kRankVariable), number("GRAFT_TEST_SIZE"));
  ASSERT_NE(rank.group, nullptr);
  body(rank);
}

// Runs the current test in a fresh process per rank; their exit statuses, by rank.
inline std::vector<int> in_processes(uint32_t size, std::vector<std::string>* outputs = nullptr) {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string name = std::string(test->test_suite_name()) + "." + test->name();
  std::string digits;
  for (const uint8_t byte : make_id()) {
    char pair[3];
    std::snprintf(pair, sizeof pair, "%02x", byte);
    digits += pair;
  }
  std::vector<int> statuses(size, -1);
  std::vector<std::string> said(size);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const std::string environment = std::string(kRankVariable) + "=" + std::to_string(rank) +
                                      " GRAFT_TEST_SIZE=" + std::to_string(size) +
                                      " GRAFT_TEST_GROUP=" + digits + " " + kRerun;
      statuses[rank] = run_in_environment(name, environment, &said[rank]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (outputs != nullptr) *outputs = said;
  return statuses;
}

inline testing::AssertionResult says(const std::string& part) {
  const std::string text = last_message();
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "expected '" << part << "' in '" << text << "'";
}

}  // namespace graft::host_test

#endif  // GRAFT_TESTS_DRIVERS_HOST_HOST_RANKS_H_

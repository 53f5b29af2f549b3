// tests/drivers/trace/layer_test.cpp: what the trace layer finds, and what it leaves as it is.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/drivers/driver_session.h"
#include "tests/drivers/trace/traced_driver.h"

namespace graft::driver_test {
namespace {

const std::string kHost = std::string(GRAFT_TEST_DRIVER_DIR) + "/graft_host.so";
const std::string kKernel =
    "#include <stdint.h>\ntypedef union { void* address; uint64_t bits; } argument;\n"
    "void set(const argument* a, uint64_t begin, uint64_t end) {\n"
    "  for (uint64_t i = begin; i < end; ++i) ((int*)a[0].address)[i] = (int)a[1].bits;\n}\n";

void sleep_a_little(void*) { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }

// A caller that breaks a rule. In strict mode the driver never sees the call.
TEST(TraceLayer, FindsWhatACallerMisuses) {
  TracedDriver traced(fresh_query(kHost), "strict=1");
  const graft_driver_table& t = traced.table;
  DriverSession session(t, 0);
  const graft_device d = session.device;
  const graft_stream s = session.stream;
  const graft_address a = session.allocate(4096);
  const graft_event untimed = session.new_event();
  const uint32_t word = 1;
  graft_stream gone = nullptr, none = nullptr;
  graft_device again = nullptr;
  graft_address out = 0;
  int64_t ns = 0;
  ASSERT_EQ(t.stream_create(d, 0, &gone), GRAFT_OK);
  ASSERT_EQ(t.stream_destroy(gone), GRAFT_OK);
  const graft_kernel kernel = session.kernel_of(kKernel, "set");
  const auto launch = [&](graft_kernel which, uint64_t grid, uint32_t group, uint64_t bytes) {
    return session.launch_groups(which, grid, group, {address(a, bytes), int32(1)}, 0);
  };
  const struct {
    const char* rule;
    std::function<graft_status()> misuse;
  } kRows[] = {
      {"not-allocated", [&] { return t.memory_free(d, a + 64); }},
      {"no-memory", [&] { return t.fill(s, 64, 4, &word, 4, 0); }},
      {"past-end", [&] { return t.fill(s, a + 4000, 200, &word, 4, 0); }},
      {"pattern-bytes", [&] { return t.fill(s, a, 6, &word, 3, 0); }},
      {"overlapping-copy", [&] { return t.copy(s, a, a + 8, 16, GRAFT_DEVICE_TO_DEVICE, 0); }},
      {"null-host", [&] { return t.copy(s, a, 0, 16, GRAFT_HOST_TO_DEVICE, 0); }},
      {"copy-kind", [&] { return t.copy(s, a, a, 16, 9, 0); }},
      {"dead-stream", [&] { return t.stream_synchronize(gone); }},
      {"priority", [&] { return t.stream_create(d, 1000, &none); }},
      {"no-bytes", [&] { return t.memory_allocate(d, 0, &out); }},
      {"open-twice", [&] { return t.device_open(0, &again); }},
      {"left-behind", [&] { return t.device_close(d); }},
      {"untimed", [&] { return t.event_elapsed(untimed, untimed, &ns); }},
      {"dead-event", [&] { return t.event_query(reinterpret_cast<graft_event>(8)); }},
      {"dead-kernel", [&] { return launch(reinterpret_cast<graft_kernel>(8), 1, 1, 4); }},
      {"group-size", [&] { return launch(kernel, 1, 2, 4); }},
      {"empty-grid", [&] { return launch(kernel, 0, 1, 4); }},
      {"past-end", [&] { return launch(kernel, 1, 1, 9999); }},
      {"dead-program", [&] { return t.program_unload(reinterpret_cast<graft_program>(8)); }},
  };
  for (const auto& row : kRows) {
    const uint64_t before = traced.count(GRAFT_TRACE_CALLER);
    EXPECT_NE(row.misuse(), GRAFT_OK) << row.rule;
    EXPECT_GT(traced.count(GRAFT_TRACE_CALLER), before) << row.rule;
    EXPECT_NE(traced.rules().find(row.rule), std::string::npos) << row.rule << traced.report();
    EXPECT_NE(last_message(t).find(row.rule), std::string::npos) << last_message(t);
  }
  EXPECT_EQ(traced.count(GRAFT_TRACE_DRIVER), 0u) << traced.report();
}

// In strict mode the driver sees neither call.
TEST(TraceLayer, FindsFreesOfMemoryInUseAndTwoThreads) {
  TracedDriver traced(fresh_query(kHost), "strict=1");
  const graft_driver_table& t = traced.table;
  DriverSession session(t, 0);
  graft_address a = 0;
  const uint32_t word = 1;
  ASSERT_EQ(t.memory_allocate(session.device, 4096, &a), GRAFT_OK);
  t.host_callback(session.stream, sleep_a_little, nullptr);
  t.fill(session.stream, a, 4096, &word, 4, 0);
  std::thread other([&] { t.stream_synchronize(session.stream); });
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(t.stream_query(session.stream), GRAFT_INVALID_ARGUMENT);
  other.join();
  EXPECT_EQ(traced.rules(), "two-threads");
  t.host_callback(session.stream, sleep_a_little, nullptr);
  t.fill(session.stream, a, 4096, &word, 4, 0);
  const graft_event mark = session.new_event();
  t.event_record(mark, session.stream);
  EXPECT_EQ(t.memory_free(session.device, a), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(traced.rules(), "two-threads freed-in-use");
  t.event_synchronize(mark);
  EXPECT_EQ(t.memory_free(session.device, a), GRAFT_OK);
  EXPECT_EQ(traced.rules(), "two-threads freed-in-use");
  EXPECT_EQ(traced.count(GRAFT_TRACE_DRIVER), 0u) << traced.report();
}

TEST(TraceLayer, SeveralThreadsOnTheirStreamsAreNoFinding) {
  TracedDriver traced(fresh_query(kHost), "1");
  const graft_driver_table& t = traced.table;
  DriverSession session(t, 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    const graft_stream stream = session.new_stream();
    threads.emplace_back([&t, &session, stream] {
      for (int round = 0; round < 60; ++round) {
        graft_address a = 0;
        graft_event mark = nullptr;
        const uint64_t word = round;
        ASSERT_EQ(t.memory_allocate(session.device, 4096, &a), GRAFT_OK);
        ASSERT_EQ(t.event_create(session.device, 0, &mark), GRAFT_OK);
        ASSERT_EQ(t.fill(stream, a, 4096, &word, 8, 0), GRAFT_OK);
        ASSERT_EQ(t.event_record(mark, stream), GRAFT_OK);
        while (t.event_query(mark) == GRAFT_BUSY) std::this_thread::yield();
        ASSERT_EQ(t.event_destroy(mark), GRAFT_OK);
        ASSERT_EQ(t.memory_free(session.device, a), GRAFT_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(traced.rules(), "") << traced.report();
}

TEST(TraceLayer, PlantsFaults) {
  TracedDriver traced(fresh_query(kHost),
                      "probe=0,fail=memory_allocate:2:OUT_OF_MEMORY,late=fill:2:TIMEOUT,"
                      "drop=copy:1,delay=event_query:1:20ms");
  const graft_driver_table& t = traced.table;
  DriverSession session(t, 0);
  const graft_address a = session.allocate(64);
  graft_address none = 0;
  EXPECT_EQ(t.memory_allocate(session.device, 64, &none), GRAFT_OUT_OF_MEMORY);
  EXPECT_EQ(none, 0u);
  EXPECT_NE(last_message(t).find("planted fault of memory_allocate"), std::string::npos);
  const uint32_t one = 1, two = 2, three = 3;
  EXPECT_EQ(t.fill(session.stream, a, 64, &one, 4, 11), GRAFT_OK);
  EXPECT_EQ(
      t.copy(session.stream, a, reinterpret_cast<uint64_t>(&three), 4, GRAFT_HOST_TO_DEVICE, 0),
      GRAFT_OK);
  EXPECT_EQ(t.fill(session.stream, a, 64, &two, 4, 12), GRAFT_OK);
  EXPECT_EQ(t.stream_synchronize(session.stream), GRAFT_TIMEOUT);
  uint32_t tag = 0;
  char text[200] = "";
  EXPECT_EQ(t.stream_error(session.stream, &tag, text, sizeof text), GRAFT_OK);
  EXPECT_EQ(tag, 12u);
  EXPECT_NE(std::string(text).find("planted fault of fill"), std::string::npos) << text;
  EXPECT_EQ(t.stream_synchronize(session.stream), GRAFT_OK);
  EXPECT_EQ(session.get(a, 1), std::vector<int>{1});
  const auto begin = std::chrono::steady_clock::now();
  t.event_query(session.new_event());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(20));
  EXPECT_EQ(traced.rules(), "") << traced.report();
}

TEST(TraceLayer, ASeedGivesTheSameFaults) {
  const auto struck = [](const std::string& seed) {
    TracedDriver traced(fresh_query(kHost), "fail=event_create:0.4,seed=" + seed);
    DriverSession session(traced.table, 0);
    std::string all;
    for (int i = 0; i < 40; ++i) {
      graft_event event = nullptr;
      const bool made = traced.table.event_create(session.device, 0, &event) == GRAFT_OK;
      if (made) traced.table.event_destroy(event);
      all += made ? '.' : 'x';
    }
    return all;
  };
  EXPECT_EQ(struck("5"), struck("5"));
  EXPECT_NE(struck("5"), struck("6"));
  EXPECT_NE(struck("5").find('x'), std::string::npos);
}

TEST(TraceLayer, SaysWhatIsWrongWithSettings) {
  const struct {
    const char *settings, *says;
  } kRows[] = {{"fast=1", "'fast=1': is unknown; the settings are log"},
               {"log", "'log' is no KEY=VALUE"},
               {"verify=2", "write a share from 0 to 1"},
               {"fail=walk:1", "'walk' is no slot"},
               {"fail=copy:x", "'x' is no call"},
               {"fail=copy:1:BAD", "'BAD' is no status"},
               {"delay=copy:1:5", "a time such as 5ms"},
               {"serial=1,rules=0", "serial and results need rules=1"},
               {"results=/nowhere/x", "cannot write '/nowhere/x.host."},
               {"log=/nowhere/x.json", "cannot write '/nowhere/x.host."}};
  for (const auto& row : kRows) {
    const TracedDriver traced(fresh_query(kHost), row.settings);
    EXPECT_EQ(traced.status, GRAFT_INVALID_ARGUMENT) << row.settings;
    EXPECT_NE(traced.text.find(row.says), std::string::npos) << traced.text;
  }
}

// What Graft refuses comes through unchanged, so that it refuses it in the same words.
TEST(TraceLayer, LeavesDamagedTablesAsTheyAre) {
  static std::function<graft_status(graft_driver_table*)> answer;
  const auto query = +[](graft_driver_table* table) { return answer(table); };
  const std::vector<std::function<graft_status(graft_driver_table*)>> rows = {
      [](graft_driver_table*) { return GRAFT_VERSION_MISMATCH; },
      [](graft_driver_table*) { return GRAFT_OK; },  // no name
      [](graft_driver_table* table) {
        table->name = "x";
        table->slot_count = 1000;
        return GRAFT_OK;
      },
      [](graft_driver_table* table) {
        table->name = "x";
        table->abi_major = 7;
        return GRAFT_OK;
      },
      [](graft_driver_table* table) {
        table->name = "a name of more than thirty-two letters, which Graft refuses";
        return GRAFT_OK;
      }};
  for (const auto& row : rows) {
    answer = row;
    const TracedDriver traced(query, "1");
    graft_driver_table plain{};
    plain.abi_major = GRAFT_ABI_MAJOR;
    plain.abi_minor = GRAFT_ABI_MINOR;
    plain.slot_count = GRAFT_SLOT_COUNT;
    EXPECT_EQ(traced.status, query(&plain));
    EXPECT_EQ(std::memcmp(&plain, &traced.table, sizeof plain), 0);
  }
}

}  // namespace
}  // namespace graft::driver_test

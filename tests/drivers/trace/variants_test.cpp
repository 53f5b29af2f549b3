// tests/drivers/trace/variants_test.cpp: the trace layer finds each planted bug of variants.cpp,
// and nothing in drivers that are unusual and right.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "graft/extensions.h"
#include "tests/drivers/driver_session.h"
#include "tests/drivers/host/driver.h"
#include "tests/drivers/trace/traced_driver.h"

namespace graft::driver_test {
namespace {

const std::string kVariants = std::string(GRAFT_TEST_BINARY_DIR) + "/tests/graft_variants.so";
const std::string kKernel =
    "#include <stdint.h>\ntypedef union { void* address; uint64_t bits; } argument;\n"
    "void set(const argument* a, uint64_t begin, uint64_t end) {\n"
    "  for (uint64_t i = begin; i < end; ++i) ((int*)a[0].address)[i] = (int)a[1].bits;\n}\n";

// Milliseconds. A stream that a driver dropped may still read it.
std::atomic<int> a_little{30};
void sleep_a_little(void*) { std::this_thread::sleep_for(std::chrono::milliseconds(a_little)); }

// The kernel set, of a program that is compiled once.
graft_kernel find_kernel(const DriverSession& session, const graft_driver_table& driver,
                         graft_program* out_program) {
  static std::string blob;
  graft_kernel kernel = nullptr;
  if (blob.empty()) {
    EXPECT_EQ(session.compile(kKernel, &blob), GRAFT_OK) << last_message(driver);
  }
  EXPECT_EQ(driver.program_load(session.device, blob.data(), blob.size(), out_program), GRAFT_OK);
  EXPECT_EQ(driver.kernel_find(session.device, *out_program, "set", &kernel), GRAFT_OK);
  return kernel;
}

// Rows, long copies to pinned memory, copies of nothing.
void copy_in_parts(const graft_driver_table& driver, DriverSession& session) {
  constexpr uint64_t kBytes = 1 << 20;
  const graft_address wide = session.allocate(kBytes);
  const std::vector<uint8_t> rows(200 * 20, 7);
  graft_strided_copy copy{};
  copy.struct_size = sizeof copy;
  copy.kind = GRAFT_HOST_TO_DEVICE;
  copy.to = wide;
  copy.from = reinterpret_cast<uint64_t>(rows.data());
  copy.row_bytes = 100;
  for (uint64_t& count : copy.counts) count = 1;
  copy.counts[0] = 19;
  copy.to_strides[0] = 256;
  copy.from_strides[0] = 200;
  driver.stream_synchronize(session.stream);
  if (driver.copy_strided != nullptr) driver.copy_strided(session.stream, &copy, 8);
  driver.copy(session.stream, wide, copy.from, 0, GRAFT_HOST_TO_DEVICE, 9);
  driver.stream_synchronize(session.stream);
  driver.stream_synchronize(session.stream);
  if (driver.host_allocate == nullptr) return;
  void* block = nullptr;
  if (driver.host_allocate(session.device, kBytes, &block) != GRAFT_OK) return;
  const graft_event mark = session.new_event();
  for (int i = 0; i < 4; ++i) {
    driver.copy(session.stream, reinterpret_cast<uint64_t>(block), wide, kBytes,
                GRAFT_DEVICE_TO_HOST, 10);
    driver.event_record(mark, session.stream);
    while (driver.event_query(mark) == GRAFT_BUSY) std::this_thread::yield();
    driver.stream_synchronize(session.stream);
  }
  driver.host_free(session.device, block);
}

void take_records(void*, const graft_trace_event*, uint64_t) {}

// Functions behind one another, and commands that the profiler tells of.
void call_back_and_trace(const graft_driver_table& driver, DriverSession& session,
                         graft_address memory) {
  if (driver.host_callback != nullptr) {
    for (int i = 0; i < 3; ++i) {
      driver.host_callback(session.stream, sleep_a_little, nullptr);
    }
    driver.stream_synchronize(session.stream);
  }
  const void* table = nullptr;
  if (driver.extension == nullptr || driver.extension("graft.profiler", 1, &table) != GRAFT_OK) {
    return;
  }
  const auto& profiler = *static_cast<const graft_profiler_table*>(table);
  if (profiler.trace_start(session.device, take_records, nullptr) != GRAFT_OK) return;
  const uint32_t ones = 0x01010101;
  for (int i = 0; i < 20; ++i) driver.fill(session.stream, memory, 64, &ones, 4, 12);
  driver.stream_synchronize(session.stream);
  profiler.trace_stop(session.device);
}

// Two threads ask for more memory than there is.
void ask_for_too_much(const graft_driver_table& driver, DriverSession& session) {
  uint64_t free = 0, total = 0;
  graft_address none = 0;
  if (driver.memory_info != nullptr) driver.memory_info(session.device, &free, &total);
  const auto ask = [&](uint64_t bytes) {
    if (driver.memory_allocate(session.device, bytes, &none) != GRAFT_OK) return;
    driver.memory_free(session.device, none);
  };
  ask(uint64_t{1} << 60);
  std::thread([&] { ask(uint64_t{1} << 61); }).join();
  const graft_address more = session.allocate(1 << 16);
  if (driver.memory_info != nullptr) driver.memory_info(session.device, &free, &total);
  const uint32_t ones = 1;
  driver.fill(session.stream, more, 4, &ones, 4, 11);
}

// Memory, events and waits beside the queue: pinned blocks, an event of another stream, a second
// thread that waits.
void work_aside(const graft_driver_table& driver, DriverSession& session, graft_stream other,
                graft_address memory) {
  std::vector<void*> pinned;
  for (int i = 0; i < 3 && driver.host_allocate != nullptr; ++i) {
    void* block = nullptr;
    if (driver.host_allocate(session.device, 4096, &block) == GRAFT_OK) pinned.push_back(block);
  }
  int inside = 0;
  driver.copy(session.stream, reinterpret_cast<uint64_t>(&inside), memory + 4, 4,
              GRAFT_DEVICE_TO_HOST, 0);
  const graft_event start = session.new_event(true), end = session.new_event(true);
  driver.event_record(start, other);
  driver.stream_synchronize(other);
  sleep_a_little(nullptr);
  if (driver.host_callback != nullptr) driver.host_callback(other, sleep_a_little, nullptr);
  const uint32_t ones = 0x01010101;
  driver.fill(other, memory, 20000, &ones, 4, 6);
  driver.event_record(end, other);
  if (driver.stream_query != nullptr) driver.stream_query(other);
  driver.stream_synchronize(other);
  int64_t elapsed = 0;
  if (driver.event_elapsed != nullptr) driver.event_elapsed(start, end, &elapsed);
  if (driver.host_callback != nullptr) {
    driver.host_callback(session.stream, sleep_a_little, nullptr);
  }
  driver.fill(session.stream, memory, 20000, &ones, 4, 7);
  std::thread([&] { driver.stream_synchronize(session.stream); }).join();
  for (void* const block : pinned) driver.host_free(session.device, block);
}

void wait(const graft_driver_table& driver, graft_stream stream) {
  uint32_t tag = 0;
  char text[256] = "";
  const bool failed = driver.stream_synchronize(stream) != GRAFT_OK;
  if (failed && driver.stream_error != nullptr)
    driver.stream_error(stream, &tag, text, sizeof text);
}

// One round of commands, marks and waits of two streams.
void work_a_round(const graft_driver_table& driver, DriverSession& session, graft_stream other,
                  graft_event mark, graft_address a, graft_address b, bool asks_mark) {
  const uint32_t ones = 0x01010101;
  driver.fill(session.stream, b, 20000, &ones, 4, 2);
  driver.copy(session.stream, b, a, 20000, GRAFT_DEVICE_TO_DEVICE, 3);
  EXPECT_EQ(driver.event_record(mark, session.stream), GRAFT_OK);
  if (driver.stream_wait_event != nullptr) {
    EXPECT_EQ(driver.stream_wait_event(other, mark), GRAFT_OK);
  }
  driver.fill(other, b, 4, &ones, 4, 4);
  for (int asked = 0; asks_mark && driver.event_query(mark) == GRAFT_BUSY && asked < 20000;
       ++asked) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  wait(driver, other);
  wait(driver, session.stream);
  graft_address passing = 0;
  if (driver.memory_allocate(session.device, 4096, &passing) == GRAFT_OK) {
    driver.memory_free(session.device, passing);
  }
}

// A program's traffic on one device: copies, launches, marks, waits, memory that comes and goes.
void work_a_while(const graft_driver_table& driver, uint32_t ordinal, bool by_kernels) {
  DriverSession session(driver, ordinal);
  const graft_stream other = session.new_stream();
  graft_program program = nullptr;
  const graft_kernel kernel = by_kernels ? find_kernel(session, driver, &program) : nullptr;
  const graft_address a = session.put(std::vector<int>(5000, 0x07070707)),
                      b = session.allocate(20000);
  const graft_event again = session.new_event();
  for (int round = 0; round < 12; ++round) {
    if (driver.host_callback != nullptr && round % 4 == 3) {
      EXPECT_EQ(driver.host_callback(session.stream, sleep_a_little, nullptr), GRAFT_OK);
    }
    if (kernel != nullptr) {
      session.launch_groups(kernel, 5000, 1, {address(a, 20000), int32(round)}, 1);
    }
    work_a_round(driver, session, other, round < 8 ? session.new_event() : again, a, b, round != 7);
  }
  work_aside(driver, session, other, a);
  copy_in_parts(driver, session);
  call_back_and_trace(driver, session, b);
  ask_for_too_much(driver, session);
  if (program != nullptr) {
    EXPECT_EQ(driver.program_unload(program), GRAFT_OK);
  }
  graft_stream brief = nullptr;
  ASSERT_EQ(driver.stream_create(session.device, 0, &brief), GRAFT_OK);
  if (driver.host_callback != nullptr) driver.host_callback(brief, sleep_a_little, nullptr);
  const uint32_t ones = 0x01010101;
  driver.fill(brief, b, 4, &ones, 4, 5);
  driver.stream_destroy(brief);
}

void copy_between_devices(const graft_driver_table& driver) {
  DriverSession from(driver, 0), to(driver, 1);
  const graft_address origin = from.put(std::vector<int>(5000, 3)), goal = to.allocate(20000);
  driver.peer_copy(to.stream, goal, from.device, origin, 20000, 6);
  driver.stream_synchronize(to.stream);
}

// On up to two devices.
void work_on_all(const graft_driver_table& driver, bool by_kernels) {
  uint32_t devices = 0;
  ASSERT_EQ(driver.device_count(&devices), GRAFT_OK);
  for (uint32_t i = 0; i < std::min(devices, 2u); ++i) work_a_while(driver, i, by_kernels);
  if (devices > 1 && driver.peer_copy != nullptr) copy_between_devices(driver);
}

std::vector<std::string> variants(bool with_bug) {
  std::vector<std::string> names;
  void* const library = dlopen(kVariants.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return names;
  const auto row =
      reinterpret_cast<const char* (*)(uint32_t, const char**)>(dlsym(library, "graft_variant"));
  const char* rule = nullptr;
  for (uint32_t i = 0; row(i, &rule) != nullptr; ++i) {
    if ((*rule != '\0') != with_bug) continue;
    const char* const name = row(i, &rule);
    names.push_back(with_bug ? std::string(name) + ":" + rule : name);
  }
  return names;
}

// labels: one_preset
TEST(TraceVariants, FindsNothingInUnusualDrivers) {
  const std::vector<std::string> names = variants(false);
  EXPECT_GE(names.size(), 11u);
  a_little = 10;
  for (const std::string& name : names) {
    for (const char* settings : {"1", "verify=1"}) {
      setenv("GRAFT_VARIANT", name.c_str(), 1);
      TracedDriver traced(fresh_query(kVariants), settings);
      ASSERT_EQ(traced.status, GRAFT_OK) << name << traced.text;
      work_on_all(traced.table, traced.table.kernel_launch != nullptr);
      traced.finish();
      EXPECT_EQ(traced.rules(), "") << name << "\n" << traced.report();
    }
  }
  unsetenv("GRAFT_HOST_DEVICES");
  unsetenv("GRAFT_VARIANT");
}

constexpr char kBetweenDevices[] = "copies_peers_aside";
constexpr char kByComparison[] = ":-";  // test_twice.py finds them

// The report of a traced variant's work, empty if its rules have the expected one.
std::string missing(const std::string& rule, const char* settings, bool launches) {
  TracedDriver traced(fresh_query(kVariants), settings);
  EXPECT_EQ(traced.status, GRAFT_OK) << traced.text;
  if (traced.status != GRAFT_OK) return traced.text;
  work_on_all(traced.table, launches);
  traced.finish();
  EXPECT_EQ(traced.count(GRAFT_TRACE_CALLER), 0u) << traced.report();
  const bool found = (" " + traced.rules() + " ").find(" " + rule + " ") != std::string::npos;
  return found ? "" : "no finding\n" + traced.report();
}

// row: "name:rule". Some bugs show only while work waits, which on a busy machine takes longer.
void find_bug(const std::string& row) {
  const std::string name = row.substr(0, row.find(':')), rule = row.substr(row.find(':') + 1);
  setenv("GRAFT_VARIANT", name.c_str(), 1);
  const bool verified = rule == "wrong-bytes" && name != "shares_staging";
  const bool launches = name == "keeps_arguments" || name == "lazy_blobs";
  std::string report;
  for (const int wait : {30, 120, 480}) {
    a_little = wait;
    report = missing(rule, verified ? "verify=1" : "1", launches);
    if (report.empty()) break;
  }
  EXPECT_EQ(report, "") << name;
}

// labels: one_preset
TEST(TraceVariants, FindsBugsThatNeedTraffic) {
  const std::vector<std::string> rows = variants(true);
  EXPECT_GE(rows.size(), 5u);
  for (const std::string& row : rows) {
    if (!row.starts_with(kBetweenDevices) && !row.ends_with(kByComparison)) find_bug(row);
  }
}

TEST(TraceVariants, FindsBugsBetweenDevices) {
  if (host_test::reran({"GRAFT_HOST_DEVICES=2"})) return;
  for (const std::string& row : variants(true)) {
    if (row.starts_with(kBetweenDevices)) find_bug(row);
  }
}

}  // namespace
}  // namespace graft::driver_test

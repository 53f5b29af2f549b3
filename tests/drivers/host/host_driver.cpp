// tests/drivers/host/host_driver.cpp: loads the host driver for all its tests; what they share.
#include "host_driver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace graft::host_test {

const graft_driver_table& driver() {
  static const graft_driver_table table = [] {
    graft_driver_table filled = {};
    filled.abi_major = GRAFT_ABI_MAJOR;
    filled.abi_minor = GRAFT_ABI_MINOR;
    filled.slot_count = GRAFT_SLOT_COUNT;
    void* handle = dlopen(GRAFT_TEST_DRIVER_DIR "/graft_host.so", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::abort();
    }
    auto query = reinterpret_cast<graft_driver_query_function>(dlsym(handle, "graft_driver_query"));
    if (query == nullptr || query(&filled) != GRAFT_OK) std::abort();
    return filled;
  }();
  return table;
}

Session::Session(uint32_t ordinal) {
  EXPECT_EQ(driver().device_open(ordinal, &device), GRAFT_OK) << last_message();
  stream = new_stream();
}

Session::~Session() {
  for (graft_stream each : streams_) driver().stream_destroy(each);
  for (graft_program each : programs_) driver().program_unload(each);
  for (graft_address each : allocations_) driver().memory_free(device, each);
  driver().device_close(device);
}

graft_address Session::allocate(uint64_t bytes) {
  graft_address result = 0;
  EXPECT_EQ(driver().memory_allocate(device, bytes, &result), GRAFT_OK) << last_message();
  if (result != 0) allocations_.push_back(result);
  return result;
}

graft_stream Session::new_stream() {
  graft_stream result = nullptr;
  EXPECT_EQ(driver().stream_create(device, 0, &result), GRAFT_OK) << last_message();
  if (result != nullptr) streams_.push_back(result);
  return result;
}

graft_kernel Session::kernel(const std::string& source, const char* name) {
  std::string blob;
  graft_sink sink = {&blob, [](void* context, const void* data, size_t bytes) {
                       static_cast<std::string*>(context)->append(static_cast<const char*>(data),
                                                                  bytes);
                     }};
  EXPECT_EQ(driver().program_compile(device, source.data(), source.size(), "", sink), GRAFT_OK)
      << last_message();
  graft_program program = nullptr;
  EXPECT_EQ(driver().program_load(device, blob.data(), blob.size(), &program), GRAFT_OK)
      << last_message();
  if (program == nullptr) return nullptr;
  programs_.push_back(program);
  graft_kernel result = nullptr;
  EXPECT_EQ(driver().kernel_find(device, program, name, &result), GRAFT_OK) << last_message();
  return result;
}

graft_status Session::launch(graft_kernel kernel, uint64_t grid,
                             std::vector<graft_argument> arguments, uint32_t tag) {
  graft_launch launch = {};
  launch.struct_size = sizeof launch;
  launch.tag = tag;
  launch.grid[0] = grid;
  launch.grid[1] = launch.grid[2] = 1;
  launch.group[0] = launch.group[1] = launch.group[2] = 1;
  launch.argument_count = uint32_t(arguments.size());
  launch.arguments = arguments.data();
  return driver().kernel_launch(stream, kernel, &launch);
}

graft_status Session::upload(graft_address to, const void* from, uint64_t bytes) {
  return driver().copy(stream, to, reinterpret_cast<uint64_t>(from), bytes, GRAFT_HOST_TO_DEVICE,
                       0);
}

graft_status Session::download(void* to, graft_address from, uint64_t bytes) {
  graft_status status =
      driver().copy(stream, reinterpret_cast<uint64_t>(to), from, bytes, GRAFT_DEVICE_TO_HOST, 0);
  return status != GRAFT_OK ? status : driver().stream_synchronize(stream);
}

std::vector<float> Data::values(uint64_t count) {
  std::vector<float> result(count);
  for (float& x : result) x = float(int(random_() % 17) - 8) / 8;
  return result;
}

graft_address Data::put(const std::vector<float>& x) {
  graft_address address = session_.allocate(x.size() * 4);
  EXPECT_EQ(session_.upload(address, x.data(), x.size() * 4), GRAFT_OK);
  return address;
}

graft_argument address(graft_address value, uint64_t bytes) {
  return {GRAFT_ARGUMENT_ADDRESS, 0, GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE, 0, value, bytes};
}

graft_argument scalar_u64(uint64_t value) {
  return {GRAFT_ARGUMENT_SCALAR, GRAFT_INT64, 0, 0, value, 8};
}

std::string last_message() {
  char text[4096] = "";
  driver().last_message(text, sizeof text);
  return text;
}

int run_in_environment(const std::string& filter, const std::string& environment,
                       std::string* output) {
  char self[4096] = "";
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return -1;
  std::string command =
      "env " + environment + " '" + self + "' --gtest_filter='" + filter + "' 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  for (int c; (c = std::fgetc(pipe)) != EOF;) text.push_back(char(c));
  int status = pclose(pipe);
  if (text.find("Running 0 tests") != std::string::npos) status = 1;
  if (output != nullptr) *output = text;
  if (status != 0 && output == nullptr) std::fprintf(stderr, "%s", text.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool is_rerun() { return std::getenv("GRAFT_TEST_RERUN") != nullptr; }

bool reran(const std::vector<std::string>& environments) {
  if (is_rerun()) return false;
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(test->test_suite_name()) + "." + test->name();
  for (const std::string& environment : environments) {
    EXPECT_EQ(run_in_environment(name, environment + " " + kRerun), 0) << environment;
  }
  return true;
}

}  // namespace graft::host_test

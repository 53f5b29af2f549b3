// tests/drivers/host/driver.cpp: loads the host driver for all its tests; what they share.
#include "driver.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace graft::host_test {

const graft_driver_table& driver() {
  static const graft_driver_table table =
      driver_test::loaded(GRAFT_TEST_DRIVER_DIR "/graft_host.so");
  return table;
}

Session::Session(uint32_t ordinal) : driver_test::DriverSession(driver(), ordinal) {}

graft_kernel Session::kernel(const std::string& source, const char* name) {
  return kernel_of(source, name);
}

graft_status Session::launch(graft_kernel kernel, uint64_t grid,
                             const std::vector<graft_argument>& arguments, uint32_t tag) {
  return launch_groups(kernel, grid, 1, arguments, tag);
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

graft_argument scalar_u64(uint64_t value) { return driver_test::int64(value); }

std::string last_message() { return driver_test::last_message(driver()); }

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

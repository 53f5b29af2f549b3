// tests/drivers/veda/check_test.cpp: graft-driver-check on the emulated libveda in both modes.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "driver.h"

namespace graft::veda_test {
namespace {

class VedaCheck : public testing::TestWithParam<const char*> {};

TEST_P(VedaCheck, Passes) {
  const std::string settings =
      emulated("DEVICES=2 KEEP_FAILED=0 MEMORY=256M", std::string("GRAFT_VE_MODE=") + GetParam());
  const std::string command =
      "env " + settings +
      " " GRAFT_TEST_BINARY_DIR
      "/bin/graft-driver-check --timeout 120 --late-error "
      "EMULATED_VEDA_FAIL=MemcpyHtoDAsync:2:VEO_COMMAND_ERROR " GRAFT_TEST_DRIVER_DIR
      "/graft_veda.so 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string report;
  for (int c; (c = std::fgetc(pipe)) != EOF;) report.push_back(char(c));
  EXPECT_EQ(WEXITSTATUS(pclose(pipe)), 0) << report;
  EXPECT_NE(report.find(" 0 failed"), std::string::npos) << report;
#define GRAFT_EXPECT_OMITTED(name) \
  EXPECT_NE(report.find("omits " #name "\n"), std::string::npos) << report;
  // README.md says why.
  GRAFT_EXPECT_OMITTED(extension)
  GRAFT_EXPECT_OMITTED(stream_native_handle)
  GRAFT_EXPECT_OMITTED(host_allocate)
  GRAFT_EXPECT_OMITTED(host_free)
  GRAFT_EXPECT_OMITTED(memory_host_view)
  GRAFT_EXPECT_OMITTED(memory_export)
  GRAFT_EXPECT_OMITTED(memory_import)
  GRAFT_EXPECT_OMITTED(memory_release)
}

INSTANTIATE_TEST_SUITE_P(Modes, VedaCheck, testing::Values("omp", "scalar"),
                         [](const auto& row) { return std::string(row.param); });

}  // namespace
}  // namespace graft::veda_test

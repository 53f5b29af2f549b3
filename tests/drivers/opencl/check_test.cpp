// tests/drivers/opencl/check_test.cpp: graft-driver-check on every kind of memory; oclgrind beside.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "driver.h"
#include "tests/drivers/host/driver.h"

namespace graft::opencl_test {
namespace {

struct Outcome {
  int code = -1;
  std::string report;
};

Outcome run(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  for (int c; (c = std::fgetc(pipe)) != EOF;) outcome.report.push_back(char(c));
  outcome.code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

struct Row {
  const char* name;
  std::string environment;
  std::string copy;  // the command of the driver's uploads
};

class OpenclCheck : public testing::TestWithParam<Row> {};

TEST_P(OpenclCheck, Passes) {
  const Row& row = GetParam();
  const std::string plan = row.environment.substr(row.environment.find("GRAFT_FAKE_CL=") + 14);
  const Outcome outcome =
      run("env " + row.environment +
          " " GRAFT_TEST_BINARY_DIR "/bin/graft-driver-check --late-error GRAFT_FAKE_CL=" + plan +
          ",late:" + row.copy + ":2:-5 " GRAFT_TEST_DRIVER_DIR "/graft_opencl.so");
  EXPECT_EQ(outcome.code, 0) << outcome.report;
  EXPECT_NE(outcome.report.find(" 0 failed"), std::string::npos) << outcome.report;
}

// Address sanitizers mark every byte of an allocation, and a case allocates all of the memory.
std::string small(const std::string& plan) { return plan + ",memory:4294967296"; }

INSTANTIATE_TEST_SUITE_P(
    All, OpenclCheck,
    testing::Values(Row{"Fine", fake(small("version:3.0")), "clEnqueueSVMMemcpy"},
                    Row{"Coarse", fake(small("coarse_svm")), "clEnqueueSVMMemcpy"},
                    Row{"Buffers", fake(small("no_svm")), "clEnqueueWriteBuffer"},
                    Row{"Unified", fake(small("no_svm,usm")), "clEnqueueMemcpyINTEL"},
                    Row{"Address", fake(small("no_svm,address")), "clEnqueueWriteBuffer"},
                    Row{"Old", old_loader(small("version:1.2")), "clEnqueueWriteBuffer"}),
    [](const auto& row) { return std::string(row.param.name); });

// The address sanitizer wants to be the first library of a process, and so does oclgrind's.
constexpr char kSanitizer[] = "ASAN_OPTIONS=verify_asan_link_order=0:intercept_tls_get_addr=0 ";

// Runs tests of this binary under oclgrind, which sees every access of a kernel, and puts its own
// library before others under the name of a loader. Its log.
std::string oclgrind_says(const std::string& filter, const std::string& environment = "") {
  const std::string log =
      std::string(GRAFT_TEST_BINARY_DIR "/tests/oclgrind.") + std::to_string(getpid()) + ".log";
  char self[4096] = "";
  EXPECT_GT(readlink("/proc/self/exe", self, sizeof self - 1), 0);
  const Outcome outcome = run(
      std::string("env ") + kSanitizer + host_test::kRerun + " GRAFT_OPENCL_LIBRARY=libOpenCL.so " +
      environment + " oclgrind --data-races --uninitialized --log '" + log + "' '" + self +
      "' --gtest_also_run_disabled_tests --gtest_filter='" + filter + "'");
  EXPECT_EQ(outcome.code, 0) << "tools/setup installs oclgrind\n" << outcome.report;
  EXPECT_NE(outcome.report.find("[  PASSED  ]"), std::string::npos) << outcome.report;
  std::ifstream file(log);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::remove(log.c_str());
  return text;
}

TEST(OpenclGrind, FindsNothingInKernelsAndCopies) {
  EXPECT_EQ(oclgrind_says("OpenclKernel.Runs*:OpenclKernel.Takes*:OpenclKernel.Groups*:"
                          "OpenclKernel.ArgumentsFollow*:OpenclCopy.Parts*:OpenclCopy.Fills*"),
            "");
}

TEST(OpenclGrind, FindsWhatIsPlanted) {
  const std::string text = oclgrind_says("OpenclPlanted.*");
  EXPECT_NE(text.find("Invalid write of size 4"), std::string::npos) << text;
  EXPECT_NE(text.find("Write-write data race"), std::string::npos) << text;
}

// Run by oclgrind alone: a write behind an allocation, and two work-items that write one word.
TEST(OpenclPlanted, DISABLED_WrongAccesses) {
  Session s;
  const graft_address x = s.put({1, 2});
  EXPECT_EQ(s.launch(s.kernel("add_n"), 3, {address(x, 8), scalar(1)}), GRAFT_OK);
  const std::string race =
      "#ifdef GRAFT_MEMORY_OFFSETS\n"
      "__kernel void race(__global char* b, ulong o) {\n"
      "  __global int* x = (__global int*)(b + o);\n"
      "#else\n"
      "__kernel void race(__global int* x) {\n"
      "#endif\n"
      "  x[0] = (int)get_global_id(0);\n"
      "}\n";
  EXPECT_EQ(s.launch(s.kernel("race", race), 4, {address(x, 8)}), GRAFT_OK);
  EXPECT_EQ(driver().stream_synchronize(s.stream), GRAFT_OK);
}

}  // namespace
}  // namespace graft::opencl_test

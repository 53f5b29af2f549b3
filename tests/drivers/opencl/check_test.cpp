// tests/drivers/opencl/check_test.cpp: the OpenCL driver on PoCL passes graft-driver-check in each
// kind of memory.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>

namespace {

const std::filesystem::path kBinary = GRAFT_TEST_BINARY_DIR;
const std::filesystem::path kDriver =
    std::filesystem::path(GRAFT_TEST_DRIVER_DIR) / "graft_opencl.so";

struct Outcome {
  int code;
  std::string report;
};

// settings: variables of the environment, as a shell takes them.
Outcome check(const std::string& settings, const std::string& options) {
  const std::string command = settings + " " + (kBinary / "bin" / "graft-driver-check").string() +
                              options + " " + kDriver.string() + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  Outcome outcome{-1, ""};
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  while (size_t got = fread(buffer, 1, sizeof buffer, pipe)) outcome.report.append(buffer, got);
  outcome.code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

class OpenclDriver : public testing::TestWithParam<const char*> {};

TEST_P(OpenclDriver, PassesWithThisKindOfMemory) {
  const Outcome outcome =
      check("GRAFT_OPENCL_DEVICES=pocl GRAFT_OPENCL_MEMORY=" + std::string(GetParam()), "");
  EXPECT_EQ(outcome.code, 0) << outcome.report;
  EXPECT_NE(outcome.report.find("pass"), std::string::npos) << outcome.report;
  EXPECT_NE(outcome.report.find(" 0 failed"), std::string::npos) << outcome.report;
}

INSTANTIATE_TEST_SUITE_P(Memory, OpenclDriver, testing::Values("svm", "svm-coarse", "buffer"),
                         [](const auto& row) {
                           std::string name = row.param;
                           for (char& letter : name) letter = letter == '-' ? '_' : letter;
                           return name;
                         });

using OpenclSettings = OpenclDriver;

void expect_told(const std::string& settings, const std::string& text) {
  const Outcome outcome = check(settings, " --only 'properties make sense'");
  EXPECT_EQ(outcome.code, 1) << outcome.report;
  EXPECT_NE(outcome.report.find(text), std::string::npos) << outcome.report;
  EXPECT_EQ(outcome.report.find("CRASH"), std::string::npos) << outcome.report;
}

TEST_P(OpenclSettings, ThatCannotBeMetAreRefusedWithWhatThereIs) {
  expect_told("GRAFT_OPENCL_MEMORY=" + std::string(GetParam()), "svm-fine, svm-coarse, buffer");
}

INSTANTIATE_TEST_SUITE_P(Wrong, OpenclSettings, testing::Values("usm", "address", "nonsense"));

using OpenclMissing = OpenclDriver;

TEST_P(OpenclMissing, CountsNoDevices) {
  const Outcome outcome = check(GetParam(), " --only 'at least one is there'");
  EXPECT_EQ(outcome.code, 1) << outcome.report;
  EXPECT_NE(outcome.report.find("device_count is 0"), std::string::npos) << outcome.report;
}

INSTANTIATE_TEST_SUITE_P(Machine, OpenclMissing,
                         testing::Values("GRAFT_OPENCL_LIBRARY=/nowhere/libOpenCL.so",
                                         "GRAFT_OPENCL_LIBRARY=libm.so.6",
                                         "OCL_ICD_VENDORS=/nowhere"),
                         [](const auto& row) { return std::to_string(row.index); });

using OpenclNames = OpenclDriver;

TEST_P(OpenclNames, ThatMatchNothingAreRefused) {
  const Outcome outcome = check(GetParam(), " --only 'at least one is there'");
  EXPECT_EQ(outcome.code, 1) << outcome.report;
  EXPECT_NE(outcome.report.find("nosuch names none of the OpenCL devices: 0 "), std::string::npos)
      << outcome.report;
}

INSTANTIATE_TEST_SUITE_P(List, OpenclNames,
                         testing::Values("GRAFT_OPENCL_DEVICES=nosuch",
                                         "GRAFT_OPENCL_DEVICES=pocl,nosuch"),
                         [](const auto& row) { return std::to_string(row.index); });

}  // namespace

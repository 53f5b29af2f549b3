// tests/drivers/check_test.cpp: graft-driver-check passes sound drivers and finds each planted bug.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "graft/driver.h"

namespace {

namespace fs = std::filesystem;

const fs::path kBinary = GRAFT_TEST_BINARY_DIR;
const fs::path kDrivers = GRAFT_TEST_DRIVER_DIR;
// The host driver's way to let its second copy fail after it was queued.
const std::string kHostLateError = " --late-error GRAFT_HOST_FAULTS=copy:2";
// Collectives move megabytes, which took the thread sanitizer over 30 s on a busy machine.
const std::string kPatience = " --timeout 120";

struct Outcome {
  int code;
  std::string report;
};

Outcome check(const fs::path& driver, const std::string& options,
              const std::string& environment = "") {
  const std::string command = environment + (kBinary / "bin" / "graft-driver-check").string() +
                              options + " " + driver.string();
  FILE* pipe = popen(command.c_str(), "r");
  Outcome outcome{-1, ""};
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  while (size_t got = fread(buffer, 1, sizeof buffer, pipe)) outcome.report.append(buffer, got);
  outcome.code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

std::vector<fs::path> bug_drivers() {
  std::vector<fs::path> all;
  for (const auto& entry : fs::directory_iterator(kBinary / "tests" / "bugs")) {
    all.push_back(entry.path());
  }
  return all;
}

// labels: one_preset
TEST(DriverCheck, PassesTheHostDriver) {
  const Outcome outcome = check(kDrivers / "graft_host.so", kHostLateError + kPatience);
  EXPECT_EQ(outcome.code, 0) << outcome.report;
  // Every slot but the sensors is there. Left out are graft.programs, because the host's blobs are
  // what it loads, and graft.ops and graft.graph_compiler, because its kernels are Graft's. The
  // thread-sanitizer build has no compute library, whose eight cases are then left out, too.
  const bool library = fs::exists(kDrivers / "graft_host_onednn.so");
  const std::string totals = library ? "0 failed, 14 skipped" : "0 failed, 22 skipped";
  EXPECT_NE(outcome.report.find(totals), std::string::npos) << outcome.report;
}

// labels: one_preset
TEST(DriverCheck, PassesTheTinyDriver) {
  const Outcome outcome = check(kBinary / "tests" / "graft_tiny.so", "");
  EXPECT_EQ(outcome.code, 0) << outcome.report;
}

// The worked example of docs/drivers/collectives.md.
// labels: one_preset
TEST(DriverCheck, PassesAVendorsCollectives) {
  const Outcome outcome =
      check(kBinary / "tests" / "graft_vendor.so", " --only graft.collectives" + kPatience);
  EXPECT_EQ(outcome.code, 0) << outcome.report;
  EXPECT_NE(outcome.report.find("0 failed, 0 skipped"), std::string::npos) << outcome.report;
}

TEST(DriverCheck, ListsWhatTheNullDriverOmitsAndThatItComputesNothing) {
  const Outcome outcome = check(kDrivers / "graft_null.so", "");
  EXPECT_EQ(outcome.code, 1) << outcome.report;
#define GRAFT_EXPECT_REQUIRED(name)
#define GRAFT_EXPECT_OPTIONAL(name) \
  EXPECT_NE(outcome.report.find("omits " #name "\n"), std::string::npos) << outcome.report;
#define GRAFT_EXPECT(presence, name, parameters) GRAFT_EXPECT_##presence(name)
  GRAFT_DRIVER_SLOTS(GRAFT_EXPECT)
  for (const char* extension : {"graft.blas", "graft.collectives"}) {
    EXPECT_NE(outcome.report.find(std::string("omits ") + extension + "\n"), std::string::npos);
  }
  EXPECT_NE(outcome.report.find("FAIL"), std::string::npos) << outcome.report;
  EXPECT_EQ(outcome.report.find("CRASH"), std::string::npos) << outcome.report;
}

// A driver whose library computes products alone: Graft runs the epilogues itself.
// labels: one_preset
TEST(DriverCheck, PassesALibraryWithoutEpilogues) {
  if (!fs::exists(kDrivers / "graft_host_onednn.so")) return;  // the thread sanitizer has none
  const Outcome outcome =
      check(kBinary / "tests" / "graft_plain_blas.so", " --only graft.blas" + kPatience);
  EXPECT_EQ(outcome.code, 0) << outcome.report;
  EXPECT_NE(outcome.report.find("0 failed, 0 skipped"), std::string::npos) << outcome.report;
}

TEST(DriverCheck, SaysInOneLineWhatIsNoLibrary) {
  const fs::path text = fs::temp_directory_path() / ("graft_text_" + std::to_string(getpid()));
  std::ofstream(text) << "no library";
  const struct {
    fs::path path;
    std::string says;
  } kCases[] = {{"/nowhere/driver.so", "'/nowhere/driver.so' cannot be read: No such file"},
                {"nowhere.so", "'nowhere.so' cannot be read: No such file"},
                {kBinary, "is a folder"},
                {text, "is no library (ELF)"}};
  for (const auto& one : kCases) {
    const Outcome outcome = check(one.path, " 2>&1");
    EXPECT_EQ(outcome.code, 2) << one.path;
    EXPECT_NE(outcome.report.find(one.says), std::string::npos) << outcome.report;
    EXPECT_NE(outcome.report.find("Give the path"), std::string::npos) << outcome.report;
    EXPECT_EQ(std::count(outcome.report.begin(), outcome.report.end(), '\n'), 1) << outcome.report;
  }
  fs::remove(text);
  EXPECT_EQ(check("", "").code, 2);
}

class PlantedBug : public testing::TestWithParam<fs::path> {};

TEST_P(PlantedBug, IsFound) {
  void* library = dlopen(GetParam().c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  auto found_by = reinterpret_cast<const char* (*)()>(dlsym(library, "graft_bug_found_by"));
  ASSERT_NE(found_by, nullptr);
  const std::string name = found_by();
  const bool gpu = GetParam().stem().string().starts_with("gpu_");  // PoCL compiles for a while
  const Outcome outcome = check(
      GetParam(), kHostLateError + " --timeout " + (gpu ? "30" : "3") + " --only '" + name + "'",
      gpu ? "env GRAFT_OPENCL_CLASS=gpu GRAFT_OPENCL_DEVICES=pthread POCL_DEVICES=pthread " : "");
  EXPECT_EQ(outcome.code, 1) << outcome.report;
  EXPECT_NE(outcome.report.find(name), std::string::npos) << outcome.report;
  EXPECT_NE(outcome.report.find("0 passed, 1 failed, 0 skipped"), std::string::npos)
      << outcome.report;
}

INSTANTIATE_TEST_SUITE_P(All, PlantedBug, testing::ValuesIn(bug_drivers()),
                         [](const auto& row) { return row.param.stem().string(); });

TEST(PlantedBugs, AreAtLeastTwelve) { EXPECT_GE(bug_drivers().size(), 12u); }

}  // namespace

// tests/drivers/host/level_test.cpp: devices and compiled kernels of levels of x86-64.
#if defined(__x86_64__)  // compilers of other processors know no such levels
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "driver.h"

namespace graft::host_test {
namespace {

const char kSet[] =
    "typedef union { void* address; unsigned long bits; } argument;\n"
    "void set(const argument* a, unsigned long b, unsigned long e) { *(int*)a[0].address = 1; }\n";

std::string path_of(const std::string& level) {
  return testing::TempDir() + "/graft-level-" + level + "-" + std::to_string(getuid()) + ".blob";
}

std::string blob_of(const std::string& level) {
  std::ifstream file(path_of(level), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Writes the blobs of the three levels, each from a process that compiles for it.
void compile_all() {
  for (const std::string level : {"v2", "v3", "v4"}) {
    std::remove(path_of(level).c_str());
    ASSERT_EQ(run_in_environment("HostLevel.CompilesAndRunsNothing",
                                 "GRAFT_HOST_TARGET=" + level + " " + kRerun),
              0);
    ASSERT_EQ(blob_of(level).substr(0, 8), "grafth" + level);
  }
}

graft_status load(const Session& s, const std::string& blob, graft_program* out) {
  return driver().program_load(s.device, blob.data(), blob.size(), out);
}

// The level of this device, by the width of its vectors.
uint32_t width() {
  graft_device_properties properties = {};
  properties.struct_size = sizeof properties;
  EXPECT_EQ(driver().device_properties(0, &properties), GRAFT_OK);
  return properties.sub_group_size;
}

TEST(HostLevel, CompilesAndRunsNothing) {
  if (reran({"GRAFT_HOST_TARGET=v2", "GRAFT_HOST_TARGET=v3", "GRAFT_HOST_TARGET=v4",
             "GRAFT_HOST_TARGET=v2 GRAFT_HOST_ISA=v4"})) {
    return;
  }
  const std::string target = std::getenv("GRAFT_HOST_TARGET");
  Session s;
  std::string blob;
  ASSERT_EQ(s.compile(kSet, &blob), GRAFT_OK) << last_message();
  std::ofstream(path_of(target), std::ios::binary) << blob;
  const graft_address a = s.allocate(4);
  int value = 77;
  s.upload(a, &value, 4);
  const graft_kernel kernel = s.kernel(kSet, "set");
  for (const uint64_t grid : {1, 1000}) {
    EXPECT_EQ(s.launch(kernel, grid, {address(a, 4)}), GRAFT_OK);
  }
  EXPECT_EQ(s.download(&value, a, 4), GRAFT_OK);
  EXPECT_EQ(value, 77);
  graft_kernel packed = nullptr;
  EXPECT_EQ(driver().kernel_find(s.device, nullptr, "set", &packed), GRAFT_NOT_FOUND);
}

TEST(HostLevel, ABlobRunsOnEveryProcessorOfItsLevel) {
  if (!is_rerun()) {
    ASSERT_NO_FATAL_FAILURE(compile_all());
  }
  // Without one, only a blob that loads gives a kernel.
  if (reran({"GRAFT_CC=/no/such/compiler", "GRAFT_CC=/no/such/compiler GRAFT_HOST_ISA=v2"})) return;
  Session s;
  graft_program program = nullptr;
  ASSERT_EQ(load(s, blob_of("v2"), &program), GRAFT_OK) << last_message();
  graft_kernel kernel = nullptr;
  ASSERT_EQ(driver().kernel_find(s.device, program, "set", &kernel), GRAFT_OK);
  const graft_address a = s.allocate(4);
  int value = 77;
  s.upload(a, &value, 4);
  EXPECT_EQ(s.launch(kernel, 1, {address(a, 4)}), GRAFT_OK);
  EXPECT_EQ(s.download(&value, a, 4), GRAFT_OK);
  EXPECT_EQ(value, 1);
  driver().program_unload(program);
}

TEST(HostLevel, ABlobIsRefusedBelowItsLevel) {
  if (!is_rerun()) {
    ASSERT_NO_FATAL_FAILURE(compile_all());
  }
  if (reran({"GRAFT_HOST_ISA=v2"})) return;
  Session s;
  graft_program program = nullptr;
  for (const std::string level : {"v3", "v4"}) {
    EXPECT_EQ(load(s, blob_of(level), &program), GRAFT_INVALID_ARGUMENT);
    EXPECT_NE(last_message().find("x86-64-" + level), std::string::npos) << last_message();
    EXPECT_NE(last_message().find("x86-64-v2"), std::string::npos) << last_message();
    std::string claims = blob_of(level);
    claims.replace(0, 8, "grafthv2");
    EXPECT_EQ(load(s, claims, &program), GRAFT_INVALID_ARGUMENT) << "only the first bytes differ";
  }
  EXPECT_EQ(program, nullptr);
}

// What was compiled for this very processor may need more than the level.
TEST(HostLevel, ADeviceOfALevelRefusesThisProcessorsOwn) {
  const std::string path = path_of("own");
  if (!is_rerun()) {
    Session s;
    std::string blob;
    ASSERT_EQ(s.compile(kSet, &blob), GRAFT_OK) << last_message();
    std::ofstream(path, std::ios::binary) << blob;
    graft_program program = nullptr;
    ASSERT_EQ(load(s, blob, &program), GRAFT_OK);
    driver().program_unload(program);
  }
  if (reran({"GRAFT_HOST_ISA=v2"})) return;
  Session s;
  graft_program program = nullptr;
  EXPECT_EQ(load(s, blob_of("own"), &program), GRAFT_INVALID_ARGUMENT);
}

TEST(HostLevel, TheWidthIsThatOfTheLevel) {
  if (reran({"GRAFT_HOST_TARGET=v2", "GRAFT_HOST_TARGET=v3", "GRAFT_HOST_TARGET=v4",
             "GRAFT_HOST_TARGET=v2 GRAFT_HOST_ISA=v4", "GRAFT_HOST_ISA=v2"})) {
    return;
  }
  const char *isa = std::getenv("GRAFT_HOST_ISA"), *target = std::getenv("GRAFT_HOST_TARGET");
  const std::string level = isa != nullptr ? isa : target;
  EXPECT_EQ(width(), level == "v2" ? 4u : level == "v3" ? 8u : 16u);
}

TEST(HostLevel, TheFingerprintTellsLevelsApart) {
  std::vector<std::string> known;
  for (const std::string environment : {"GRAFT_HOST_ISA=", "GRAFT_HOST_TARGET=v2",
                                        "GRAFT_HOST_TARGET=v3", "GRAFT_HOST_TARGET=v4"}) {
    std::string output;
    EXPECT_EQ(run_in_environment("HostLevel.PrintsItsFingerprint",
                                 environment + " " + std::string(kRerun), &output),
              0);
    const size_t at = output.find("fingerprint: ");
    ASSERT_NE(at, std::string::npos) << output;
    const std::string line = output.substr(at, output.find('\n', at) - at);
    for (const std::string& other : known) EXPECT_NE(line, other);
    known.push_back(line);
  }
}

TEST(HostLevel, PrintsItsFingerprint) {
  Session s;
  std::string text;
  const auto append = [](void* context, const void* data, size_t bytes) {
    static_cast<std::string*>(context)->append(static_cast<const char*>(data), bytes);
  };
  ASSERT_EQ(driver().toolchain_fingerprint(s.device, {&text, append}), GRAFT_OK);
  std::printf("fingerprint: %s\n", text.c_str());
  EXPECT_NE(text, "");
}

TEST(HostLevel, SettingsThatGiveNoDeviceAreTold) {
  if (reran({"GRAFT_HOST_ISA=v9", "GRAFT_HOST_TARGET=v1",
             "GRAFT_HOST_ISA=v2 GRAFT_HOST_TARGET=v3"})) {
    return;
  }
  graft_device device = nullptr;
  EXPECT_EQ(driver().device_open(0, &device), GRAFT_INVALID_ARGUMENT);
  EXPECT_NE(last_message().find("GRAFT_HOST_"), std::string::npos) << last_message();
  EXPECT_EQ(device, nullptr);
}

TEST(HostLevel, ALevelAboveTheProcessorOpensNoDevice) {
  if (reran({"GRAFT_HOST_ISA=v4"})) return;
  __builtin_cpu_init();
  const bool runs = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
  graft_device device = nullptr;
  EXPECT_EQ(driver().device_open(0, &device), runs ? GRAFT_OK : GRAFT_INVALID_ARGUMENT);
  if (device != nullptr) {
    driver().device_close(device);
  } else {
    EXPECT_NE(last_message().find("GRAFT_HOST_TARGET"), std::string::npos) << last_message();
  }
}

}  // namespace
}  // namespace graft::host_test
#endif

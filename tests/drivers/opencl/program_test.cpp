// tests/drivers/opencl/program_test.cpp: builds that fail, are slow or damaged.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "driver.h"
#include "tests/drivers/host/driver.h"

namespace graft::opencl_test {
namespace {

using host_test::reran;

TEST(OpenclProgram, AnErrorHasTheCompilersLog) {
  Session s;
  s.compile("__kernel void k(__global int* x) { *x = no_such_name; }", GRAFT_COMPILE_ERROR);
  EXPECT_NE(last_message().find("no_such_name"), std::string::npos) << last_message();
  EXPECT_NE(last_message().find("-cl-std="), std::string::npos) << last_message();
}

TEST(OpenclProgram, ALongLogIsCut) {
  if (reran({fake("long_log:5000000,fail:clBuildProgram:1:-11")})) return;
  Session s;
  s.compile(kKernels, GRAFT_COMPILE_ERROR);
  EXPECT_LT(last_message().size(), 10000u);
  EXPECT_NE(last_message().find("bytes more"), std::string::npos);
}

TEST(OpenclProgram, OneFailedCallIsOneFailedBuild) {
  if (reran({fake("fail:clBuildProgram:1:-6"), fake("fail:clCreateProgramWithSource:1:-6"),
             fake("fail:clGetProgramInfo:1:-5")})) {
    return;
  }
  Session s;
  std::string blob;
  graft_sink sink = {&blob, [](void* context, const void*, size_t) {
                       *static_cast<std::string*>(context) = "written";
                     }};
  const std::string source = kKernels;
  EXPECT_NE(driver().program_compile(s.device, source.data(), source.size(), "", sink), GRAFT_OK);
  EXPECT_EQ(blob, "");
  EXPECT_EQ(last_message().find("__kernel"), std::string::npos) << last_message();
  const graft_address x = s.put({1});
  EXPECT_EQ(s.launch(s.kernel("add_n"), 1, {address(x, 4), scalar(1)}), GRAFT_OK);
  EXPECT_EQ(s.get(x, 1), std::vector<int>{2});
}

TEST(OpenclProgram, ABinaryThatTheDeviceRefusesIsRefused) {
  if (reran({fake("fail:clCreateProgramWithBinary:1:-42"), fake("fail:clBuildProgram:2:-42")})) {
    return;
  }
  Session s;
  const std::string blob = s.compile(kKernels);
  graft_program program = nullptr;
  EXPECT_EQ(driver().program_load(s.device, blob.data(), blob.size(), &program),
            GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(program, nullptr);
  EXPECT_EQ(driver().program_load(s.device, blob.data(), blob.size(), &program), GRAFT_OK);
  EXPECT_EQ(driver().program_unload(program), GRAFT_OK);
}

TEST(OpenclProgram, SlowBuildsRunAtOnce) {
  if (reran({fake("slow_build:700")})) return;
  Session s;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  std::vector<std::string> blobs(4);
  for (std::string& blob : blobs) {
    threads.emplace_back([&s, &blob] { blob = s.compile(kKernels); });
  }
  // Other work goes on meanwhile.
  EXPECT_EQ(s.get(s.put({9}), 1), std::vector<int>{9});
  const auto copied = std::chrono::steady_clock::now();
  EXPECT_LT(copied - begin, std::chrono::milliseconds(650));
  for (std::thread& thread : threads) thread.join();
  for (const std::string& blob : blobs) EXPECT_NE(blob, "");
}

TEST(OpenclProgram, OldLanguagesAreAskedForNoMore) {
  if (reran({fake("version:1.2")})) return;
  Session s;
  s.compile("__kernel void k(__global int* x) { *x = no_such_name; }", GRAFT_COMPILE_ERROR);
  EXPECT_EQ(last_message().find("CL3"), std::string::npos) << last_message();
  EXPECT_NE(s.compile(kKernels), "");
}

TEST(OpenclProgram, TheFingerprintTellsMemoryApart) {
  std::string fingerprints[2];
  auto append = [](void* context, const void* data, size_t bytes) {
    static_cast<std::string*>(context)->append(static_cast<const char*>(data), bytes);
  };
  if (!host_test::is_rerun()) {
    const std::string self = "OpenclProgram.TheFingerprintTellsMemoryApart";
    for (int i = 0; i < 2; ++i) {
      const std::string environment = i == 0 ? fake("no_svm") : fake("coarse_svm");
      EXPECT_EQ(host_test::run_in_environment(self, environment + " " + host_test::kRerun,
                                              &fingerprints[i]),
                0);
      fingerprints[i].erase(0, fingerprints[i].find("fingerprint: "));
      fingerprints[i].erase(std::min(fingerprints[i].find('\n'), fingerprints[i].size()));
      EXPECT_NE(fingerprints[i], "");
    }
    EXPECT_NE(fingerprints[0], fingerprints[1]);
    return;
  }
  Session s;
  std::string text;
  EXPECT_EQ(driver().toolchain_fingerprint(s.device, {&text, append}), GRAFT_OK);
  std::printf("fingerprint: %s\n", text.c_str());
}

}  // namespace
}  // namespace graft::opencl_test

// tests/drivers/host/program_test.cpp: compiling and loading, also when something is wrong.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "driver.h"

namespace graft::host_test {
namespace {

graft_sink into(std::string* text) {
  return {text, [](void* context, const void* data, size_t bytes) {
            static_cast<std::string*>(context)->append(static_cast<const char*>(data), bytes);
          }};
}

graft_status compile(const Session& s, const std::string& source, std::string* blob,
                     const char* options = "") {
  return driver().program_compile(s.device, source.data(), source.size(), options, into(blob));
}

const char kValue[] =
    "typedef union { void* address; unsigned long bits; } argument;\n"
    "void f(const argument* a, unsigned long b, unsigned long e) { *(int*)a[0].address = VALUE; "
    "}\n";

TEST(HostProgram, CompilerLogIsTheMessage) {
  Session s;
  std::string blob;
  EXPECT_EQ(compile(s, "void f( { broken", &blob), GRAFT_COMPILE_ERROR);
  EXPECT_NE(last_message().find("error"), std::string::npos);
  EXPECT_EQ(blob, "");
}

TEST(HostProgram, ProgramsOfEqualNamesStayApart) {
  Session s;
  graft_address a = s.allocate(4);
  std::vector<graft_program> programs;
  for (int i = 0; i < 20; ++i) {
    std::string blob;
    ASSERT_EQ(compile(s, kValue, &blob, ("-DVALUE=" + std::to_string(i)).c_str()), GRAFT_OK);
    graft_program program = nullptr;
    ASSERT_EQ(driver().program_load(s.device, blob.data(), blob.size(), &program), GRAFT_OK);
    programs.push_back(program);
  }
  for (int i = 0; i < 20; ++i) {
    graft_kernel kernel = nullptr;
    ASSERT_EQ(driver().kernel_find(s.device, programs[size_t(i)], "f", &kernel), GRAFT_OK);
    s.launch(kernel, 1, {address(a, 4)});
    int value = -1;
    s.download(&value, a, 4);
    EXPECT_EQ(value, i);
  }
  for (graft_program program : programs) EXPECT_EQ(driver().program_unload(program), GRAFT_OK);
}

TEST(HostProgram, DamagedBlobsAreRefused) {
  Session s;
  std::string blob;
  ASSERT_EQ(compile(s, kValue, &blob, "-DVALUE=1"), GRAFT_OK);
  graft_program program = nullptr;
  std::string flipped = blob;
  flipped[blob.size() / 2] ^= 1;
  for (const std::string& bad :
       {flipped, blob.substr(0, blob.size() - 1), blob.substr(0, 10), std::string(),
        std::string("not a blob at all, but long enough")}) {
    EXPECT_EQ(driver().program_load(s.device, bad.data(), bad.size(), &program),
              GRAFT_INVALID_ARGUMENT);
  }
  EXPECT_EQ(driver().program_load(s.device, blob.data(), blob.size(), &program), GRAFT_OK);
  driver().program_unload(program);
}

TEST(HostProgram, CompilesInManyThreadsAtOnce) {
  Session s;
  std::vector<std::thread> threads;
  std::vector<graft_status> results(4, GRAFT_INTERNAL);
  for (size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&, i] {
      std::string blob;
      results[i] = compile(s, kValue, &blob, "-DVALUE=3");
    });
  }
  for (auto& thread : threads) thread.join();
  for (graft_status result : results) EXPECT_EQ(result, GRAFT_OK);
}

TEST(HostProgram, FingerprintNamesCompilerAndStaysTheSame) {
  Session s;
  std::string one, two;
  ASSERT_EQ(driver().toolchain_fingerprint(s.device, into(&one)), GRAFT_OK);
  ASSERT_EQ(driver().toolchain_fingerprint(s.device, into(&two)), GRAFT_OK);
  EXPECT_EQ(one, two);
  EXPECT_NE(one.find("cc"), std::string::npos);
}

TEST(HostProgram, MissingCompilerIsNamed) {
  if (reran({"GRAFT_CC=/no/such/compiler"})) return;
  Session s;
  std::string blob, fingerprint;
  EXPECT_EQ(compile(s, kValue, &blob), GRAFT_UNSUPPORTED);
  EXPECT_NE(last_message().find("GRAFT_CC"), std::string::npos);
  EXPECT_EQ(driver().toolchain_fingerprint(s.device, into(&fingerprint)), GRAFT_OK);
}

TEST(HostProgram, ABlobLoadsWithoutTheCompilerThatMadeIt) {
  const std::string path = testing::TempDir() + "/program_test.blob";
  Session s;
  std::string blob;
  if (!is_rerun()) {
    ASSERT_EQ(compile(s, kValue, &blob, "-DVALUE=7"), GRAFT_OK) << last_message();
    std::ofstream(path, std::ios::binary) << blob;
  }
  if (reran({"GRAFT_CC=/no/such/compiler"})) return;
  std::ifstream file(path, std::ios::binary);
  blob.assign(std::istreambuf_iterator<char>(file), {});
  graft_program program = nullptr;
  ASSERT_EQ(driver().program_load(s.device, blob.data(), blob.size(), &program), GRAFT_OK)
      << last_message();
  EXPECT_EQ(driver().program_unload(program), GRAFT_OK);
}

TEST(HostProgram, ACompilerThatCompilesNothingIsTold) {
  if (reran({"GRAFT_CC=false"})) return;
  Session s;
  std::string blob;
  EXPECT_EQ(compile(s, kValue, &blob), GRAFT_UNSUPPORTED);
  EXPECT_NE(last_message().find("'false' does not compile even an empty function"),
            std::string::npos);
}

TEST(HostProgram, UnwritableFolderIsNamed) {
  if (reran({"TMPDIR=/proc"})) return;
  Session s;
  std::string blob;
  EXPECT_EQ(compile(s, kValue, &blob), GRAFT_IO);
  EXPECT_NE(last_message().find("TMPDIR"), std::string::npos);
}

TEST(HostProgram, LeavesNoFilesBehind) {
  auto folder = std::filesystem::temp_directory_path() / ("graft-test-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  EXPECT_EQ(run_in_environment("HostProgram.CompilesIn*", "TMPDIR=" + folder.string()), 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace graft::host_test

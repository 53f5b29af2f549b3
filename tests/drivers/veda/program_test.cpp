// tests/drivers/veda/program_test.cpp: compilers, linkers, programs and their kernels.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "driver.h"
#include "graft/driver_blob.h"
#include "tests/drivers/host/driver.h"

namespace graft::veda_test {
namespace {

namespace fs = std::filesystem;
using host_test::reran;

std::string fingerprint(graft_device device) {
  std::string text;
  graft_sink sink = {&text, [](void* context, const void* data, size_t bytes) {
                       static_cast<std::string*>(context)->append(static_cast<const char*>(data),
                                                                  bytes);
                     }};
  EXPECT_EQ(driver().toolchain_fingerprint(device, sink), GRAFT_OK) << last_message();
  return text;
}

// The status of compiling kKernels, whose text has all of the words.
void expect_compile(graft_status status, const std::vector<std::string>& words) {
  Session s;
  std::string blob;
  EXPECT_EQ(s.compile(kKernels, &blob), status) << last_message();
  EXPECT_TRUE(blob.empty());
  for (const std::string& word : words) {
    EXPECT_NE(last_message().find(word), std::string::npos) << word << "\n" << last_message();
  }
}

// Commands of the tests, in a folder that is gone at the end.
class Commands {
 public:
  Commands() : folder_(fs::temp_directory_path() / ("graft-ve-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~Commands() { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& body) const {
    const fs::path path = folder_ / name;
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    chmod(path.c_str(), 0755);
    return path.string();
  }
  std::string read(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  fs::path folder_;
};

TEST(VedaProgram, RunsOnAllCores) {
  if (reran({emulated("CORES=3"), emulated("CORES=3", "GRAFT_VE_MODE=scalar"),
             emulated("MODEL=VE3")})) {
    return;
  }
  Session s;
  graft_kernel add = s.kernel("add_n");
  for (uint64_t count : {1, 2, 3, 4, 1000}) {
    std::vector<int> values(count, 1), expected(count, 6);
    const graft_address x = s.put(values);
    EXPECT_EQ(s.launch(add, count, {address(x, count * 4), scalar(5)}), GRAFT_OK);
    EXPECT_EQ(s.get(x, count), expected);
  }
}

TEST(VedaProgram, AMissingCompilerIsUnsupported) {
  if (reran({emulated("", "GRAFT_VE_CC=/nowhere/ncc")})) return;
  expect_compile(GRAFT_UNSUPPORTED, {"/nowhere/ncc", "GRAFT_VE_CC", "the compiler"});
}

TEST(VedaProgram, AMissingLinkerIsUnsupported) {
  if (reran({emulated("", "GRAFT_VE_LINK='/nowhere/nld {inputs}'")})) return;
  expect_compile(GRAFT_UNSUPPORTED, {"/nowhere/nld", "GRAFT_VE_LINK", "the linker"});
}

TEST(VedaProgram, ACommandThatWritesNothingIsTold) {
  if (reran({emulated("", "GRAFT_VE_CC=true")})) return;
  expect_compile(GRAFT_COMPILE_ERROR, {"the compiler (GRAFT_VE_CC, 'true') wrote nothing to"});
}

TEST(VedaProgram, ALinkerThatWritesNothingIsTold) {
  if (reran({emulated("", "GRAFT_VE_LINK='true {output} {inputs}'")})) return;
  expect_compile(GRAFT_COMPILE_ERROR, {"the linker (GRAFT_VE_LINK, 'true') wrote nothing to"});
}

TEST(VedaProgram, ALinkerThatFailsIsQuoted) {
  Commands commands;
  const std::string nld = commands.write("nld", "echo 'no such library: -lomp' >&2; exit 3");
  if (reran({emulated("", "GRAFT_VE_LINK='" + nld + " {inputs}'")})) return;
  expect_compile(GRAFT_COMPILE_ERROR, {"failed with exit code 3", "no such library: -lomp"});
}

TEST(VedaProgram, ARejectedSourceIsQuoted) {
  if (reran({emulated()})) return;
  Session s;
  std::string blob;
  EXPECT_EQ(s.compile("int wrong(", &blob), GRAFT_COMPILE_ERROR);
  EXPECT_NE(last_message().find("kernel.c:1"), std::string::npos) << last_message();
  EXPECT_EQ(blob, "");
  EXPECT_NE(s.kernel("add_n"), nullptr);
}

// The template of a linker by itself, as nld is one.
TEST(VedaProgram, LinksAsTheTemplateSays) {
  Commands commands;
  const std::string nld =
      commands.write("nld", "echo \"$@\" > " + commands.path("said") +
                                "; shift 2; exec cc -shared -o \"$@\" -lpthread");
  if (reran({emulated("", "GRAFT_TEST_SAID=" + commands.path("said") + " GRAFT_VE_LINK='" + nld +
                              " -shared -o {output} {inputs} -lm'")})) {
    const std::string said = commands.read("said");
    EXPECT_EQ(said.find("-shared -o /"), 0u) << said;
    EXPECT_NE(said.find("kernel.vso "), std::string::npos) << said;
    EXPECT_NE(said.find("kernel.o "), std::string::npos) << said;
    EXPECT_NE(said.find("entry.o -lm\n"), std::string::npos) << said;
    return;
  }
  Session s;
  const graft_address x = s.put({1});
  EXPECT_EQ(s.launch(s.kernel("add_n"), 1, {address(x, 4), scalar(2)}), GRAFT_OK);
  EXPECT_EQ(s.get(x, 1), std::vector<int>{3});
}

TEST(VedaProgram, TheFingerprintNamesTheToolchain) {
  if (reran({emulated("MODEL=VE3",
                      "GRAFT_VE_CC='cc -g0' GRAFT_VE_LINK='{cc} -shared -o {output} {inputs}'")})) {
    return;
  }
  Session s;
  const std::string text = fingerprint(s.device);
  EXPECT_NE(text.find("cc -g0"), std::string::npos) << text;
  EXPECT_NE(text.find("{cc} -shared -o {output} {inputs}"), std::string::npos) << text;
  EXPECT_NE(text.find("VE3"), std::string::npos) << text;
  EXPECT_NE(text.find("."), std::string::npos) << "the compiler's version: " << text;
}

TEST(VedaProgram, AModuleThatDoesNotLoadIsRefused) {
  if (reran({emulated()})) return;
  Session s;
  std::string blob;
  graft_sink sink = {&blob, [](void* context, const void* data, size_t bytes) {
                       static_cast<std::string*>(context)->append(static_cast<const char*>(data),
                                                                  bytes);
                     }};
  write_blob("graftve1", "no library at all", fingerprint(s.device), sink);
  graft_program program = nullptr;
  EXPECT_EQ(driver().program_load(s.device, blob.data(), blob.size(), &program),
            GRAFT_INVALID_ARGUMENT);
  EXPECT_NE(last_message().find("in vedaModuleLoad"), std::string::npos) << last_message();
  EXPECT_EQ(program, nullptr);
  EXPECT_NE(s.kernel("add_n"), nullptr);
}

TEST(VedaProgram, LeavesNoFiles) {
  Commands commands;
  if (reran({emulated("", "TMPDIR=" + commands.path(""))})) return;
  Session s;
  EXPECT_NE(s.kernel("add_n"), nullptr);
  for (const auto& entry : fs::directory_iterator(std::getenv("TMPDIR"))) {
    EXPECT_EQ(entry.path().filename().string().find("graft-veda"), std::string::npos)
        << entry.path();
  }
}

TEST(VedaProgram, ATemporaryFolderThatCannotBeIsTold) {
  if (reran({emulated("", "TMPDIR=/nowhere")})) return;
  expect_compile(GRAFT_IO, {"/nowhere/graft-veda", "TMPDIR"});
}

TEST(VedaProgram, WrongLaunchesAreRefused) {
  if (reran({emulated("DEVICES=2")})) return;
  Session s, other(1);
  graft_kernel add = s.kernel("add_n");
  const graft_address x = s.put({1});
  EXPECT_EQ(s.launch(add, 1, {address(8, 4), scalar(2)}), GRAFT_INVALID_ARGUMENT);
  EXPECT_NE(last_message().find("argument 0 of add_n"), std::string::npos) << last_message();
  EXPECT_EQ(s.launch(add, 1, {{GRAFT_ARGUMENT_LOCAL, 0, 0, 0, 0, 64}}), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(other.launch(add, 1, {address(x, 4), scalar(2)}), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(s.launch(nullptr, 1, {}), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(s.launch(add, 0, {address(x, 4), scalar(2)}), GRAFT_OK);
  EXPECT_EQ(s.get(x, 1), std::vector<int>{1});
}

}  // namespace
}  // namespace graft::veda_test

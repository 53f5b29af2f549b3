// tests/codegen/blob_store_test.cpp: compiled programs on disk: damage, limits, other users, races.
#include "codegen/cache/blob_store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace graft {
namespace {

namespace fs = std::filesystem;

class BlobStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/graft-store-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    root_ = pattern;
    folder_ = root_ + "/cache/graft";
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string root_, folder_;
};

constexpr uint64_t kLimit = 1 << 20;

TEST_F(BlobStoreTest, KeepsBytesForOtherProcesses) {
  BlobStore(folder_, kLimit).write("a", "text");
  EXPECT_EQ(BlobStore(folder_, kLimit).read("a"), "text");
  EXPECT_EQ(BlobStore(folder_, kLimit).read("b"), std::nullopt);
  struct stat found {};
  ASSERT_EQ(stat(folder_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700u);
}

TEST_F(BlobStoreTest, DropsDamagedFiles) {
  BlobStore store(folder_, kLimit);
  for (const std::string& damage : {std::string(), std::string("rubbish"), std::string(100, 'x')}) {
    store.write("a", "text");
    std::ofstream(folder_ + "/a", std::ios::binary | std::ios::trunc) << damage;
    EXPECT_EQ(store.read("a"), std::nullopt);
    EXPECT_FALSE(fs::exists(folder_ + "/a"));
  }
  store.write("a", "text");
  std::fstream file(folder_ + "/a", std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(-1, std::ios::end);
  file << 'T';
  file.close();
  EXPECT_EQ(store.read("a"), std::nullopt);
}

TEST_F(BlobStoreTest, KeepsNothingWithALimitOfZero) {
  BlobStore none(folder_, 0), some(folder_, kLimit);
  EXPECT_FALSE(none.keeps());
  EXPECT_TRUE(some.keeps());
  none.write("a", "text");
  EXPECT_EQ(none.read("a"), std::nullopt);
  EXPECT_EQ(some.read("a"), std::nullopt);
}

TEST_F(BlobStoreTest, RefusesAFolderThatOthersMayWriteTo) {
  fs::create_directories(folder_);
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  testing::internal::CaptureStderr();
  BlobStore store(folder_, kLimit);
  store.write("a", "text");
  EXPECT_EQ(store.read("a"), std::nullopt);
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_NE(warning.find("GRAFT_CACHE_DIR"), std::string::npos);
  EXPECT_EQ(warning.find("warning"), warning.rfind("warning")) << "one warning: " << warning;
}

TEST_F(BlobStoreTest, WorksWithoutAFolder) {
  BlobStore nowhere("", kLimit);
  nowhere.write("a", "text");
  EXPECT_EQ(nowhere.read("a"), std::nullopt);
  testing::internal::CaptureStderr();
  std::ofstream(root_ + "/file") << "x";
  BlobStore blocked(root_ + "/file", kLimit);
  blocked.write("a", "text");
  EXPECT_EQ(blocked.read("a"), std::nullopt);
  testing::internal::GetCapturedStderr();
}

// A limit on the size of files cuts a write short as a full disk does.
TEST_F(BlobStoreTest, AFullDiskLeavesNothingHalfWritten) {
  BlobStore store(folder_, kLimit);
  store.write("before", "text");
  rlimit whole{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &whole), 0);
  const rlimit full{32, whole.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  store.write("cut", std::string(1000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &whole), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(store.read("cut"), std::nullopt);
  EXPECT_EQ(store.read("before"), "text");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
  store.write("cut", std::string(1000, 'x'));
  EXPECT_EQ(store.read("cut"), std::string(1000, 'x'));
}

TEST_F(BlobStoreTest, EvictsWhatWasUsedLongestAgo) {
  BlobStore store(folder_, 4000);
  const std::string bytes(1000, 'x');
  for (const char* name : {"a", "b", "c"}) {
    store.write(name, bytes);
    const auto age = std::chrono::hours('z' - name[0]);
    fs::last_write_time(folder_ + "/" + name, fs::file_time_type::clock::now() - age);
  }
  EXPECT_TRUE(store.read("a"));  // now the youngest of the three
  store.write("d", bytes);
  EXPECT_TRUE(store.read("a"));
  EXPECT_FALSE(store.read("b"));
  EXPECT_TRUE(store.read("d"));
}

TEST_F(BlobStoreTest, SurvivesWritersOfOneName) {
  for (int process = 0; process < 4; ++process) {
    if (fork() != 0) continue;
    BlobStore store(folder_, kLimit);
    bool whole = true;
    for (int i = 0; i < 200; ++i) {
      store.write("a", std::string(5000, 'x'));
      const auto read = store.read("a");
      whole = whole && (!read || *read == std::string(5000, 'x'));
    }
    _exit(whole ? 0 : 1);
  }
  for (int process = 0; process < 4; ++process) {
    int status = 0;
    wait(&status);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(BlobStore(folder_, kLimit).read("a"), std::string(5000, 'x'));
}

}  // namespace
}  // namespace graft

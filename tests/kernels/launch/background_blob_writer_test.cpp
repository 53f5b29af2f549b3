// tests/kernels/launch/background_blob_writer_test.cpp: blobs that a driver makes after its
// programs.
#include "codegen/cache/background_blob_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "codegen/cache/blob_store.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace graft {
// labels of the file: threads blob_store
namespace {

std::atomic<bool> may_save{false};

// A program is a text here: its blob, or nothing when it cannot be saved.
graft_status save(graft_program program, graft_sink blob) {
  const std::string& text = *reinterpret_cast<const std::string*>(program);
  while (!may_save) std::this_thread::yield();
  if (text.empty()) return GRAFT_COMPILE_ERROR;
  blob.write(blob.context, text.data(), text.size());
  return GRAFT_OK;
}

TEST(LateBlobs, AreKeptOneAfterTheOtherWhileTheProcessGoesOn) {
  const graft_programs_table table = {2, 0, nullptr, &save};
  const std::string texts[] = {"first", "", "third"};
  std::vector<std::string> names;
  for (const std::string& text : texts) {
    names.push_back("lateblobs" + std::to_string(getpid()) + "x" + std::to_string(names.size()));
    auto* program = reinterpret_cast<graft_program>(const_cast<std::string*>(&text));
    keep_later(test::device(), table, program, names.back());
  }
  EXPECT_FALSE(blob_store().read(names[0]));
  may_save = true;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!blob_store().read(names[2]) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(blob_store().read(names[0]), "first");
  EXPECT_FALSE(blob_store().read(names[1]));
  EXPECT_EQ(blob_store().read(names[2]), "third");
}

}  // namespace
}  // namespace graft

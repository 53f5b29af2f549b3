// tests/deploy/levels_test.cpp: which processes compile for levels of processors, and what files
// keep.
#include "deploy/levels.h"

#include <gtest/gtest.h>

#include "codegen/cache/carried_blobs.h"
#include "deploy/artefact.h"
#include "runtime/driver/error.h"
#include "tests/deploy/small_model.h"

namespace graft::deploy::test {
namespace {

std::string told(const std::vector<std::string>& levels) {
  std::string text;
  const std::vector<LevelStep> steps = level_steps(levels);
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].library, i % 2 == 0);
    if (steps[i].library) text += steps[i].device + ":" + steps[i].code + " ";
  }
  EXPECT_EQ(steps.size() % 2, 0u) << "each with oneDNN and without";
  return text;
}

TEST(Levels, EveryKindOfProcessorHasItsStep) {
  EXPECT_EQ(told(processor_levels()), "v2:v2 v3:v3 v4:v4 ");
  EXPECT_EQ(told({"x86-64-v4", "x86-64-v2"}), "v2:v2 v3:v2 v4:v4 ");
  EXPECT_EQ(told({"x86-64-v2"}), "v2:v2 v3:v2 v4:v2 ");
  EXPECT_EQ(told({"x86-64-v3", "x86-64-v3"}), "v3:v3 v4:v3 ");
  EXPECT_EQ(told({"x86-64-v4"}), "v4:v4 ");
  EXPECT_EQ(told({}), "");
}

TEST(Levels, OthersAreRefusedByName) {
  for (const std::string level : {"v3", "x86-64-v1", "x86-64-v5", ""}) {
    try {
      level_steps(std::span(&level, 1));
      ADD_FAILURE() << level;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), GRAFT_INVALID_ARGUMENT);
      EXPECT_NE(std::string(error.what()).find("'" + level + "'"), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("x86-64-v4"), std::string::npos);
    }
  }
}

TEST(Levels, AFileKeepsAKernelForEach) {
  const Folder folder;
  const std::string path = folder.file("levels.graft");
  const std::vector<CarriedBlob> blobs = {{"0123", "of its device"},
                                          {"0123", "third", "x86-64-v3"},
                                          {"0123", "second", "x86-64-v2"},
                                          {"4567", "other", "x86-64-v2"}};
  write_artefact(path, small_manifest(), small_weights(), blobs);
  std::vector<std::string> found, wanted;
  for (const CarriedBlob& one : Artefact(path).blobs()) {
    found.push_back(one.hash + "/" + one.processor + "/" + one.bytes);
  }
  for (const CarriedBlob& one : blobs) {
    wanted.push_back(one.hash + "/" + one.processor + "/" + one.bytes);
  }
  std::ranges::sort(found);
  std::ranges::sort(wanted);
  EXPECT_EQ(found, wanted);
}

std::string order(const std::string& hash) {
  std::string text;
  for (const CarriedBlob& one : carried_blobs(hash)) text += one.bytes + " ";
  return text;
}

TEST(Levels, TheBestIsAskedForFirst) {
  const std::string hash = "levels_test", other = "levels_test_other";
  carry_blobs({{hash, "v3", "x86-64-v3"},
               {hash, "v2", "x86-64-v2"},
               {hash, "exact"},
               {hash, "v4", "x86-64-v4"},
               {other, "v2", "x86-64-v2"}});
  EXPECT_EQ(order(hash), "exact v4 v3 v2 ");
  EXPECT_EQ(order(other), "v2 ");
  EXPECT_EQ(order("levels_test_none"), "");
  std::string levels;
  for (const CarriedBlob& one : carried_levels()) levels += one.processor + " ";
  EXPECT_EQ(levels, "x86-64-v2 x86-64-v3 x86-64-v4 ");
}

}  // namespace
}  // namespace graft::deploy::test

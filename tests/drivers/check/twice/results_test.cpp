// tests/drivers/check/twice/results_test.cpp: what counts as another result than the serial runs'.
#include "check/twice/results.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace graft::check {
namespace {

const RunResults kSerial = {{"acme.0", {{"stream1", 8, "aa", 3}, {"stream2", 8, "bb", 5}}},
                            {"acme.1", {{"stream1", 8, "cc", 3}, {"failure", 0, "copy:OUT", 0}}}};

RunResults only(std::vector<ResultRow> rows) { return {{"acme.0", std::move(rows)}}; }

TEST(ResultsTest, OrderAndStreamsDoNotCount) {
  EXPECT_EQ(difference(kSerial, kSerial), "");
  EXPECT_EQ(difference(kSerial, only({{"stream1", 8, "bb", 4}, {"stream3", 8, "aa", 9}})), "");
}

TEST(ResultsTest, AHashThatNoSerialRunHasIsADifference) {
  const RunResults run = only({{"stream1", 8, "aa", 3}, {"stream2", 8, "dd", 5}});
  EXPECT_EQ(difference(kSerial, run), "acme.0: 8 bytes behind command 5 of stream 2");
}

TEST(ResultsTest, AsManyResultsMustBeTheSameOnes) {
  const RunResults stale = only({{"stream1", 8, "aa", 3}, {"stream2", 8, "aa", 5}});
  EXPECT_EQ(difference(kSerial, stale), "acme.0: 8 bytes behind command 5 of stream 2");
  const RunResults polled =
      only({{"stream1", 8, "aa", 3}, {"stream2", 8, "aa", 5}, {"stream2", 8, "bb", 6}});
  EXPECT_EQ(difference(kSerial, polled), "");
}

TEST(ResultsTest, FailuresThatNoSerialRunHas) {
  EXPECT_EQ(new_failure(kSerial, only({{"failure", 0, "copy:OUT", 0}})), "");
  EXPECT_EQ(new_failure(kSerial, only({{"failure", 0, "copy:LOST", 0}})), "acme.0: copy:LOST");
  EXPECT_EQ(difference(kSerial, only({{"failure", 0, "copy:LOST", 0}})), "");
  EXPECT_EQ(count_of(kSerial), 3u);
}

TEST(ResultsTest, RanksOfAGroupGetTheSame) {
  RunResults run = {{"acme.0", {{"group7.0", 4, "aa", 2}, {"group7.0", 4, "bb", 4}}},
                    {"acme.1", {{"group7.1", 4, "aa", 2}, {"group8.0", 4, "ee", 9}}}};
  EXPECT_EQ(unlike_ranks(run), "");
  run["acme.1"].push_back({"group7.1", 4, "dd", 6});
  EXPECT_EQ(unlike_ranks(run), "acme.1: 4 bytes behind command 6 of group 7.1");
}

TEST(ResultsTest, ReadsTheFilesOfARankAsOne) {
  std::string folder = std::filesystem::temp_directory_path() / "results-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/run.acme.0.17") << "stream1 8 aa 3\nstream1 8 b";
  std::ofstream(folder + "/run.acme.0.18") << "stream1 4 cc 3\n";
  std::ofstream(folder + "/run.other.1.18") << "failure 0 copy:LOST 0\n";
  const RunResults run = read_results(folder);
  ASSERT_EQ(run.size(), 2u);
  EXPECT_EQ(run.at("acme.0").size(), 2u);
  EXPECT_EQ(run.at("other.1").front().hash, "copy:LOST");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace graft::check

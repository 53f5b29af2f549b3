// tests/kernels/launch/recent_test.cpp: which values are the oldest.
#include "kernels/launch/recent.h"

#include <gtest/gtest.h>

#include <string>

namespace graft {
namespace {

TEST(Recent, TheOneFoundLongestAgoIsTheOldest) {
  Recent<std::string, int> recent;
  const int* const one = &recent.add("one", 1);
  recent.add("two", 2);
  recent.add("three", 3);
  EXPECT_EQ(recent.find("one"), one);
  EXPECT_EQ(recent.find("four"), nullptr);
  EXPECT_EQ(recent.drop_oldest(), 2);
  EXPECT_EQ(recent.drop_oldest(), 3);
  EXPECT_EQ(recent.find("two"), nullptr);
  EXPECT_EQ(recent.size(), 1u);
  EXPECT_EQ(recent.begin()->first, "one");
}

}  // namespace
}  // namespace graft
